// SPDX-License-Identifier: Apache-2.0
#include "planner/workload.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(WorkloadTest, TensorsStandInTheOrderInWhichBackwardMakesThem) {
  Trace trace;
  trace.forward_seconds = 5;
  trace.tensors = {{"first", 1, DataType::Float32, 4},
                   {"second", 1, DataType::Float64, 3},
                   {"third", 4, DataType::Float16, 1}};
  const Workload workload = workload_of(trace);
  const std::vector<Workload::Tensor> expected = {{1, 8}, {4, 8}, {8, 4}};
  EXPECT_EQ(workload.tensors, expected);
  EXPECT_EQ(workload.forward_seconds, 5);
  EXPECT_EQ(workload.backward_seconds(), 8);
  EXPECT_EQ(workload.bytes(), 20u);
}

// The order of additions is the paper's: these times give another sum from the other end.
TEST(WorkloadTest, TimesAreSummedFromTheLastLayerDownwards) {
  Trace trace;
  trace.tensors = {{"first", 1, DataType::Float32, 0.1},
                   {"second", 1, DataType::Float32, 0.2},
                   {"third", 1, DataType::Float32, 0.3}};
  ASSERT_NE((0.3 + 0.2) + 0.1, 0.3 + (0.2 + 0.1));
  EXPECT_EQ(workload_of(trace).backward_seconds(), (0.3 + 0.2) + 0.1);
}

TEST(WorkloadTest, AnEmptyTraceIsAnEmptyWorkload) {
  const Workload workload = workload_of(Trace{});
  EXPECT_TRUE(workload.tensors.empty());
  EXPECT_EQ(workload.backward_seconds(), 0);
  EXPECT_EQ(workload.bytes(), 0u);
}

}  // namespace
}  // namespace braid
