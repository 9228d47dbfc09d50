// SPDX-License-Identifier: Apache-2.0
#include "operation/job_board.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

JobTotals only(const JobBoard& board) {
  const std::vector<JobTotals> totals = board.totals();
  EXPECT_EQ(totals.size(), 1u);
  return totals.empty() ? JobTotals{} : totals.front();
}

void plan(JobNumbers& job, uint64_t set_bytes, uint64_t number) {
  job.planned_bytes.set(set_bytes);
  job.plan.set(number);
}

TEST(JobBoard, HasAJobFromItsBeginToItsEnd) {
  JobBoard board;
  const auto job = board.add("train", {4, 5});
  job->operations.add(7);
  job->steps.add(2);
  job->step_ns.add(300);
  job->exposed_ns.add(30);
  job->ranks[1].late_ns.add(11);
  job->ranks[0].wait_ns.add(12);
  job->ranks[0].pid.set(4711);
  job->operations_pending.set(3);
  job->result_memory_bytes.set(4096);
  const JobTotals totals = only(board);
  EXPECT_EQ(totals.name, "train");
  EXPECT_EQ(totals.operations, 7u);
  EXPECT_EQ(totals.steps, 2u);
  EXPECT_EQ(totals.step_ns, 300u);
  EXPECT_EQ(totals.exposed_ns, 30u);
  EXPECT_EQ(totals.ranks.at(5).late_ns, 11u);
  EXPECT_EQ(totals.ranks.at(4).wait_ns, 12u);
  EXPECT_EQ(totals.ranks.at(4).pid, 4711u);
  EXPECT_EQ(totals.operations_pending, 3u);
  EXPECT_EQ(totals.result_memory_bytes, 4096u);
  EXPECT_FALSE(totals.plan);
  board.remove(*job);
  EXPECT_TRUE(board.totals().empty());
}

TEST(JobBoard, WhatJobsOfOneNameHaveDoneNeverBecomesLess) {
  JobBoard board;
  const auto first = board.add("train", {0, 1});
  const auto second = board.add("train", {1});
  first->steps.add(10);
  first->ranks[1].wait_ns.add(100);
  first->operations_pending.set(2);
  second->steps.add(1);
  second->ranks[0].wait_ns.add(1);
  EXPECT_EQ(only(board).steps, 11u);
  EXPECT_EQ(only(board).ranks.at(1).wait_ns, 101u);
  EXPECT_EQ(only(board).operations_pending, 2u);
  board.remove(*first);
  EXPECT_EQ(only(board).steps, 11u);
  EXPECT_EQ(only(board).ranks.at(1).wait_ns, 101u);
  EXPECT_EQ(only(board).operations_pending, 0u) << "it has none any more";
  second->steps.add(1);
  EXPECT_EQ(only(board).steps, 12u);
  board.remove(*second);
  EXPECT_TRUE(board.totals().empty());
  board.add("train", {0});
  EXPECT_EQ(only(board).steps, 0u) << "a later job of the name begins anew";
}

TEST(JobBoard, ShowsThePlanOfTheLargestSetOfAName) {
  JobBoard board;
  const auto none = board.add("train", {0});
  const auto small = board.add("train", {0});
  const auto large = board.add("train", {0});
  plan(*small, 100, 1);
  plan(*large, 200, 2);
  ASSERT_TRUE(only(board).plan);
  EXPECT_EQ(only(board).plan->number, 2u);
  board.remove(*large);
  EXPECT_EQ(only(board).plan->number, 1u);
  board.remove(*small);
  EXPECT_FALSE(only(board).plan);
}

TEST(JobBoard, KeepsNamesApart) {
  JobBoard board;
  const auto a = board.add("a", {0});
  const auto b = board.add("b", {0});
  a->steps.add(1);
  b->steps.add(2);
  const std::vector<JobTotals> totals = board.totals();
  ASSERT_EQ(totals.size(), 2u);
  EXPECT_EQ(totals[0].name, "a");
  EXPECT_EQ(totals[0].steps, 1u);
  EXPECT_EQ(totals[1].name, "b");
  EXPECT_EQ(totals[1].steps, 2u);
}

}  // namespace
}  // namespace braid
