// SPDX-License-Identifier: Apache-2.0
#include "operation/operation_table_testing.h"

namespace braid {
namespace {

using testing::all_reduce;

class OperationTableDeadlineTest : public testing::OperationTableTest {
 protected:
  Status submit_until(uint32_t local_rank, uint64_t step, uint64_t deadline_ns,
                      uint32_t timeout_ms) {
    Submission one = submission(local_rank, step, all_reduce(10));
    one.deadline_ns = deadline_ns;
    one.timeout_ms = timeout_ms;
    return table_->submit(one);
  }
};

TEST_F(OperationTableDeadlineTest, AMissedDeadlineIsReportedOnceWithTheOperationsName) {
  make({{0, 1}}, 0);
  ASSERT_TRUE(submit_until(0, 3, 1000, 7).is_ok());
  EXPECT_FALSE(table_->take_overdue(999).has_value());
  const auto overdue = table_->take_overdue(1000);
  ASSERT_TRUE(overdue.has_value());
  EXPECT_EQ(overdue->key, key(3));
  EXPECT_EQ(overdue->timeout_ms, 7u);
  EXPECT_EQ(overdue->description,
            "job 'train': 'layer.weight' step 3, all-reduce (sum) of float32 × 10");
  EXPECT_FALSE(table_->take_overdue(2000).has_value());
}

TEST_F(OperationTableDeadlineTest, TheFirstRankWhoseDeadlinePassesCounts) {
  make({{0, 1}, {2}}, 0);
  ASSERT_TRUE(submit_until(0, 3, 1000, 7).is_ok());
  ASSERT_TRUE(submit_until(1, 3, 500, 4).is_ok());
  const auto overdue = table_->take_overdue(500);
  ASSERT_TRUE(overdue.has_value());
  EXPECT_EQ(overdue->timeout_ms, 4u);
}

TEST_F(OperationTableDeadlineTest, ARunningOperationCanBeLateToo) {
  make({{0}, {1}}, 0);
  ASSERT_TRUE(submit_until(0, 3, 1000, 7).is_ok());
  ASSERT_EQ(actions_.started.size(), 1u);
  EXPECT_TRUE(table_->take_overdue(1000).has_value());
}

TEST_F(OperationTableDeadlineTest, WhatIsDoneIsNeverLate) {
  make({{0}}, 0);
  ASSERT_TRUE(submit_until(0, 3, 1000, 7).is_ok());
  table_->on_done(key(3));
  EXPECT_FALSE(table_->take_overdue(UINT64_MAX).has_value());
}

// The one that was due first is the likeliest cause of the others.
TEST_F(OperationTableDeadlineTest, OfManyTheEarliestIsReportedFirst) {
  make({{0, 1}}, 0);
  const uint64_t deadlines[] = {900, 500, 700, 300, 800, 400, 600};
  for (uint64_t step = 0; step < 7; ++step)
    ASSERT_TRUE(submit_until(0, step, deadlines[step], 1).is_ok());
  std::vector<uint64_t> steps;
  while (const auto overdue = table_->take_overdue(1000)) steps.push_back(overdue->key.step);
  EXPECT_EQ(steps, (std::vector<uint64_t>{3, 5, 1, 6, 2, 4, 0}));
}

TEST_F(OperationTableDeadlineTest, KnowsWhoHasNotSubmitted) {
  make({{4, 6, 7}, {0, 1, 2, 3, 5}}, 0);
  EXPECT_EQ(table_->log().missing_ranks(key(1)), (std::vector<uint32_t>{4, 6, 7}));
  ASSERT_TRUE(submit(1, 1, all_reduce(10)).is_ok());
  EXPECT_EQ(table_->log().missing_ranks(key(1)), (std::vector<uint32_t>{4, 7}));
  ASSERT_TRUE(submit(0, 1, all_reduce(10)).is_ok());
  ASSERT_TRUE(submit(2, 1, all_reduce(10)).is_ok());
  EXPECT_TRUE(table_->log().missing_ranks(key(1)).empty());
}

TEST_F(OperationTableDeadlineTest, WhatWasForgottenWasSubmitted) {
  make({{0}}, 0);
  publish(5, all_reduce(10), 1);
  table_->on_retired(key(5));
  ASSERT_TRUE(table_->release(0, key(5)).is_ok());
  EXPECT_TRUE(table_->log().missing_ranks(key(5)).empty());
  EXPECT_EQ(table_->log().missing_ranks(key(6)), (std::vector<uint32_t>{0}));
}

// A rank that is a step ahead of the others has not submitted theirs.
TEST_F(OperationTableDeadlineTest, ALaterStepInFlightDoesNotStandForAnEarlierOne) {
  make({{0}, {1}}, 0);
  ASSERT_TRUE(submit(0, 7, all_reduce(10)).is_ok());
  EXPECT_EQ(table_->log().missing_ranks(key(6)), (std::vector<uint32_t>{0}));
}

}  // namespace
}  // namespace braid
