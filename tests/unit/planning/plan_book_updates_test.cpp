// SPDX-License-Identifier: Apache-2.0
// Weights that their owners update, as the plans of one node see them.
#include "base/errors_testing.h"
#include "planning/plan_book_testing.h"

namespace braid {
namespace {

using testing::is_error;
using testing::planned_tensors;

class PlanBookUpdatesTest : public testing::PlanBookTest {
 protected:
  // 't0', 't1', … with two slots, `codec` on each.
  void make_weights(uint32_t tensors, const CodecSpec& codec = {}) {
    PlanActions actions = noting_actions();
    actions.keep = [this](const PlanSet& set) -> Result<PlanSet::Kept> {
      if (!room) return room;
      PlanSet::Kept kept = *PlanActions().keep(set);
      kept.shard = *ShardState::create({set.elements(), 16, 2, 0}, 2, DataType::Float32);
      return kept;
    };
    make({4}, std::move(actions), 1);
    weights_ = planned_tensors(tensors);
    for (PlanSet::Tensor& tensor : weights_) {
      tensor.state_slots = 2;
      tensor.codec = codec;
    }
  }
  Status update(uint32_t tensor, uint64_t step, UpdateAction action) {
    Submission one = submission(tensor, step);
    one.update.action = action;
    one.signature.owner_step = OwnerStepKind::Optimizer;
    return pass(std::move(one), kSet, now_ns_ += 10);
  }

  std::vector<PlanSet::Tensor> weights_;
  Status room;
};

TEST_F(PlanBookUpdatesTest, EachTensorHasItsPlaceInOneState) {
  make_weights(3);
  add(0, kSet, weights_);
  for (uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(update(i, 0, UpdateAction::Load));
  ASSERT_EQ(passed.size(), 3u);
  ASSERT_NE(passed[0].form().shard, nullptr);
  EXPECT_EQ(passed[0].form().shard->layout().elements, 300u);
  EXPECT_EQ(passed[0].form().shard->slots(), 2u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(passed[i].form().shard, passed[0].form().shard);
    EXPECT_EQ(passed[i].member().first_in_set, 100u * i);
  }
}

TEST_F(PlanBookUpdatesTest, WeightsThatWereNeverLoadedAreNamed) {
  make_weights(2);
  add(0, kSet, weights_);
  ASSERT_TRUE(update(0, 0, UpdateAction::Load));
  EXPECT_TRUE(update(0, 1, UpdateAction::Apply));
  EXPECT_EQ(update(1, 1, UpdateAction::Estimate).code(), StatusCode::InvalidArgument);
  EXPECT_TRUE(is_error(update(1, 1, UpdateAction::Fetch), StatusCode::InvalidArgument,
                       {"rank 4", "'t1' step 1"}));
}

TEST_F(PlanBookUpdatesTest, OnlyGradientsAreEncodedAndNothingIsSampled) {
  make_weights(1, *parse_codec_spec("int8"));
  add(0, kSet, weights_);
  uint64_t step = 0;
  for (const UpdateAction action : {UpdateAction::Load, UpdateAction::Apply, UpdateAction::Push,
                                    UpdateAction::Fetch, UpdateAction::Estimate}) {
    ASSERT_TRUE(update(0, step++, action));
    const bool is_encoded = action != UpdateAction::Load && action != UpdateAction::Fetch;
    EXPECT_EQ(passed.back().signature().codec.kind == CodecKind::Int8, is_encoded);
    EXPECT_EQ(passed.back().coded() != nullptr, is_encoded);
    EXPECT_FALSE(passed.back().form().is_sampled_in(step - 1));
  }
}

TEST_F(PlanBookUpdatesTest, OnlyGradientsAreLookedAtForWhatIsNotFinite) {
  make_weights(1);
  add(0, kSet, weights_);
  const std::vector<uint8_t> all_ones(400, 0xff);  // NaNs
  const auto give = [&](uint64_t step, UpdateAction action) {
    Submission one = submission(0, step);
    one.update.action = action;
    one.input = all_ones.data();
    one.input_bytes = all_ones.size();
    ASSERT_TRUE(pass(std::move(one), kSet, now_ns_ += 10));
  };
  give(0, UpdateAction::Load);
  EXPECT_EQ(book_->not_finite().front().steps, 0u) << "upper or lower bits may be any";
  give(1, UpdateAction::Apply);
  EXPECT_EQ(book_->not_finite().front().steps, 1u);
  give(2, UpdateAction::Estimate);
  EXPECT_EQ(book_->not_finite().front().steps, 2u);
}

// Modulo 2^64 these are 16 elements, or none.
TEST_F(PlanBookUpdatesTest, ASetWhoseCountsDoNotAddUpIsRefused) {
  for (const uint64_t rest : {UINT64_MAX - 1000 + 17, UINT64_MAX - 999}) {
    make_weights(2);
    weights_[0].count = 1000;
    weights_[1].count = rest;
    const Status refused = testing::register_planned(*book_, 0, kSet, weights_);
    EXPECT_EQ(refused.code(), StatusCode::InvalidArgument);
    EXPECT_EQ(refused.message(),
              fmt::format("job 'train': rank 4: tensor 't1' has {} elements of float32; a tensor "
                          "has 281474976710656 bytes at most",
                          rest));
    EXPECT_EQ(update(0, 0, UpdateAction::Load).code(), StatusCode::Protocol) << "it is no set";
  }
}

TEST_F(PlanBookUpdatesTest, ASetBeyondTheLimitIsRefused) {
  make_weights(3);
  for (PlanSet::Tensor& tensor : weights_) tensor.count = kSetBytesMax / 8;
  EXPECT_TRUE(is_error(testing::register_planned(*book_, 0, kSet, weights_),
                       StatusCode::InvalidArgument,
                       {"with tensor 't2' (35184372088832 elements of float32)"}));
}

TEST_F(PlanBookUpdatesTest, ARegistrationWithoutRoomIsRefusedAndMayComeAgain) {
  make_weights(1);
  room = Status(StatusCode::ResourceExhausted, "no memory");
  EXPECT_EQ(testing::register_planned(*book_, 0, kSet, weights_).code(),
            StatusCode::ResourceExhausted);
  room = Status::ok();
  EXPECT_TRUE(testing::register_planned(*book_, 0, kSet, weights_));
}

}  // namespace
}  // namespace braid
