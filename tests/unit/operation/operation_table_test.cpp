// SPDX-License-Identifier: Apache-2.0
// One node: local ranks find together, results come and are given back.
#include <algorithm>

#include "base/errors_testing.h"
#include "operation/operation_table_testing.h"

namespace braid {
namespace {

using testing::all_reduce;
using testing::is_error;
using testing::signature_of;

class OperationTableTest : public testing::OperationTableTest {};

TEST_F(OperationTableTest, StartsWhenAllLocalRanksHaveSubmitted) {
  make({{0, 1, 2}}, 0);
  ASSERT_TRUE(submit(2, 0, all_reduce(10)).is_ok());
  ASSERT_TRUE(submit(0, 0, all_reduce(10)).is_ok());
  EXPECT_TRUE(actions_.log.empty());
  EXPECT_EQ(table_->pending(), 1u);
  ASSERT_TRUE(submit(1, 0, all_reduce(10)).is_ok());
  EXPECT_EQ(actions_.log,
            (std::vector<std::string>{"start"}));  // alone: nobody to be ready for, or to wait for
  const Operation& operation = actions_.started[0];
  EXPECT_EQ(operation.key, key(0));
  EXPECT_EQ(operation.collective, Collective::AllReduce);
  EXPECT_EQ(operation.count, 10u);
  ASSERT_EQ(operation.inputs.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i)
    EXPECT_TRUE(input_is(operation, i, i)) << i;  // by rank, not by time
  EXPECT_EQ(operation.memory, memory_);
}

TEST_F(OperationTableTest, WhatAnOperationTakesIsCountedByPhase) {
  make({{0, 1}}, 0);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Submission one = submission(rank, 0, all_reduce(10));
    one.submitted_ns = 100 + 20 * rank;
    actions_.now_ns = 150;
    ASSERT_TRUE(table_->submit(one).is_ok());
  }
  actions_.now_ns = 500;
  table_->on_done(key(0));
  EXPECT_EQ(actions_.last_end_ns, 500u);
  EXPECT_EQ(actions_.numbers->submit_ns.get(), 20u);
  EXPECT_EQ(actions_.numbers->ready_ns.get(), 30u);
  EXPECT_EQ(actions_.numbers->run_ns.get(), 350u);
  const auto ended = table_->log().latest_ended(10);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].end_ns, 500u);
  EXPECT_EQ(ended[0].wait_ns, (std::vector<uint64_t>{400, 380})) << "by rank";
}

TEST_F(OperationTableTest, EveryLocalRankIsToldItsOwnTicket) {
  make({{0, 1}}, 0);
  publish(3, all_reduce(10), 2);
  ASSERT_EQ(actions_.published.size(), 2u);
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(actions_.published[i].local_rank, i);
    EXPECT_EQ(actions_.published[i].ticket, 31 + i);
    EXPECT_EQ(memory_->data() + actions_.published[i].offset, actions_.started[0].result);
    EXPECT_EQ(actions_.published[i].bytes, 40u);
  }
  EXPECT_EQ(actions_.counters.operations[static_cast<size_t>(Collective::AllReduce)], 1u);
  EXPECT_EQ(actions_.counters.operation_bytes, 40u);
}

TEST_F(OperationTableTest, ARankThatHasGoneIsToldNothing) {
  make({{0, 1}}, 0);
  for (uint32_t i = 0; i < 2; ++i) ASSERT_TRUE(submit(i, 3, all_reduce(10)).is_ok());
  table_->drop_sink(0);
  table_->on_done(key(3));
  ASSERT_EQ(actions_.published.size(), 1u);
  EXPECT_EQ(actions_.published[0].local_rank, 1u);
}

TEST_F(OperationTableTest, ItsObserverHearsOfAnOperationBeforeTheTrainersDo) {
  make({{0, 1}}, 0);
  publish(3, all_reduce(10), 2);
  EXPECT_EQ(actions_.observed, (std::vector<std::tuple<std::string, OperationKey, uint64_t>>{
                                   {"start", key(3), 40}, {"go", key(3), 0}, {"done", key(3), 0}}));
}

