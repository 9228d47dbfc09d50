// SPDX-License-Identifier: Apache-2.0
// Operations of several tensors that a plan has merged.
#include <algorithm>
#include <numeric>

#include "base/errors_testing.h"
#include "operation/operation_table_testing.h"

namespace braid {
namespace {

using testing::all_reduce;
using testing::is_error;

// A group of 'a' (10 elements), 'b' (20) and 'c' (5), float32.
class OperationTableGroupTest : public testing::OperationTableTest {
 protected:
  static constexpr uint64_t kCount = 35;
  static constexpr uint64_t kOffsets[] = {0, 40, 120};
  static constexpr uint64_t kBytes[] = {40, 80, 20};

  OperationTableGroupTest() : form_(make_form(77)) {}

  static std::shared_ptr<const OperationForm> make_form(uint64_t hash) {
    auto group = std::make_shared<TensorGroup>();
    uint64_t tensor = kTensor;
    for (const auto& [name, count] : {std::pair{"a", 10u}, {"b", 20u}, {"c", 5u}}) {
      group->members.push_back(
          {tensor++, std::make_shared<const std::string>(name), count, 4 * group->count});
      group->count += count;
    }
    group->hash = hash;
    auto form = std::make_shared<OperationForm>();
    form->group = std::move(group);
    return form;
  }
  static Signature signature(Reduction reduction = Reduction::Sum, uint64_t group = 77) {
    Signature result = all_reduce(kCount, DataType::Float32, reduction);
    result.group = group;
    return result;
  }
  static OperationKey member_key(uint64_t step, uint32_t member) {
    return key(step, kTensor + member);
  }
  static uint64_t ticket(uint32_t local_rank, uint64_t step, uint32_t member) {
    return 100 * step + 10 * local_rank + member + 1;
  }

  Submission part(uint32_t local_rank, uint64_t step, uint32_t member) {
    Submission result = submission(local_rank, step, all_reduce(3));  // the plan says how many
    result.tensor = kTensor + member;
    result.name = form_->group->members[member].name;
    result.ticket = ticket(local_rank, step, member);
    result.input = memory_of_[local_rank] + kPlaces_[member];
    result.input_bytes = kBytes[member];
    return result;
  }
  Status submit_part(uint32_t local_rank, uint64_t step, uint32_t member) {
    return table_->submit(part(local_rank, step, member), {form_, member});
  }
  void submit_all(uint64_t step, uint32_t local_ranks) {
    for (uint32_t rank = 0; rank < local_ranks; ++rank) {
      for (uint32_t member = 0; member < 3; ++member)
        ASSERT_TRUE(submit_part(rank, step, member).is_ok());
    }
  }

