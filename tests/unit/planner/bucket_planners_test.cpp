// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/planner/instances.h"

namespace braid {
namespace {

using Ends = std::vector<uint32_t>;

Workload with_bytes(const std::vector<uint64_t>& bytes) {
  Workload workload;
  double ready = 0;
  for (const uint64_t tensor : bytes) workload.tensors.push_back({++ready, tensor});
  return workload;
}

TEST(BucketPlannersTest, WfbpSendsEachTensorAlone) {
  EXPECT_EQ(ends_of(plan_by("wfbp", with_bytes({1, 2, 3}), LinearCostModel({}))), (Ends{1, 2, 3}));
}

TEST(BucketPlannersTest, SingleSendsOneMessage) {
  EXPECT_EQ(ends_of(plan_by("single", with_bytes({1, 2, 3}), LinearCostModel({}))), (Ends{3}));
}

Ends ddp(const std::vector<uint64_t>& bytes) {
  PlannerOptions options;
  options.first_bucket_bytes = 10;
  options.bucket_bytes = 20;
  return ends_of(plan_by("ddp", with_bytes(bytes), LinearCostModel({}), options));
}

TEST(BucketPlannersTest, DdpClosesABucketThatHoldsItsLimit) {
  EXPECT_EQ(ddp({5, 5, 5, 5, 5, 5, 5}), (Ends{2, 6, 7}));
  EXPECT_EQ(ddp({9, 9, 19, 100, 1}), (Ends{2, 4, 5})) << "its last tensor may carry it beyond";
  EXPECT_EQ(ddp({100, 20, 30, 1, 1}), (Ends{1, 2, 3, 5})) << "a tensor that fills it stands alone";
  EXPECT_EQ(ddp({1, 1}), (Ends{2})) << "the last one holds what is left";
}

Ends horovod(const Workload& workload, LinearCost cost, uint64_t fusion_bytes) {
  PlannerOptions options;
  options.cycle_seconds = 1;
  options.fusion_bytes = fusion_bytes;
  return ends_of(plan_by("horovod", workload, LinearCostModel(cost), options));
}

TEST(BucketPlannersTest, HorovodFusesWhatBecameReadyInACycle) {
  const Workload workload{{{0.2, 1}, {0.8, 1}, {1, 1}, {1.5, 1}, {4.5, 1}, {5, 1}}};
  EXPECT_EQ(horovod(workload, {0.1, 0}, 100), (Ends{3, 4, 6}));
}

// The reductions of 0.5 and 0.5 seconds fit into the cycle; those of 3 seconds delay the next one.
TEST(BucketPlannersTest, HorovodsNextCycleWaitsForTheReductions) {
  const Workload workload{{{1, 1}, {2, 1}, {3, 1}, {3.9, 1}, {4.1, 1}}};
  EXPECT_EQ(horovod(workload, {0.5, 0}, 100), (Ends{1, 2, 3, 4, 5}));
  EXPECT_EQ(horovod(workload, {3, 0}, 100), (Ends{1, 4, 5}));
}

TEST(BucketPlannersTest, HorovodsBufferIsBounded) {
  const Workload workload{{{1, 4}, {1, 4}, {1, 4}, {1, 100}, {1, 9}, {1, 2}}};
  EXPECT_EQ(horovod(workload, {0, 0}, 10), (Ends{2, 3, 4, 5, 6}));
}

TEST(BucketPlannersTest, HorovodWithoutCyclesWaitsForReductionsAlone) {
  PlannerOptions options;
  options.cycle_seconds = 0;
  const Workload workload{{{1, 1}, {2, 1}, {3, 1}, {5, 1}}};
  EXPECT_EQ(ends_of(plan_by("horovod", workload, LinearCostModel({2, 0}), options)),
            (Ends{1, 3, 4}));
}

}  // namespace
}  // namespace braid
