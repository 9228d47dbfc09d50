// SPDX-License-Identifier: Apache-2.0
#include "planning/codec_guard.h"

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "operation/operation_form.h"

namespace braid {
namespace {

constexpr uint64_t kSet = 5;
constexpr uint64_t kEvery = 64;

GuardOptions limits(double residual_max, double cosine_min = 0, double saturation_max = 0) {
  GuardOptions options;
  options.every_steps = kEvery;
  options.residual_max = residual_max;
  options.cosine_min = cosine_min;
  options.saturation_max = saturation_max;
  return options;
}

// One of two nodes' halves of a reading: its residual is `residual`, and its saturation as said.
CodecSample sample(uint64_t step, double residual, std::vector<uint64_t> tensors = {1, 2},
                   double saturation = 0) {
  CodecSample result;
  result.set = kSet;
  result.step = step;
  result.tensors = std::move(tensors);
  result.codec = *parse_codec_spec("2bit:threshold=0.25");
  result.loss.given_squares = 2;
  result.loss.memory_squares = 2 * residual * residual;
  result.loss.elements = 1000;
  result.loss.saturated = static_cast<uint64_t>(std::lround(saturation * 1000));
  result.loss.decoded[0] = 1;
  return result;
}

class CodecGuardTest : public ::testing::Test {
 protected:
  void make(const GuardOptions& options) { guard_.emplace("train", 2, options); }
  // Both nodes say it.
  std::optional<PlainGroup> read(const CodecSample& one) {
    EXPECT_EQ(guard_->add(10, one), std::nullopt);
    return guard_->add(20, one);
  }
  // Sampled step after sampled step.
  std::optional<PlainGroup> read_residual(double residual, std::vector<uint64_t> tensors = {1, 2}) {
    step_ += kEvery;
    return read(sample(step_, residual, std::move(tensors)));
  }

  std::optional<CodecGuard> guard_;
  uint64_t step_ = kEvery - 1;
};

TEST(SampledStep, IsTheLastOfSoMany) {
  std::vector<uint64_t> sampled;
  for (uint64_t step = 0; step < 30; ++step) {
    if (is_sampled_step(step, 10, 0)) sampled.push_back(step);
  }
  EXPECT_EQ(sampled, (std::vector<uint64_t>{9, 19, 29}));
  EXPECT_FALSE(is_sampled_step(63, 0, 0));
  EXPECT_TRUE(is_sampled_step(0, 1, 0));
}

TEST(SampledStep, IsTheNextOneAfterAStepInFull) {
  std::vector<uint64_t> sampled;
  for (uint64_t step = 0; step < 41; ++step) {
    if (is_sampled_step(step, 10, 4)) sampled.push_back(step);
  }
  EXPECT_EQ(sampled, (std::vector<uint64_t>{9, 20, 29, 40}));  // 19 and 39 are sent in full
}

TEST_F(CodecGuardTest, AddsUpWhatAllNodesSay) {
  make(limits(0));
  CodecSample one = sample(63, 0), other = sample(63, 4, {1, 2}, 0.5);
  one.loss.error[7] = other.loss.error[7] = 1;  // with √(2² + 2²) for the exact sum
  EXPECT_EQ(guard_->add(10, one), std::nullopt);
  EXPECT_TRUE(guard_->readings().empty());
  EXPECT_EQ(guard_->add(20, other), std::nullopt);
  const auto readings = guard_->readings();
  ASSERT_EQ(readings.size(), 1u);
  EXPECT_EQ(readings[0].set, kSet);
  EXPECT_EQ(readings[0].step, 63u);
  EXPECT_EQ(readings[0].tensors, (std::vector<uint64_t>{1, 2}));
  EXPECT_DOUBLE_EQ(readings[0].residual.value(), std::sqrt(8));
  EXPECT_NEAR(readings[0].cosine.value(), std::sqrt(0.5), 1e-12);
  EXPECT_DOUBLE_EQ(readings[0].saturation, 0.25);
}

TEST_F(CodecGuardTest, EachNodeCountsOnce) {
  make(limits(0));
  guard_->add(10, sample(63, 1));
  guard_->add(10, sample(63, 1));
  EXPECT_TRUE(guard_->readings().empty());
}

TEST_F(CodecGuardTest, ThreeReadingsInARowBeyondTheLimitAreTooMany) {
  make(limits(10));
  EXPECT_EQ(read_residual(11), std::nullopt);
  EXPECT_EQ(read_residual(11), std::nullopt);
  const auto plain = read_residual(12);
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->tensors, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(plain->limit, GuardLimit::Residual);
  EXPECT_DOUBLE_EQ(plain->measured, 12);
  EXPECT_EQ(plain->allowed, 10);
}

TEST_F(CodecGuardTest, OneGoodReadingBeginsAnew) {
  make(limits(10));
  for (const double residual : {11, 11, 10, 11, 11, 9, 11, 11})
    EXPECT_EQ(read_residual(residual), std::nullopt);
}

TEST_F(CodecGuardTest, WithoutLimitsNothingIsTooMuch) {
  make(limits(0));
  for (int i = 0; i < 10; ++i) {
    step_ += kEvery;
    EXPECT_EQ(read(sample(step_, 1e9, {1, 2}, 1)), std::nullopt);
  }
}

TEST_F(CodecGuardTest, TheCosineHasALeastValueAndSaturationALargest) {
  make(limits(0, 0.5, 0.9));
  std::optional<PlainGroup> plain;
  for (uint64_t step = 1; step <= 3; ++step) plain = read(sample(step, 0, {1}, 0.95));
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->limit, GuardLimit::Saturation);
  EXPECT_DOUBLE_EQ(plain->measured, 0.95);
  for (uint64_t step = 1; step <= 3; ++step) {
    CodecSample turned = sample(step, 0, {2});
    turned.loss.error[0] = -3;  // of a sum that points the other way
    plain = read(turned);
  }
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->limit, GuardLimit::Cosine);
  EXPECT_DOUBLE_EQ(plain->measured, -1);
  EXPECT_EQ(plain->allowed, 0.5);
}

