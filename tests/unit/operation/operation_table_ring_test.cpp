// SPDX-License-Identifier: Apache-2.0
// Readiness between neighbours.
#include <set>

#include "base/errors_testing.h"
#include "operation/operation_table_testing.h"

namespace braid {
namespace {

using namespace std::string_view_literals;
using testing::all_reduce;
using testing::is_error;

// This node (place 0) has ranks 2 and 5; the next one 0 and 3; the last one 1 and 4.
class OperationTableRingTest : public testing::OperationTableTest {
 protected:
  OperationTableRingTest() { make({{2, 5}, {0, 3}, {1, 4}}, 0); }

  void submit_both(uint64_t step) {
    ASSERT_TRUE(submit(0, step, all_reduce(10)).is_ok());
    ASSERT_TRUE(submit(1, step, all_reduce(10)).is_ok());
  }
};

TEST_F(OperationTableRingTest, GoesWhenTheSuccessorIsReady) {
  submit_both(1);
  EXPECT_EQ(actions_.log, (std::vector<std::string>{"start", "ready"}));
  EXPECT_EQ(actions_.ready[0], (std::pair{key(1), all_reduce(10)}));
  EXPECT_EQ(actions_.observed.size(), 1u);
  ASSERT_TRUE(on_successor_ready(key(1), all_reduce(10)).is_ok());
  EXPECT_EQ(actions_.log, (std::vector<std::string>{"start", "ready", "go"}));
  EXPECT_EQ(actions_.gone[0], key(1));
  EXPECT_EQ(actions_.observed.size(), 2u);
}

TEST_F(OperationTableRingTest, RemembersASuccessorThatWasReadyEarly) {
  ASSERT_TRUE(on_successor_ready(key(1), all_reduce(10)).is_ok());
  ASSERT_TRUE(on_successor_ready(key(2), all_reduce(10)).is_ok());
  EXPECT_TRUE(actions_.log.empty());
  submit_both(2);
  EXPECT_EQ(actions_.log, (std::vector<std::string>{"start", "ready", "go"}));
  EXPECT_EQ(actions_.gone[0], key(2));
}

TEST_F(OperationTableRingTest, ASuccessorMayBeReadyWhileRanksGatherHere) {
  ASSERT_TRUE(submit(1, 1, all_reduce(10)).is_ok());
  ASSERT_TRUE(on_successor_ready(key(1), all_reduce(10)).is_ok());
  EXPECT_TRUE(actions_.log.empty());
  ASSERT_TRUE(submit(0, 1, all_reduce(10)).is_ok());
  EXPECT_EQ(actions_.log, (std::vector<std::string>{"start", "ready", "go"}));
}

constexpr auto kDisagreement = {"'layer.weight' step 1"sv, "rank 2"sv, "float32 × 10"sv, "rank 0"sv,
                                "float32 × 20"sv};

TEST_F(OperationTableRingTest, ALateSuccessorThatDisagreesIsNamed) {
  submit_both(1);
  EXPECT_TRUE(
      is_error(on_successor_ready(key(1), all_reduce(20)), StatusCode::Mismatch, kDisagreement));
  EXPECT_TRUE(actions_.gone.empty());
}

TEST_F(OperationTableRingTest, AnEarlySuccessorThatDisagreesIsNamed) {
  ASSERT_TRUE(on_successor_ready(key(1), all_reduce(20)).is_ok());
  ASSERT_TRUE(submit(0, 1, all_reduce(10)).is_ok());
  EXPECT_TRUE(is_error(submit(1, 1, all_reduce(10)), StatusCode::Mismatch, kDisagreement));
  EXPECT_TRUE(actions_.gone.empty());
}

TEST_F(OperationTableRingTest, ASuccessorThatDisagreesWhileRanksGatherIsNamedAtOnce) {
  ASSERT_TRUE(submit(0, 1, all_reduce(10)).is_ok());
  EXPECT_TRUE(
      is_error(on_successor_ready(key(1), all_reduce(20)), StatusCode::Mismatch, kDisagreement));
}

TEST_F(OperationTableRingTest, EarlyReadinessIsBounded) {
  for (uint64_t step = 0; step < Readiness::kEarlyMax; ++step) {
    ASSERT_TRUE(on_successor_ready(key(step), all_reduce(10)).is_ok());
  }
  const Status flood = on_successor_ready(key(1ull << 40), all_reduce(10));
  EXPECT_EQ(flood.code(), StatusCode::Protocol);
  submit_both(7);  // makes room
  EXPECT_EQ(actions_.gone.size(), 1u);
  EXPECT_TRUE(on_successor_ready(key(1ull << 40), all_reduce(10)).is_ok());
}

TEST_F(OperationTableRingTest, EarlyReadinessIsItsUsersMemory) {
  constexpr uint64_t kUser = 1000;
  constexpr uint64_t kSteps = Readiness::kStepBytes / Readiness::kCostBytes;  // that one step holds
  UserLimits limits;
  limits.memory_of_user = 4 * Readiness::kStepBytes;
  const auto quotas = std::make_shared<UserQuotas>(limits, std::set<uid_t>{});
  const auto used = [&] { return quotas->used(kUser, UserResource::BufferBytes); };
  table_->set_early_charge({quotas, kUser, UserResource::BufferBytes});
  uint64_t step = 0;
  for (; step < 4 * kSteps; ++step)
    ASSERT_TRUE(on_successor_ready(key(step), all_reduce(10)).is_ok()) << step;
  ASSERT_TRUE(on_successor_ready(key(0), all_reduce(10)).is_ok()) << "again";
  EXPECT_EQ(used(), 4 * Readiness::kStepBytes);
  for (uint64_t submitted = 0; submitted < 2 * kSteps; ++submitted) submit_both(submitted);
  EXPECT_EQ(used(), 2 * Readiness::kStepBytes) << "what was submitted is early no more";
  for (uint64_t end = step + 2 * kSteps; step < end; ++step)
    ASSERT_TRUE(on_successor_ready(key(step), all_reduce(10)).is_ok()) << step;
  EXPECT_TRUE(
      is_error(on_successor_ready(key(step), all_reduce(10)), StatusCode::ResourceExhausted,
               {"job 'train': other nodes are ready for ", "client.user_result_bytes_max"}));
}

TEST_F(OperationTableRingTest, ASuccessorThatRepeatsItselfAboutWhatIsDoneIsIgnored) {
  submit_both(1);
  ASSERT_TRUE(on_successor_ready(key(1), all_reduce(10)).is_ok());
  table_->on_done(key(1));
  EXPECT_TRUE(on_successor_ready(key(1), all_reduce(10)).is_ok());
  EXPECT_EQ(actions_.gone.size(), 1u);
  EXPECT_TRUE(table_->on_rank_left(0).is_ok());  // and it waits for nothing
}

TEST_F(OperationTableRingTest, ARankThatLeavesWhileTheSuccessorIsReadyIsNamed) {
  ASSERT_TRUE(on_successor_ready(key(1), all_reduce(10)).is_ok());
  EXPECT_TRUE(is_error(table_->on_rank_left(1), StatusCode::JobFailed, {"rank 5", "float32 × 10"}));
}

TEST_F(OperationTableRingTest, ASuccessorThatIsReadyWhenARankHasLeftIsAnError) {
  ASSERT_TRUE(table_->on_rank_left(0).is_ok());
  EXPECT_TRUE(
      is_error(on_successor_ready(key(1), all_reduce(10)), StatusCode::JobFailed, {"rank 2"}));
}

TEST_F(OperationTableRingTest, ARankMayLeaveAfterItsLastOperation) {
  submit_both(1);
  ASSERT_TRUE(table_->on_rank_left(0).is_ok());
  EXPECT_TRUE(on_successor_ready(key(1), all_reduce(10)).is_ok());
  EXPECT_EQ(actions_.gone.size(), 1u);
}

TEST_F(OperationTableRingTest, SmallAllReducesAreDirect) {
  make({{2, 5}, {0, 3}, {1, 4}}, 0, 1 << 20, 40);
  uint64_t step = 0;
  const auto is_direct = [&](const Signature& signature) {
    EXPECT_TRUE(submit(0, ++step, signature).is_ok());
    EXPECT_TRUE(submit(1, step, signature).is_ok());
    return actions_.started.back().is_direct;
  };
  EXPECT_TRUE(is_direct(all_reduce(10)));
  EXPECT_FALSE(is_direct(all_reduce(11)));
  EXPECT_FALSE(is_direct(all_reduce(0)));
  EXPECT_TRUE(is_direct(testing::signature_of(Collective::Barrier)));
  EXPECT_FALSE(is_direct(testing::signature_of(Collective::Broadcast, 4)));
  EXPECT_FALSE(is_direct(testing::signature_of(Collective::AllGather, 1)));
}

// Many nodes send many parts to one that is late, and it must be able to keep them all.
TEST_F(OperationTableRingTest, WithManyNodesOnlyWhatCanBeKeptIsDirect) {
  const auto is_direct = [&](uint64_t step, uint64_t count) {
    EXPECT_TRUE(submit(0, step, all_reduce(count)).is_ok());
    return actions_.started.back().is_direct;
  };
  make({{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}, 3, 1 << 20, 4 << 20);
  EXPECT_TRUE(is_direct(1, 85'598 / 4));
  EXPECT_FALSE(is_direct(2, 85'598 / 4 + 1));
  make({{0}, {1}}, 0, 8 << 20, 4 << 20);
  EXPECT_TRUE(is_direct(1, 1 << 20));
}

class OperationTableDirectTest : public OperationTableRingTest {
 protected:
  OperationTableDirectTest() { make({{2, 5}, {0, 3}, {1, 4}}, 0, 1 << 20, 40); }
};

TEST_F(OperationTableDirectTest, WaitsForNobodyAndTellsItsReadinessOnlyIfItHangs) {
  submit_both(1);
  EXPECT_EQ(actions_.log, (std::vector<std::string>{"start"}));
  EXPECT_EQ(actions_.observed.size(), 2u) << "it waits for nobody";
  ASSERT_TRUE(table_->tell_readiness().is_ok());
  EXPECT_TRUE(actions_.ready.empty()) << "it has only begun";
  ASSERT_TRUE(table_->tell_readiness().is_ok());
  ASSERT_TRUE(table_->tell_readiness().is_ok());
  ASSERT_EQ(actions_.ready.size(), 1u);
  EXPECT_EQ(actions_.ready[0].first, key(1));
  ASSERT_TRUE(on_successor_ready(key(1), all_reduce(10)).is_ok());
  EXPECT_TRUE(actions_.gone.empty());
}

TEST_F(OperationTableDirectTest, RanksThatDisagreeAreNamed) {
  submit_both(1);
  const Status mismatch = on_successor_ready(key(1), all_reduce(9));
  EXPECT_EQ(mismatch.code(), StatusCode::Mismatch) << mismatch.to_string();
}

TEST_F(OperationTableDirectTest, ReadinessThatComesAfterTheEndIsNotKept) {
  for (uint64_t step = 1; step <= 2; ++step) {
    submit_both(step);
    table_->on_done(key(step));
    table_->on_retired(key(step));
    for (const uint32_t local_rank : {0, 1})
      ASSERT_TRUE(table_->release(local_rank, key(step)).is_ok());
  }
  ASSERT_TRUE(table_->on_rank_left(0).is_ok());
  EXPECT_TRUE(on_successor_ready(key(1), all_reduce(10)).is_ok());
  EXPECT_TRUE(on_successor_ready(key(2), all_reduce(10)).is_ok());
  EXPECT_FALSE(on_successor_ready(key(3), all_reduce(10)).is_ok());
}

TEST_F(OperationTableRingTest, WhatRanksMustAgreeOnHasASignature) {
  make({{2, 5}, {0, 3}, {1, 4}}, 0, 1 << 20, 4000);
  std::set<uint32_t> signatures;
  uint64_t step = 0;
  Signature coded = all_reduce(10);
  coded.codec = default_codec_spec(CodecKind::BFloat16);
  for (const Signature& signature :
       {all_reduce(10), all_reduce(11), all_reduce(10, DataType::Int32),
        all_reduce(10, DataType::Float32, Reduction::Max), coded, all_reduce(10)}) {
    EXPECT_TRUE(submit(0, ++step, signature).is_ok());
    EXPECT_TRUE(submit(1, step, signature).is_ok());
    signatures.insert(actions_.started.back().signature);
  }
  EXPECT_EQ(signatures.size(), 5u);
}

TEST_F(OperationTableRingTest, NothingIsDirectOnOneNodeOrWhereLinksLeadToTheSuccessor) {
  make({{0, 1}}, 0, 1 << 20, 1000);
  submit_both(1);
  EXPECT_FALSE(actions_.started.back().is_direct);
  make({{2, 5}, {0, 3}, {1, 4}}, 0, 1 << 20, 0);
  submit_both(1);
  EXPECT_FALSE(actions_.started.back().is_direct);
}

}  // namespace
}  // namespace braid
