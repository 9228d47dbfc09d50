// SPDX-License-Identifier: Apache-2.0
// Operations whose owners keep state.
#include "base/errors_testing.h"
#include "operation/operation_table_testing.h"

namespace braid {
namespace {

using testing::all_reduce;
using testing::is_error;

// 'layer.weight', 100 elements of float32, from element 40 of its set on.
class OperationTableUpdatesTest : public testing::OperationTableTest {
 protected:
  static constexpr uint64_t kCount = 100;

  OperationTableUpdatesTest() {
    auto created = ShardState::create({1000, 16, 2, 0}, 2, DataType::Float32);
    EXPECT_TRUE(created.is_ok());
    shard_ = *created;
    kept_ = kept_as(form_of(kCount, 40));
  }
  PlannedTensor kept_as(OperationForm form, uint32_t member = 0) const {
    form.shard = shard_;
    return planned_as(std::move(form), member);
  }
  static Signature signature() {
    Signature result = all_reduce(kCount, DataType::Float32, Reduction::Average);
    result.owner_step = OwnerStepKind::Optimizer;
    return result;
  }
  static UpdateStep step_of(UpdateAction action = UpdateAction::Apply, double rate = 0.5) {
    UpdateStep step;
    step.action = action;
    step.learning_rate = rate;
    return step;
  }
  Status update(uint32_t local_rank, uint64_t step, const UpdateStep& update) {
    Submission one = submission(local_rank, step, signature());
    one.update = update;
    return table_->submit(one, kept_);
  }
  // As its neighbour says it.
  static Signature said(const UpdateStep& update, uint64_t updates) {
    Signature result = signature();
    result.update = update;
    result.updates = updates;
    return result;
  }
  // A group of two tensors, of which the first one is applied.
  void expect_refused_in_one_group(UpdateAction other) {
    auto group = std::make_shared<TensorGroup>();
    for (uint64_t i = 0; i < 2; ++i) {
      group->members.push_back({kTensor + i, name_, 10, 40 * i, 0, 40 + 10 * i});
      group->count += 10;
    }
    group->hash = 7;
    OperationForm form;
    form.group = group;
    PlannedTensor planned = kept_as(std::move(form));
    const auto member = [&](uint32_t i, const UpdateStep& step) {
      Submission one = submission(0, 0, signature());
      one.tensor = kTensor + i;
      one.ticket = 1 + i;
      one.input_bytes = 40;
      one.update = step;
      planned.member = i;
      return table_->submit(one, planned);
    };
    ASSERT_TRUE(member(0, step_of(UpdateAction::Apply, 0.5)));
    EXPECT_TRUE(is_error(member(1, step_of(other, 0.5)), StatusCode::InvalidArgument,
                         {"all weights of a registration have one action in a step"}));
  }

  std::shared_ptr<ShardState> shard_;
  PlannedTensor kept_;
};

TEST_F(OperationTableUpdatesTest, WhatIsPushedHasNoResult) {
  make({{0}, {1}}, 0);
  ASSERT_TRUE(update(0, 0, step_of(UpdateAction::Apply)));
  table_->on_done(key(0));
  EXPECT_EQ(actions_.published.back().bytes, 4 * kCount);
  ASSERT_TRUE(update(0, 1, step_of(UpdateAction::Push)));
  table_->on_done(key(1));
  EXPECT_EQ(actions_.published.back().bytes, 0u);
}

// The state is of 1000 elements.
TEST_F(OperationTableUpdatesTest, NoOperationHasElementsBehindTheState) {
  make({{0}}, 0);
  const auto update_from = [this](uint64_t first, uint64_t step) {
    Submission one = submission(0, step, signature());
    one.update = step_of();
    return table_->submit(one, kept_as(form_of(kCount, first)));
  };
  EXPECT_TRUE(update_from(900, 0));
  for (const uint64_t first : {uint64_t{901}, uint64_t{1000}, UINT64_MAX - 50}) {
    make({{0}}, 0);
    EXPECT_TRUE(is_error(update_from(first, 1), StatusCode::Mismatch,
                         {"beyond those for which the optimizer's state is kept"}));
  }
}

TEST_F(OperationTableUpdatesTest, OnlyWholeAllReducesAreMeasured) {
  make({{0}, {1}}, 0);
  ASSERT_TRUE(update(0, 0, step_of(UpdateAction::Load)));
  EXPECT_TRUE(actions_.observed.empty());
  table_->on_done(key(0));
  ASSERT_TRUE(update(0, 1, step_of()));
  EXPECT_EQ(std::get<0>(actions_.observed.back()), "start");
}

// Elements are in one operation of a step each; those of another step wait.
TEST_F(OperationTableUpdatesTest, TheNextStepsOperationWaitsForTheOneBefore) {
  make({{0}, {1}}, 0);
  ASSERT_TRUE(update(0, 0, step_of(UpdateAction::Load)));
  ASSERT_TRUE(update(0, 1, step_of()));
  EXPECT_EQ(actions_.started.size(), 1u);
  table_->on_done(key(0));
  EXPECT_EQ(actions_.started.size(), 2u);
}

TEST_F(OperationTableUpdatesTest, RanksOfANodeThatDisagreeAreNamed) {
  make({{0, 2}, {1}}, 0);
  ASSERT_TRUE(update(0, 0, step_of(UpdateAction::Apply, 0.5)));
  EXPECT_TRUE(is_error(update(1, 0, step_of(UpdateAction::Apply, 0.25)), StatusCode::Mismatch,
                       {"'layer.weight' step 0", "rank 2", "lr 0.25", "1", "lr 0.5"}));
}

TEST_F(OperationTableUpdatesTest, NodesThatDisagreeAreNamed) {
  make({{0}, {1}}, 0);
  ASSERT_TRUE(update(0, 0, step_of(UpdateAction::Apply, 0.5)));
  ASSERT_EQ(actions_.ready.size(), 1u);
  const Signature own = actions_.ready.front().second;
  EXPECT_EQ(own.update, step_of(UpdateAction::Apply, 0.5));
  EXPECT_NE(own.updates, 0u);
  EXPECT_TRUE(is_error(
      on_successor_ready(key(0), said(step_of(UpdateAction::Apply, 0.25), own.updates + 1)),
      StatusCode::Mismatch, {"sgd (lr 0.5), update 1", "sgd (lr 0.25), update 1"}));
}

// What this node's ranks ask for is not known before all of them have said so.
TEST_F(OperationTableUpdatesTest, AReadinessThatComesEarlyIsComparedLater) {
  make({{0, 1}, {2}}, 0);
  ASSERT_TRUE(update(0, 0, step_of()));
  EXPECT_TRUE(on_successor_ready(key(0), said(step_of(UpdateAction::Apply, 0.25), 77)));
  const Status refused = update(1, 0, step_of());
  EXPECT_EQ(refused.code(), StatusCode::Mismatch);
}

TEST_F(OperationTableUpdatesTest, MergedTensorsHaveOneAction) {
  for (const UpdateAction other : {UpdateAction::Push, UpdateAction::Estimate}) {
    make({{0}, {1}}, 0);
    expect_refused_in_one_group(other);
  }
}

}  // namespace
}  // namespace braid