TEST_F(CodecGuardTest, BetweenStepsInFullSaturationDoesNotCount) {
  make(limits(100, 0, 0.5));
  for (uint64_t step = 1; step <= 5; ++step) {
    CodecSample full = sample(step, 0, {1}, 0.95);
    full.codec = *parse_codec_spec("2bit:threshold=0.25,full-every=5");
    EXPECT_EQ(read(full), std::nullopt);
  }
}

TEST_F(CodecGuardTest, GradientsThatAreNotFiniteNeitherCountNorBeginAnew) {
  make(limits(10));
  read_residual(11);
  read_residual(11);
  CodecSample broken = sample(step_ += kEvery, 0);
  broken.loss.not_finite = 1;
  EXPECT_EQ(read(broken), std::nullopt);
  EXPECT_EQ(guard_->readings().at(0).not_finite, 2u);
  EXPECT_EQ(guard_->readings().at(0).residual, std::nullopt);
  EXPECT_TRUE(read_residual(11).has_value());
}

TEST_F(CodecGuardTest, ReadingsFollowTensorsThatArePlannedAnew) {
  make(limits(10));
  read_residual(11, {1, 2});
  read_residual(11, {1, 2, 3});
  // The third one has passed the limit for the second time.
  const auto plain = read_residual(11, {3, 2, 1});
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->tensors, (std::vector<uint64_t>{2, 1}));
}

TEST_F(CodecGuardTest, WithoutOneNodesSampleThereIsNoReading) {
  make(limits(10));
  read_residual(11);
  read_residual(11);
  step_ += kEvery;
  EXPECT_EQ(guard_->add(10, sample(step_, 11)), std::nullopt);
  EXPECT_EQ(guard_->readings().at(0).step, step_ - kEvery);
  EXPECT_TRUE(read_residual(11).has_value());
}

TEST_F(CodecGuardTest, WhatNodesDisagreeAboutIsNoReading) {
  make(limits(0));
  guard_->add(10, sample(63, 1, {1, 2}));
  guard_->add(20, sample(63, 1, {1, 3}));
  CodecSample other = sample(63, 1);
  other.codec = *parse_codec_spec("int8");
  guard_->add(20, other);
  EXPECT_TRUE(guard_->readings().empty());
  guard_->add(20, sample(63, 1));
  EXPECT_EQ(guard_->readings().size(), 1u);
}