TEST_F(OperationTableTest, CountsTheTimeInWhichAllReducesAreOnTheirWay) {
  make({{0}}, 0);
  actions_.now_ns = 10;
  ASSERT_TRUE(submit(0, 0, all_reduce(10)).is_ok());
  actions_.now_ns = 20;
  ASSERT_TRUE(submit(0, 1, all_reduce(20)).is_ok());
  ASSERT_TRUE(submit(0, 2, signature_of(Collective::Barrier)).is_ok());
  actions_.now_ns = 30;
  table_->on_done(key(0));
  EXPECT_EQ(actions_.numbers->all_reduce_ns.get(), 0u) << "the other one is still on its way";
  actions_.now_ns = 50;
  table_->on_done(key(1));
  EXPECT_EQ(actions_.numbers->all_reduce_ns.get(), 40u) << "side by side counts once";
  actions_.now_ns = 1000;
  table_->on_done(key(2));
  EXPECT_EQ(actions_.numbers->all_reduce_ns.get(), 40u);
  EXPECT_EQ(actions_.numbers->all_reduce_bytes.get(), 120u);
  const auto& collectives = actions_.numbers->collectives;
  EXPECT_EQ(collectives[static_cast<size_t>(Collective::AllReduce)].get(), 2u);
  EXPECT_EQ(collectives[static_cast<size_t>(Collective::Barrier)].get(), 1u);
}

TEST_F(OperationTableTest, AnAllReduceThatWaitsForANodeIsNotOnItsWay) {
  make({{0}, {1}}, 0);
  actions_.now_ns = 10;
  ASSERT_TRUE(submit(0, 0, all_reduce(10)).is_ok());
  actions_.now_ns = 500;
  ASSERT_TRUE(table_->on_node_ready(1, key(0), all_reduce(10)).is_ok());
  actions_.now_ns = 507;
  table_->on_done(key(0));
  EXPECT_EQ(actions_.numbers->all_reduce_ns.get(), 7u);
}