  const std::shared_ptr<const OperationForm> form_;
  // Members lie in the arenas in another order than in the group.
  const uint64_t kPlaces_[3] = {256, 0, 512};
  alignas(64) uint8_t memory_of_[4][1024] = {};
};

TEST_F(OperationTableGroupTest, StartsWhenAllLocalRanksHaveSubmittedAllMembers) {
  make({{0, 1}}, 0);
  std::vector<std::pair<uint32_t, uint32_t>> parts;
  for (uint32_t i = 0; i < 6; ++i) parts.emplace_back(i / 3, i % 3);
  uint64_t step = 0;
  do {  // in every order
    for (size_t i = 0; i + 1 < parts.size(); ++i)
      ASSERT_TRUE(submit_part(parts[i].first, step, parts[i].second).is_ok());
    ASSERT_EQ(actions_.started.size(), step);
    EXPECT_EQ(table_->pending(), 1u);
    ASSERT_TRUE(submit_part(parts[5].first, step, parts[5].second).is_ok());
    ASSERT_EQ(actions_.started.size(), step + 1);
    const Operation& operation = actions_.started.back();
    EXPECT_EQ(operation.key, key(step));  // by its first tensor
    EXPECT_EQ(operation.count, kCount);
    table_->on_done(key(step));
    table_->on_retired(key(step));
    for (const auto& [rank, member] : parts)
      ASSERT_TRUE(table_->release(rank, member_key(step, member)).is_ok());
    ASSERT_TRUE(memory_is_free());
    ++step;
  } while (std::next_permutation(parts.begin(), parts.end()));
  EXPECT_EQ(step, 720u);
}

// The group's counts are those of the rank whose registration came first.
TEST_F(OperationTableGroupTest, NoMoreIsReadThanTheRankItselfHasRegistered) {
  make({{0, 1}}, 0);
  for (uint32_t member = 0; member < 3; ++member) ASSERT_TRUE(submit_part(0, 4, member).is_ok());
  Submission shorter = part(1, 4, 1);
  shorter.input_bytes = 4;
  EXPECT_TRUE(is_error(table_->submit(shorter, {form_, 1}), StatusCode::Mismatch,
                       {"rank 1", "4", "'b' step 4", "80"}));
  EXPECT_EQ(table_->submit(part(1, 4, 1), {form_, 0}).code(), StatusCode::Mismatch);
}

TEST_F(OperationTableGroupTest, EveryTicketIsToldItsMembersPartOfTheResult) {
  make({{0, 1}}, 0);
  submit_all(4, 2);
  table_->on_done(key(4));
  ASSERT_EQ(actions_.published.size(), 6u);
  const auto result = static_cast<uint64_t>(actions_.started[0].result - memory_->data());
  for (uint32_t i = 0; i < 6; ++i) {
    const uint32_t member = i % 3;
    EXPECT_EQ(actions_.published[i].local_rank, i / 3);
    EXPECT_EQ(actions_.published[i].ticket, ticket(i / 3, 4, member));
    EXPECT_EQ(actions_.published[i].offset, result + kOffsets[member]);
    EXPECT_EQ(actions_.published[i].bytes, kBytes[member]);
  }
  EXPECT_EQ(table_->log().operations_done(), 1u);
  EXPECT_EQ(table_->log().bytes_done(), 4 * kCount);
}

TEST_F(OperationTableGroupTest, TheExtentIsFreeWhenAllMembersOfAllLocalRanksAreBack) {
  std::vector<uint32_t> order(7);  // 6: retired; else a part
  std::iota(order.begin(), order.end(), 0);
  make({{0, 1}}, 0);
  uint64_t step = 0;
  do {
    submit_all(step, 2);
    table_->on_done(key(step));
    for (const uint32_t i : order) {
      ASSERT_FALSE(memory_is_free());
      if (i == 6) {
        table_->on_retired(key(step));
        continue;
      }
      ASSERT_TRUE(table_->release(i / 3, member_key(step, i % 3)).is_ok());
      // Twice counts once; nothing is left to count it for after the last.
      ASSERT_TRUE(table_->release(i / 3, member_key(step, i % 3)).is_ok());
    }
    ASSERT_TRUE(memory_is_free());
    actions_.forget();
    ++step;
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(OperationTableGroupTest, NoMemberIsSubmittedTwice) {
  make({{3, 5}, {0, 1, 2, 4}}, 0);
  ASSERT_TRUE(submit_part(1, 2, 1).is_ok());
  ASSERT_TRUE(submit_part(0, 2, 1).is_ok());
  EXPECT_TRUE(
      is_error(submit_part(1, 2, 1), StatusCode::InvalidArgument, {"rank 5", "'b' step 2"}));
}

TEST_F(OperationTableGroupTest, MembersMustAgreeAboutTheReduction) {
  make({{0, 1}}, 0);
  ASSERT_TRUE(submit_part(0, 2, 0).is_ok());
  Submission other = part(1, 2, 1);
  other.signature.reduction = Reduction::Max;
  EXPECT_TRUE(is_error(table_->submit(other, {form_, 1}), StatusCode::Mismatch,
                       {"'b' step 2", "rank 0", "float32 × 35", "rank 1", "(max)"}));
}

TEST_F(OperationTableGroupTest, ATensorCannotBePlannedOnOneRankAndByItselfOnAnother) {
  make({{0, 1}}, 0);
  ASSERT_TRUE(submit(1, 2, all_reduce(10)).is_ok());  // the group's first tensor, not planned
  EXPECT_EQ(submit_part(0, 2, 2).code(), StatusCode::Mismatch);
  ASSERT_TRUE(submit_part(0, 3, 2).is_ok());
  EXPECT_EQ(submit(1, 3, all_reduce(10)).code(), StatusCode::Mismatch);
  // Even if the numbers happen to agree.
  ASSERT_TRUE(submit(1, 4, signature()).is_ok());
  EXPECT_EQ(submit_part(0, 4, 2).code(), StatusCode::Mismatch);
  EXPECT_TRUE(actions_.log.empty());
}

TEST_F(OperationTableGroupTest, ANeighbourWithAnotherGroupIsNamedWithBoth) {
  for (const bool is_early : {false, true}) {
    make({{0}, {1}}, 0);
    actions_.forget();
    if (is_early) {
      ASSERT_TRUE(on_successor_ready(key(1), signature(Reduction::Sum, 78)).is_ok());
    }
    ASSERT_TRUE(submit_part(0, 1, 1).is_ok());
    ASSERT_TRUE(submit_part(0, 1, 0).is_ok());
    Status mismatch = submit_part(0, 1, 2);
    if (!is_early) {
      ASSERT_TRUE(mismatch.is_ok());
      mismatch = on_successor_ready(key(1), signature(Reduction::Sum, 78));
    }
    EXPECT_TRUE(is_error(mismatch, StatusCode::Mismatch,
                         {"'a' step 1", "rank 0", "group 4d", "rank 1", "group 4e"}));
    EXPECT_TRUE(actions_.gone.empty());
  }
}

TEST_F(OperationTableGroupTest, GoesWhenTheSuccessorIsReadyForTheSameGroup) {
  make({{0}, {1}}, 0);
  ASSERT_TRUE(on_successor_ready(key(1), signature()).is_ok());
  submit_all(1, 1);
  submit_all(2, 1);
  ASSERT_TRUE(on_successor_ready(key(2), signature()).is_ok());
  EXPECT_EQ(actions_.log,
            (std::vector<std::string>{"start", "ready", "go", "start", "ready", "go"}));
  EXPECT_EQ(actions_.ready[0], (std::pair{key(1), signature()}));
}

TEST_F(OperationTableGroupTest, KnowsWhoHasNotSubmittedAndWhat) {
  make({{4, 6, 7}, {0, 1, 2, 3, 5}}, 0);
  for (const uint32_t member : {0, 1, 2}) ASSERT_TRUE(submit_part(0, 1, member).is_ok());
  ASSERT_TRUE(submit_part(1, 1, 2).is_ok());
  ASSERT_TRUE(submit_part(1, 1, 0).is_ok());
  EXPECT_EQ(table_->log().missing_ranks(key(1)), (std::vector<uint32_t>{6, 7}));
  EXPECT_EQ(table_->log().first_missing(key(1), 6), "b");
  EXPECT_EQ(table_->log().first_missing(key(1), 7), "a");
  EXPECT_EQ(table_->log().first_missing(key(1), 4), "");
  EXPECT_EQ(table_->log().first_missing(key(2), 4),
            "");  // of what nobody has submitted: no members
  ASSERT_TRUE(submit(0, 9, all_reduce(1)).is_ok());
  EXPECT_EQ(table_->log().first_missing(key(9), 6), "");  // a single tensor names itself
}

TEST_F(OperationTableGroupTest, ARankThatLeavesHalfWayThroughAGroupFailsTheJob) {
  make({{0, 1}}, 0);
  ASSERT_TRUE(submit_part(1, 2, 0).is_ok());
  EXPECT_TRUE(is_error(table_->on_rank_left(1), StatusCode::JobFailed,
                       {"rank 1", "'a' and 2 more", "step 2"}));
}

TEST_F(OperationTableGroupTest, AGroupThatALeaverHasNotSubmittedFailsTheJob) {
  make({{0, 1}}, 0);
  ASSERT_TRUE(table_->on_rank_left(1).is_ok());
  EXPECT_TRUE(is_error(submit_part(0, 2, 1), StatusCode::JobFailed,
                       {"rank 1", "'a' and 2 more", "step 2"}));
}

TEST_F(OperationTableGroupTest, ARankThatLeftAfterSubmittingAllMembersIsNotTold) {
  make({{0, 1}}, 0);
  for (const uint32_t member : {2, 0, 1}) ASSERT_TRUE(submit_part(1, 2, member).is_ok());
  ASSERT_TRUE(table_->on_rank_left(1).is_ok());
  for (const uint32_t member : {0, 1, 2}) ASSERT_TRUE(submit_part(0, 2, member).is_ok());
  ASSERT_EQ(actions_.started.size(), 1u);
  table_->on_done(key(2));
  ASSERT_EQ(actions_.published.size(), 3u);
  for (const auto& published : actions_.published) EXPECT_EQ(published.local_rank, 0u);
  table_->on_retired(key(2));
  for (const uint32_t member : {0, 1, 2}) {
    EXPECT_FALSE(memory_is_free());
    ASSERT_TRUE(table_->release(0, member_key(2, member)).is_ok());
  }
  EXPECT_TRUE(memory_is_free());
}

TEST_F(OperationTableGroupTest, ALeaverGivesAllItsMembersBack) {
  make({{0, 1}}, 0);
  submit_all(2, 2);
  table_->on_done(key(2));
  table_->on_retired(key(2));
  ASSERT_TRUE(table_->release(1, member_key(2, 1)).is_ok());
  for (const uint32_t member : {0, 1, 2})
    ASSERT_TRUE(table_->release(0, member_key(2, member)).is_ok());
  EXPECT_FALSE(memory_is_free());
  ASSERT_TRUE(table_->on_rank_left(1).is_ok());
  EXPECT_TRUE(memory_is_free());
}

// What a tensor was a member of in one step says nothing about another.
TEST_F(OperationTableGroupTest, StepsMayHaveDifferentGroups) {
  make({{0}}, 0);
  submit_all(1, 1);
  Submission alone = submission(0, 2, all_reduce(20));
  alone.tensor = kTensor + 1;
  alone.ticket = 900;
  ASSERT_TRUE(table_->submit(alone).is_ok());
  ASSERT_EQ(actions_.started.size(), 2u);
  EXPECT_EQ(actions_.started[1].key, member_key(2, 1));
  table_->on_done(member_key(2, 1));
  ASSERT_EQ(actions_.published.size(), 1u);
  EXPECT_EQ(actions_.published[0].ticket, 900u);
  table_->on_retired(member_key(2, 1));
  ASSERT_TRUE(table_->release(0, member_key(2, 1)).is_ok());
  table_->on_done(key(1));
  table_->on_retired(key(1));
  for (const uint32_t member : {0, 1, 2})
    ASSERT_TRUE(table_->release(0, member_key(1, member)).is_ok());
  EXPECT_TRUE(memory_is_free());
}

}  // namespace
}  // namespace braid
