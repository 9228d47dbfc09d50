// SPDX-License-Identifier: Apache-2.0
// Memory for a result may come later than the operation's submissions.
#include "operation/operation_table_testing.h"

namespace braid {
namespace {

using testing::all_reduce;

class OperationTableMemoryTest : public testing::OperationTableTest {
 protected:
  // This node is the first of three; none of its memory is there yet.
  OperationTableMemoryTest() { make({{0}, {1}, {2}}, 0, 8 << 20, 0, false); }

  void wait_for_memory() {
    run_until([&] { return memory_->has_memory(0, 8 << 20); });
  }
};

TEST_F(OperationTableMemoryTest, AnOperationStartsWhenItsMemoryIsThere) {
  ASSERT_TRUE(submit(0, 0, all_reduce(2 << 20)).is_ok());
  EXPECT_TRUE(actions_.log.empty()) << "nobody may send for what has no memory";
  EXPECT_TRUE(table_->has_unfinished());
  ASSERT_TRUE(table_->on_memory(Status::ok()).is_ok());
  EXPECT_TRUE(actions_.log.empty());
  wait_for_memory();
  ASSERT_TRUE(table_->on_memory(Status::ok()).is_ok());
  EXPECT_EQ(actions_.log, (std::vector<std::string>{"start", "ready"}));
}

TEST_F(OperationTableMemoryTest, WhatIsThereOnceStays) {
  ASSERT_TRUE(submit(0, 0, all_reduce(2 << 20)).is_ok());
  wait_for_memory();
  ASSERT_TRUE(table_->on_memory(Status::ok()).is_ok());
  table_->on_done(key(0));
  table_->on_retired(key(0));
  ASSERT_TRUE(table_->release(0, key(0)).is_ok());
  ASSERT_EQ(actions_.started.size(), 1u);
  EXPECT_TRUE(memory_is_free());
  ASSERT_TRUE(submit(0, 1, all_reduce(10)).is_ok());
  EXPECT_EQ(actions_.started.size(), 2u);
}

TEST_F(OperationTableMemoryTest, WhatHasMemoryWaitsForThoseBeforeIt) {
  // 4 MiB come first, so the second operation's memory may be there before the first one's.
  const auto low = memory_->allocate(4096);
  ASSERT_TRUE(low.is_ok());
  run_until([&] { return memory_->has_memory(*low, 4096); });
  ASSERT_TRUE(submit(0, 0, all_reduce((6 << 20) / 4)).is_ok());
  memory_->free(*low);
  ASSERT_TRUE(submit(0, 1, all_reduce(10)).is_ok());
  EXPECT_TRUE(actions_.log.empty());
  wait_for_memory();
  ASSERT_TRUE(table_->on_memory(Status::ok()).is_ok());
  ASSERT_EQ(actions_.started.size(), 2u);
  EXPECT_EQ(actions_.started[0].key, key(0));
  EXPECT_EQ(actions_.started[1].key, key(1));
}

TEST_F(OperationTableMemoryTest, TheReadinessOfOthersIsKeptMeanwhile) {
  ASSERT_TRUE(submit(0, 0, all_reduce(2 << 20)).is_ok());
  ASSERT_TRUE(on_successor_ready(key(0), all_reduce(2 << 20)).is_ok());
  EXPECT_TRUE(actions_.log.empty());
  wait_for_memory();
  ASSERT_TRUE(table_->on_memory(Status::ok()).is_ok());
  EXPECT_EQ(actions_.log, (std::vector<std::string>{"start", "ready", "go"}));
}

TEST_F(OperationTableMemoryTest, ADisagreementIsFoundMeanwhile) {
  ASSERT_TRUE(submit(0, 0, all_reduce(2 << 20)).is_ok());
  EXPECT_EQ(on_successor_ready(key(0), all_reduce(3)).code(), StatusCode::Mismatch);
}

TEST_F(OperationTableMemoryTest, ItsDeadlineHoldsMeanwhile) {
  ASSERT_TRUE(submit(0, 0, all_reduce(2 << 20)).is_ok());
  EXPECT_FALSE(table_->take_overdue(999'999).has_value());
  EXPECT_TRUE(table_->take_overdue(1'000'000).has_value());
}

TEST_F(OperationTableMemoryTest, ARankMayLeaveMeanwhile) {
  ASSERT_TRUE(submit(0, 0, all_reduce(2 << 20)).is_ok());
  EXPECT_TRUE(table_->on_rank_left(0).is_ok());
  wait_for_memory();
  ASSERT_TRUE(table_->on_memory(Status::ok()).is_ok());
  table_->on_done(key(0));
  table_->on_retired(key(0));
  EXPECT_TRUE(memory_is_free());
}

TEST_F(OperationTableMemoryTest, WithoutMemoryTheJobEndsWithTheOperationsName) {
  EXPECT_TRUE(table_->on_memory({StatusCode::ResourceExhausted, "none"})) << "nobody waits for it";
  ASSERT_TRUE(submit(0, 7, all_reduce(2 << 20)).is_ok());
  const Status ended = table_->on_memory({StatusCode::ResourceExhausted, "no memory for results"});
  EXPECT_EQ(ended.code(), StatusCode::ResourceExhausted);
  EXPECT_EQ(ended.message().find("job 'train': no room for the result of 'layer.weight' step 7"),
            0u)
      << ended.message();
  EXPECT_TRUE(actions_.log.empty());
}

class OperationTableAloneTest : public testing::OperationTableTest {};

// What else is submitted waits where it holds up no other job.
TEST_F(OperationTableAloneTest, OfOneNodeSoManyRunAtATime) {
  constexpr size_t kMost = OperationTable::kLocalRunningMax;
  make({{0}}, 0);
  for (uint64_t step = 0; step < kMost + 10; ++step)
    ASSERT_TRUE(submit(0, step, all_reduce(1)).is_ok());
  ASSERT_EQ(actions_.started.size(), kMost);
  for (uint64_t step = 0; step < 5; ++step) table_->on_done(key(step));
  ASSERT_EQ(actions_.started.size(), kMost + 5);
  EXPECT_EQ(actions_.started.back().key, key(kMost + 4)) << "in their order";
}

TEST_F(OperationTableAloneTest, OfSeveralNodesAllStartForTheOthersWaitForThem) {
  make({{0}, {1}}, 0);
  for (uint64_t step = 0; step < 2 * OperationTable::kLocalRunningMax; ++step)
    ASSERT_TRUE(submit(0, step, all_reduce(1)).is_ok());
  EXPECT_EQ(actions_.started.size(), 2 * OperationTable::kLocalRunningMax);
}

}  // namespace
}  // namespace braid