TEST_F(OperationTableTest, TellsWhatIsPendingAndForWhom) {
  make({{0, 1}, {2}}, 0);
  ASSERT_TRUE(submit(1, 4, all_reduce(10)).is_ok());
  for (uint32_t rank = 0; rank < 2; ++rank)
    ASSERT_TRUE(submit(rank, 5, signature_of(Collective::Broadcast, 7)).is_ok());
  auto pending = table_->log().oldest_pending(10);
  ASSERT_EQ(pending.size(), 2u);
  std::ranges::sort(pending, {}, &OperationLog::Pending::step);
  EXPECT_EQ(pending[0].step, 4u);
  EXPECT_EQ(pending[0].collective, Collective::AllReduce);
  EXPECT_EQ(pending[0].bytes, 40u);
  EXPECT_EQ(pending[0].ranks, std::vector<uint32_t>{1});
  EXPECT_EQ(pending[1].ranks, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(pending[1].collective, Collective::Broadcast);
  EXPECT_EQ(table_->log().oldest_pending(1).size(), 1u);
  EXPECT_TRUE(table_->log().latest_ended(10).empty());
}

TEST_F(OperationTableTest, KeepsTheLatestThatHaveEnded) {
  make({{0}, {1}}, 0);
  constexpr uint64_t kSteps = OperationLog::kEndedKept + 10;
  for (uint64_t step = 0; step < kSteps; ++step) {
    ASSERT_TRUE(submit(0, step, all_reduce(1)).is_ok());
    ASSERT_TRUE(table_->on_node_ready(1, key(step), all_reduce(1)).is_ok());
    table_->on_done(key(step));
    table_->on_retired(key(step));
    ASSERT_TRUE(table_->release(0, key(step)).is_ok());
  }
  EXPECT_TRUE(table_->log().oldest_pending(10).empty());
  const auto ended = table_->log().latest_ended(10'000);
  ASSERT_EQ(ended.size(), OperationLog::kEndedKept);
  EXPECT_EQ(ended.front().step, kSteps - 1);
  EXPECT_EQ(ended.back().step, 10u);
  EXPECT_EQ(table_->log().latest_ended(3).size(), 3u);
}

TEST_F(OperationTableTest, CountsWhatWasDone) {
  make({{0}}, 0);
  publish(0, all_reduce(10), 1);
  publish(5, all_reduce(2), 1);
  ASSERT_TRUE(submit(0, 6, all_reduce(1)).is_ok());
  EXPECT_EQ(table_->log().operations_done(), 2u);
  EXPECT_EQ(table_->log().steps_done(), 6u);
  EXPECT_EQ(table_->log().bytes_done(), 48u);
  EXPECT_EQ(table_->pending(), 1u);
  EXPECT_TRUE(table_->has_unfinished());
  table_->on_done(key(6));
  EXPECT_FALSE(table_->has_unfinished());
}

TEST_F(OperationTableTest, LocalRanksThatDisagreeAreNamed) {
  make({{4, 7}, {0, 1, 2, 3, 5, 6}}, 0);
  ASSERT_TRUE(submit(1, 2, all_reduce(10)).is_ok());
  EXPECT_TRUE(
      is_error(submit(0, 2, all_reduce(10, DataType::Float16)), StatusCode::Mismatch,
               {"'layer.weight' step 2", "rank 7", "float32 × 10", "rank 4", "float16 × 10"}));
  EXPECT_TRUE(actions_.log.empty());
}

TEST_F(OperationTableTest, EveryPartOfASignatureMustAgree) {
  Signature changed[7];
  for (Signature& one : changed) one = all_reduce(10);
  changed[0].count = 11;
  changed[1].reduction = Reduction::Average;
  changed[2].collective = Collective::ReduceScatter;
  changed[3].group = 1;
  changed[4].root = 1;
  changed[5].codec = default_codec_spec(CodecKind::BFloat16);
  changed[6].owner_step = static_cast<OwnerStepKind>(1);
  make({{0, 1}}, 0);
  uint64_t step = 0;
  for (const Signature& one : changed) {
    ASSERT_TRUE(submit(0, step, all_reduce(10)).is_ok());
    EXPECT_EQ(submit(1, step, one).code(), StatusCode::Mismatch) << step;
    ++step;
  }
}

TEST_F(OperationTableTest, NoRankSubmitsTwice) {
  make({{3, 5}, {0, 1, 2, 4}}, 0);
  ASSERT_TRUE(submit(1, 2, all_reduce(10)).is_ok());
  EXPECT_TRUE(is_error(submit(1, 2, all_reduce(10)), StatusCode::InvalidArgument,
                       {"rank 5", "'layer.weight' step 2"}));
}

// In whatever order the engine retires it and the ranks give it back, the extent is freed at the
// end and once (ResultMemory takes a second time for a bug).
TEST_F(OperationTableTest, ARetiredAndReleasedResultIsFreedOnceInEveryOrder) {
  std::vector<int> order = {0, 1, 2};  // 2: retired; else: released by that local rank
  do {
    make({{0, 1}}, 0);
    publish(1, all_reduce(10), 2);
    for (size_t i = 0; i < order.size(); ++i) {
      EXPECT_FALSE(memory_is_free());
      if (order[i] == 2) {
        table_->on_retired(key(1));
        table_->on_retired(key(1));
      } else {
        const auto local_rank = static_cast<uint32_t>(order[i]);
        EXPECT_TRUE(table_->release(local_rank, key(1)).is_ok());
        EXPECT_TRUE(table_->release(local_rank, key(1)).is_ok());
      }
    }
    EXPECT_TRUE(memory_is_free());
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(OperationTableTest, AResultThatIsNotDoneCannotBeGivenBack) {
  make({{0, 1}}, 0);
  ASSERT_TRUE(submit(0, 1, all_reduce(10)).is_ok());
  EXPECT_EQ(table_->release(0, key(1)).code(), StatusCode::Protocol);
  ASSERT_TRUE(submit(1, 1, all_reduce(10)).is_ok());
  EXPECT_TRUE(is_error(table_->release(0, key(1)), StatusCode::Protocol,
                       {"rank 0", "'layer.weight' step 1", "float32 × 10"}));
}

TEST_F(OperationTableTest, DoneTwiceIsPublishedOnce) {
  make({{0}}, 0);
  publish(1, all_reduce(10), 1);
  table_->on_done(key(1));
  table_->on_done(key(99));  // unknown: aborted meanwhile
  table_->on_retired(key(99));
  EXPECT_EQ(actions_.published.size(), 1u);
}

TEST_F(OperationTableTest, WithoutRoomForTheResultTheOperationIsNamed) {
  make({{0}}, 0, 4096);
  EXPECT_TRUE(is_error(submit(0, 3, all_reduce(10'000)), StatusCode::ResourceExhausted,
                       {"'layer.weight' step 3", "float32 × 10000", "40000"}));
  EXPECT_TRUE(actions_.log.empty());
}

TEST_F(OperationTableTest, AnEngineThatTakesNoMoreIsTheEnd) {
  make({{0}, {1}}, 0);
  actions_.refuses = true;
  const Status refused = submit(0, 1, all_reduce(1));
  EXPECT_EQ(refused.code(), StatusCode::ResourceExhausted);
  EXPECT_EQ(refused.message(), "job 'train': too many operations are in flight on this node");
  EXPECT_TRUE(actions_.ready.empty());  // the predecessor must not send for it
}

TEST_F(OperationTableTest, ABarrierHasNoDataForItsRanks) {
  make({{0, 1}}, 0);
  publish(1, signature_of(Collective::Barrier), 2);
  const Operation& operation = actions_.started[0];
  EXPECT_EQ(operation.collective, Collective::AllReduce);  // of one byte that nobody looks at
  EXPECT_EQ(operation.dtype, DataType::Uint8);
  EXPECT_EQ(operation.count, 1u);
  EXPECT_FALSE(input_is(operation, 0, 0));
  ASSERT_EQ(actions_.published.size(), 2u);
  EXPECT_EQ(actions_.published[0].bytes, 0u);
  EXPECT_EQ(actions_.counters.operations[static_cast<size_t>(Collective::Barrier)], 1u);
}

TEST_F(OperationTableTest, AReduceScatterGivesEveryRankItsBlock) {
  // Blocks in ring order: ranks 1, 3 (the other node), then 0, 2 (this one).
  make({{1, 3}, {0, 2}}, 1);
  ASSERT_TRUE(submit(0, 1, signature_of(Collective::ReduceScatter, 10)).is_ok());
  ASSERT_TRUE(submit(1, 1, signature_of(Collective::ReduceScatter, 10)).is_ok());
  table_->on_done(key(1));
  ASSERT_EQ(actions_.published.size(), 2u);
  const uint64_t result = static_cast<uint64_t>(actions_.started[0].result - memory_->data());
  EXPECT_EQ(actions_.published[0].offset, result + 2 * 40);
  EXPECT_EQ(actions_.published[0].bytes, 40u);
  EXPECT_EQ(actions_.published[1].offset, result + 3 * 40);
  EXPECT_EQ(actions_.published[1].bytes, 40u);
}

TEST_F(OperationTableTest, AnAllGatherGivesEveryRankEverything) {
  make({{0, 2}, {1}}, 0);
  ASSERT_TRUE(submit(0, 1, signature_of(Collective::AllGather, 10)).is_ok());
  ASSERT_TRUE(submit(1, 1, signature_of(Collective::AllGather, 10)).is_ok());
  table_->on_done(key(1));
  ASSERT_EQ(actions_.published.size(), 2u);
  EXPECT_EQ(actions_.published[0].bytes, 120u);
  EXPECT_EQ(actions_.published[1].bytes, 120u);
  EXPECT_EQ(actions_.published[0].offset, actions_.published[1].offset);
}

TEST_F(OperationTableTest, ARankThatLeavesGivesEverythingBack) {
  make({{0, 1}}, 0);
  publish(1, all_reduce(10), 2);
  publish(2, all_reduce(10), 2);
  for (const uint64_t step : {1, 2}) {
    table_->on_retired(key(step));
    ASSERT_TRUE(table_->release(1, key(step)).is_ok());
  }
  EXPECT_FALSE(memory_is_free());
  EXPECT_TRUE(table_->on_rank_left(0).is_ok());
  EXPECT_TRUE(memory_is_free());
}

TEST_F(OperationTableTest, ARankThatLeftAfterSubmittingIsNotTold) {
  make({{0, 1}}, 0);
  ASSERT_TRUE(submit(0, 1, all_reduce(10)).is_ok());
  ASSERT_TRUE(submit(1, 1, all_reduce(10)).is_ok());
  EXPECT_TRUE(table_->on_rank_left(0).is_ok());
  table_->on_done(key(1));
  ASSERT_EQ(actions_.published.size(), 1u);
  EXPECT_EQ(actions_.published[0].local_rank, 1u);
  table_->on_retired(key(1));
  EXPECT_TRUE(table_->release(1, key(1)).is_ok());
  EXPECT_TRUE(memory_is_free());
}

TEST_F(OperationTableTest, ARankThatLeavesWithoutSubmittingIsNamed) {
  make({{0, 1}}, 0);
  ASSERT_TRUE(submit(0, 1, all_reduce(10)).is_ok());
  EXPECT_TRUE(is_error(table_->on_rank_left(1), StatusCode::JobFailed,
                       {"rank 1", "'layer.weight' step 1", "float32 × 10"}));
}

TEST_F(OperationTableTest, ASubmissionAfterARankHasLeftNamesIt) {
  make({{0, 1}}, 0);
  ASSERT_TRUE(table_->on_rank_left(1).is_ok());
  EXPECT_TRUE(is_error(submit(0, 1, all_reduce(10)), StatusCode::JobFailed, {"rank 1"}));
}

}  // namespace
}  // namespace braid
