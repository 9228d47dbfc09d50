// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "planner/live_plan.h"
#include "planning/plan_book.h"
#include "planning/plan_testing.h"

namespace braid {
namespace {

constexpr uint32_t kStreams = 3;

PlanSet::Tensor tensor(const char* name, uint64_t count) {
  return {testing::test_job().of_name(name), std::make_shared<const std::string>(name),
          DataType::Float32, count, 0};
}

PlanBook book_of(const std::vector<PlanSet::Tensor>& tensors) {
  PlanBook book(JobLabel{"train"}, 1, 2, {0}, {[](ControlBuffer&) { return Status::ok(); }});
  EXPECT_TRUE(testing::register_planned(book, 0, 7, tensors));
  return book;
}

std::vector<LiveJob> answer_of(const PlanBook& book) {
  const auto jobs = parse_live_plans("[" + book.to_json({kStreams, 2}) + "]");
  EXPECT_TRUE(jobs.is_ok()) << jobs.status().message();
  return jobs ? *jobs : std::vector<LiveJob>{};
}

TEST(PlanBookJson, IsWhatToolsRead) {
  const auto jobs = answer_of(book_of({tensor("last", 10), tensor("first", 20)}));
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].name, "train");
  ASSERT_EQ(jobs[0].sets.size(), 1u);
  const LiveSet& set = jobs[0].sets[0];
  EXPECT_EQ(set.planner, "first");
  EXPECT_EQ(set.streams, kStreams);
  EXPECT_EQ(set.nodes, 2u);
  EXPECT_EQ(set.io_threads, 2u);
  EXPECT_FALSE(set.is_measured());
  EXPECT_EQ(set.trace.tensors.at(0).name, "first");
  EXPECT_EQ(set.groups, (std::vector<std::vector<std::string>>{{"last", "first"}}));
}

TEST(PlanBookJson, LeavesEmptyTensorsOutOfTheTrace) {
  const auto jobs = answer_of(book_of({tensor("a", 10), tensor("empty", 0), tensor("b", 20)}));
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].sets.at(0).trace.tensors.size(), 2u);
}

}  // namespace
}  // namespace braid