TEST_F(CodecGuardTest, WhatIsPlainIsForgotten) {
  make(limits(10));
  for (int i = 0; i < 3; ++i) read_residual(11);
  guard_->set_plain(kSet, {1, 2});
  EXPECT_TRUE(guard_->readings().empty());
  EXPECT_TRUE(guard_->worst().empty());
  // A sample of a step before, that comes late.
  EXPECT_EQ(read_residual(11), std::nullopt);
  EXPECT_TRUE(guard_->readings().empty());
}

TEST_F(CodecGuardTest, ReadingsOfGroupsThatAreNoMoreGo) {
  make(limits(0));
  read_residual(1, {1, 2});
  read_residual(1, {2, 1});
  EXPECT_EQ(guard_->readings().size(), 2u);
  read_residual(1, {2, 1});
  ASSERT_EQ(guard_->readings().size(), 1u);
  EXPECT_EQ(guard_->readings()[0].tensors.front(), 2u);
}

TEST_F(CodecGuardTest, SamplesThatWaitForOthersAreBounded) {
  make(limits(0));
  for (uint64_t step = 0; step <= CodecGuard::kJoinsMax + 10; ++step)
    guard_->add(10, sample(step, 1));
  guard_->add(20, sample(0, 1));  // the oldest was forgotten
  EXPECT_TRUE(guard_->readings().empty());
  guard_->add(20, sample(CodecGuard::kJoinsMax + 10, 1));
  EXPECT_EQ(guard_->readings().size(), 1u);
}

// Sketches whose squares are beyond all numbers, say.
TEST_F(CodecGuardTest, NumbersThatAreTooLargeGiveNoCosine) {
  make(limits(10, 0.5));
  CodecSample large = sample(63, 1e150);
  large.loss.memory_squares = std::numeric_limits<double>::max();
  large.loss.error[0] = std::numeric_limits<double>::max();
  read(large);
  EXPECT_EQ(guard_->readings().at(0).cosine, std::nullopt);
  EXPECT_EQ(guard_->readings().at(0).residual, std::nullopt);
}

TEST_F(CodecGuardTest, TellsTheWorstOfEachCodec) {
  make(limits(0));
  read(sample(63, 3, {1}, 0.25));
  read(sample(63, 2, {2}, 0.75));
  CodecSample other = sample(63, 1, {3});
  other.codec = *parse_codec_spec("int8");
  other.loss.has_sketches = false;
  read(other);
  const auto worst = guard_->worst();
  ASSERT_EQ(worst.size(), 2u);
  EXPECT_EQ(worst[0].job, "train");
  EXPECT_EQ(worst[0].codec, "2bit:threshold=0.25");
  EXPECT_DOUBLE_EQ(worst[0].residual.value(), 3);
  EXPECT_DOUBLE_EQ(worst[0].cosine.value(), 1);
  EXPECT_DOUBLE_EQ(worst[0].saturation, 0.75);
  EXPECT_EQ(worst[1].codec, "int8");
  EXPECT_EQ(worst[1].cosine, std::nullopt);
}

TEST(GuardBoardTest, HasTheWorstOfJobsOfOneNameAndNothingOfThoseThatAreOver) {
  GuardBoard board;
  board.set(1, {{"train", "int8", 2.0, 0.5, 0.1}});
  board.set(2, {{"train", "int8", 1.0, 0.25, 0.2}, {"train", "bf16", std::nullopt, 1.0, 0}});
  auto entries = board.entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].codec, "bf16");
  EXPECT_EQ(entries[0].residual, std::nullopt);
  EXPECT_EQ(entries[1].residual, 2.0);
  EXPECT_EQ(entries[1].cosine, 0.25);
  EXPECT_EQ(entries[1].saturation, 0.2);
  board.set(2, {});
  entries = board.entries();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].cosine, 0.5);
  board.set(1, {});
  EXPECT_TRUE(board.entries().empty());
}

}  // namespace
}  // namespace braid
