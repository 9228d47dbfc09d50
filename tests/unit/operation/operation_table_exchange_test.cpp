// SPDX-License-Identifier: Apache-2.0
// Gather, scatter and all-to-all: who waits for whom, what each rank gets, who disagrees.
#include "base/errors_testing.h"
#include "operation/operation_table_testing.h"

namespace braid {
namespace {

using Counts = std::vector<uint64_t>;
using testing::all_reduce;
using testing::is_error;
using testing::names;
using testing::signature_of;

// The first of three nodes: ranks 0 and 3 here, 1 and 2 on nodes of their own.
class OperationTableExchangeTest : public testing::OperationTableTest {
 protected:
  OperationTableExchangeTest() { make({{0, 3}, {1}, {2}}, 0); }

  static Signature all_to_all(DataType dtype = DataType::Float32) {
    Signature signature = signature_of(Collective::AllToAll);
    signature.dtype = dtype;
    return signature;
  }
  Status exchange(uint32_t local_rank, uint64_t step, const Signature& signature, const Counts& to,
                  const Counts& from) {
    Submission one = submission(local_rank, step, signature);
    one.splits = std::make_shared<const Splits>(SplitCounts(to), SplitCounts(from));
    return table_->submit(one);
  }
  // An all-to-all in which these two agree with each other.
  void submit_both(uint64_t step) {
    ASSERT_TRUE(exchange(0, step, all_to_all(), {1, 2, 0, 4}, {1, 5, 0, 3}).is_ok());
    ASSERT_TRUE(exchange(1, step, all_to_all(), {3, 6, 7, 8}, {4, 0, 9, 8}).is_ok());
  }
  // What the node at `place` says, that expects so many from each rank here, and gives so many.
  Status others_say(uint32_t place, uint64_t step, const Counts& expected, const Counts& given) {
    Signature signature = all_to_all();
    uint64_t expected_sum = 0;
    uint64_t given_sum = 0;
    const JobHash job(kJob);
    const uint32_t there = place;  // its only rank
    for (const uint32_t i : {0, 1}) {
      const uint32_t here = i == 0 ? 0 : 3;
      signature.count += expected[i];
      signature.given += given[i];
      if (expected[i] != 0) expected_sum += job.of(JobHash::Splits, {here, there, expected[i]});
      if (given[i] != 0) given_sum += job.of(JobHash::Splits, {there, here, given[i]});
    }
    signature.group = job.of(JobHash::Splits, {expected_sum, given_sum});
    return table_->on_node_ready(place, key(step), signature);
  }
};

TEST_F(OperationTableExchangeTest, AnAllToAllWaitsForAllNodesAndIsToldToAll) {
  submit_both(0);
  EXPECT_EQ(actions_.told, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(actions_.ready[0].second.count, 5u) << "5 from rank 1 to rank 0, none to rank 3";
  EXPECT_EQ(actions_.ready[0].second.given, 2u + 6u);
  EXPECT_EQ(actions_.ready[1].second.count, 9u);
  ASSERT_TRUE(others_say(2, 0, {0, 7}, {0, 9}).is_ok());
  EXPECT_TRUE(actions_.gone.empty());
  ASSERT_TRUE(others_say(1, 0, {2, 6}, {5, 0}).is_ok());
  EXPECT_EQ(actions_.gone, std::vector{key(0)});
}

TEST_F(OperationTableExchangeTest, WhatOthersAreToldDoesNotDependOnWhoSubmitsFirst) {
  submit_both(0);
  ASSERT_TRUE(exchange(1, 1, all_to_all(), {3, 6, 7, 8}, {4, 0, 9, 8}).is_ok());
  ASSERT_TRUE(exchange(0, 1, all_to_all(), {1, 2, 0, 4}, {1, 5, 0, 3}).is_ok());
  ASSERT_EQ(actions_.ready.size(), 4u);
  EXPECT_EQ(actions_.ready[0].second, actions_.ready[2].second);
  EXPECT_EQ(actions_.ready[1].second, actions_.ready[3].second);
}

TEST_F(OperationTableExchangeTest, EveryRankGetsAResultOfItsOwnSize) {
  submit_both(0);
  table_->on_done(key(0));
  ASSERT_EQ(actions_.published.size(), 2u);
  EXPECT_EQ(actions_.published[0].bytes, 4u * (1 + 5 + 0 + 3));
  EXPECT_EQ(actions_.published[1].bytes, 4u * (4 + 0 + 9 + 8));
  EXPECT_EQ(actions_.published[1].offset, actions_.published[0].offset + 64);
  table_->on_retired(key(0));
  for (uint32_t rank = 0; rank < 2; ++rank) ASSERT_TRUE(table_->release(rank, key(0)).is_ok());
  EXPECT_TRUE(memory_is_free());
}

TEST_F(OperationTableExchangeTest, RanksOfOneNodeThatDisagreeAreNamed) {
  ASSERT_TRUE(exchange(0, 2, all_to_all(), {1, 2, 0, 4}, {1, 5, 0, 3}).is_ok());
  EXPECT_TRUE(is_error(exchange(1, 2, all_to_all(), {3, 6, 7, 8}, {5, 0, 9, 8}),
                       StatusCode::Mismatch,
                       {"'layer.weight' step 2", "rank 0", "4", "rank 3", "5"}));
  EXPECT_TRUE(actions_.log.empty());
}

TEST_F(OperationTableExchangeTest, RanksThatDisagreeAreNamedBeforeAllHaveSubmitted) {
  make({{0, 1, 2}}, 0);
  ASSERT_TRUE(exchange(2, 0, all_to_all(), {1, 2, 3}, {4, 5, 3}).is_ok());
  ASSERT_TRUE(exchange(0, 1, all_to_all(), {1, 2, 3}, {1, 5, 3}).is_ok());
  EXPECT_TRUE(is_error(exchange(0, 0, all_to_all(), {1, 2, 4}, {1, 2, 2}), StatusCode::Mismatch,
                       {"rank 2 gives 1 elements to rank 0, which expects 2"}));
  EXPECT_TRUE(is_error(exchange(1, 1, all_to_all(), {6, 7, 8}, {2, 7, 0}), StatusCode::Mismatch,
                       {"rank 1 gives 6 elements to rank 0, which expects 5"}));
}

TEST_F(OperationTableExchangeTest, ARankThatDisagreesWithItselfIsNamed) {
  EXPECT_TRUE(is_error(exchange(0, 0, all_to_all(), {1, 2, 0, 4}, {2, 5, 0, 3}),
                       StatusCode::Mismatch,
                       {"rank 0 gives 1 elements to rank 0, which expects 2"}));
}

TEST_F(OperationTableExchangeTest, NodesThatDisagreeAreNamed) {
  submit_both(2);
  EXPECT_TRUE(is_error(others_say(1, 2, {2, 5}, {5, 0}), StatusCode::Mismatch,
                       {"'layer.weight' step 2", "rank 0 and 3", "8", "rank 1", "7"}));
  const Status given = others_say(1, 2, {2, 6}, {5, 1});
  EXPECT_TRUE(names(given.message(), {"rank 1 gives 6 elements to rank 0 and 3, which expects 5"}));
  const Status split = others_say(1, 2, {3, 5}, {5, 0});
  EXPECT_TRUE(names(split.message(), {"rank 0 and 3", "rank 1"}));
  EXPECT_FALSE(others_say(2, 2, {0, 0}, {0, 9}).is_ok()) << "who expects nothing says so";
}

TEST_F(OperationTableExchangeTest, WhatAnotherNodeExpectsIsComparedAlsoWhenItComesFirst) {
  ASSERT_TRUE(others_say(1, 0, {2, 5}, {5, 0}).is_ok());
  ASSERT_TRUE(exchange(0, 0, all_to_all(), {1, 2, 0, 4}, {1, 5, 0, 3}).is_ok());
  ASSERT_TRUE(others_say(2, 0, {0, 7}, {0, 9}).is_ok());
  EXPECT_EQ(exchange(1, 0, all_to_all(), {3, 6, 7, 8}, {4, 0, 9, 8}).code(), StatusCode::Mismatch);
}

TEST_F(OperationTableExchangeTest, OtherCollectivesAndTypesDisagreeAsEver) {
  submit_both(0);
  EXPECT_EQ(table_->on_node_ready(1, key(0), all_to_all(DataType::Int32)).code(),
            StatusCode::Mismatch);
  EXPECT_EQ(table_->on_node_ready(1, key(0), all_reduce(10)).code(), StatusCode::Mismatch);
  Signature coded = all_to_all();
  coded.codec = default_codec_spec(CodecKind::BFloat16);
  EXPECT_TRUE(names(table_->on_node_ready(1, key(0), coded).message(),
                    {"'layer.weight' step 0", "rank 0", "rank 1", "codec bf16"}));
}

TEST_F(OperationTableExchangeTest, AGatherWaitsForTheRootAlone) {
  const Signature gather = signature_of(Collective::Gather, 10, 2);
  const Counts none(4, 0);
  ASSERT_TRUE(exchange(0, 0, gather, {0, 0, 10, 0}, none).is_ok());
  ASSERT_TRUE(exchange(1, 0, gather, {0, 0, 10, 0}, none).is_ok());
  EXPECT_TRUE(actions_.told.empty()) << "nobody sends anything here";
  ASSERT_TRUE(table_->on_node_ready(2, key(0), gather).is_ok());
  EXPECT_EQ(actions_.gone, std::vector{key(0)});
  table_->on_done(key(0));
  for (const auto& published : actions_.published) EXPECT_EQ(published.bytes, 0u);
}

TEST_F(OperationTableExchangeTest, TheRootOfAGatherWaitsForNobody) {
  const Signature gather = signature_of(Collective::Gather, 10, 3);
  const Counts none(4, 0);
  ASSERT_TRUE(exchange(0, 0, gather, {0, 0, 0, 10}, none).is_ok());
  ASSERT_TRUE(exchange(1, 0, gather, {0, 0, 0, 10}, {10, 10, 10, 10}).is_ok());
  EXPECT_EQ(actions_.log, (std::vector<std::string>{"start", "ready", "ready", "go"}));
  EXPECT_EQ(actions_.ready[0].second, gather);
}

TEST_F(OperationTableExchangeTest, OfNothingNobodyIsWaitedFor) {
  const Signature gather = signature_of(Collective::Gather, 0, 1);
  const Counts none(4, 0);
  for (uint32_t rank = 0; rank < 2; ++rank)
    ASSERT_TRUE(exchange(rank, 0, gather, none, none).is_ok());
  EXPECT_EQ(actions_.log, (std::vector<std::string>{"start", "go"}));
}

TEST_F(OperationTableExchangeTest, TheRootOfAScatterIsReadyForNobody) {
  const Signature scatter = signature_of(Collective::Scatter, 10, 3);
  const Counts none(4, 0);
  ASSERT_TRUE(exchange(0, 0, scatter, none, {0, 0, 0, 10}).is_ok());
  ASSERT_TRUE(exchange(1, 0, scatter, {10, 10, 10, 10}, {0, 0, 0, 10}).is_ok());
  EXPECT_TRUE(actions_.told.empty());
  ASSERT_TRUE(table_->on_node_ready(1, key(0), scatter).is_ok());
  EXPECT_TRUE(actions_.gone.empty());
  ASSERT_TRUE(table_->on_node_ready(2, key(0), scatter).is_ok());
  EXPECT_EQ(actions_.gone, std::vector{key(0)});
}

TEST_F(OperationTableExchangeTest, ItStartsWhenAllNodesAreReachedAndHoldsUpWhatComesLater) {
  actions_.is_reached = false;
  submit_both(0);
  for (uint32_t rank = 0; rank < 2; ++rank) ASSERT_TRUE(submit(rank, 1, all_reduce(10)).is_ok());
  EXPECT_TRUE(actions_.started.empty());
  ASSERT_TRUE(table_->on_memory(Status::ok()).is_ok());
  EXPECT_TRUE(actions_.started.empty());
  actions_.is_reached = true;
  ASSERT_TRUE(table_->on_reached().is_ok());
  ASSERT_EQ(actions_.started.size(), 2u);
  EXPECT_EQ(actions_.started[0].key, key(0));
}

// 2^62 bytes each: modulo 2^64 the four of them expect nothing.
TEST_F(OperationTableExchangeTest, WhatAllRanksOfANodeExpectDoesNotWrap) {
  make({{0, 1, 2, 3}, {4}}, 0);
  const uint64_t each = uint64_t{1} << 60;
  const Signature scatter = signature_of(Collective::Scatter, each, 4);
  for (uint32_t i = 0; i < 3; ++i)
    ASSERT_TRUE(exchange(i, 0, scatter, Counts(5, 0), {0, 0, 0, 0, each}));
  EXPECT_TRUE(is_error(exchange(3, 0, scatter, Counts(5, 0), {0, 0, 0, 0, each}),
                       StatusCode::ResourceExhausted,
                       {"its ranks expect more than the 1048576 bytes of results"}));
}

}  // namespace
}  // namespace braid
