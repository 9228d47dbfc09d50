// SPDX-License-Identifier: Apache-2.0
#include "codec/codec_loss.h"

#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_floats(size_t count, uint32_t seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

double cosine_of(const std::vector<float>& a, const std::vector<float>& b) {
  double product = 0, squares_a = 0, squares_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    product += double{a[i]} * b[i];
    squares_a += double{a[i]} * a[i];
    squares_b += double{b[i]} * b[i];
  }
  return product / std::sqrt(squares_a * squares_b);
}

CodecLoss loss_of(const EncodedElements& chunk) {
  CodecLoss loss;
  measure_loss(chunk, loss);
  return loss;
}

// `exact` was encoded, and `decoded` is what came of it.
CodecLoss loss_of(const std::vector<float>& exact, const std::vector<float>& decoded,
                  uint64_t first = 0) {
  EncodedElements chunk;
  chunk.first_element = first;
  chunk.given = exact;
  chunk.decoded = decoded;
  chunk.is_final = true;
  return loss_of(chunk);
}

// With a memory that has `kept` now.
CodecLoss loss_with(const std::vector<float>& given, const std::vector<float>& kept,
                    const std::vector<float>& decoded, float threshold = 0) {
  EncodedElements chunk;
  chunk.given = given;
  chunk.kept = kept;
  chunk.decoded = decoded;
  chunk.threshold = threshold;
  return loss_of(chunk);
}

TEST(SketchBuckets, ARowsElementsHaveDifferentOnes) {
  for (const uint64_t row : {0, 1, 999}) {
    std::set<uint64_t> buckets;
    for_sketch_buckets(row * 16, 16, [&](uint64_t, uint64_t bucket, double sign) {
      EXPECT_LT(bucket, CodecLoss::kBuckets);
      EXPECT_EQ(std::abs(sign), 1);
      buckets.insert(bucket);
    });
    EXPECT_EQ(buckets.size(), 16u);
  }
}

TEST(SketchBuckets, FollowFromThePlaceInTheSet) {
  std::vector<std::pair<uint64_t, double>> all, pieces;
  for_sketch_buckets(
      5, 100, [&](uint64_t, uint64_t bucket, double sign) { all.emplace_back(bucket, sign); });
  for (const auto& [first, count] : {std::pair{5, 1}, {6, 30}, {36, 69}}) {
    for_sketch_buckets(
        static_cast<uint64_t>(first), static_cast<uint64_t>(count),
        [&](uint64_t, uint64_t bucket, double sign) { pieces.emplace_back(bucket, sign); });
  }
  EXPECT_EQ(all, pieces);
}

TEST(SketchBuckets, AreUsedEvenlyWithBothSigns) {
  std::vector<int> uses(CodecLoss::kBuckets), signs(CodecLoss::kBuckets);
  for_sketch_buckets(0, CodecLoss::kBuckets * 1000, [&](uint64_t, uint64_t bucket, double sign) {
    ++uses[bucket];
    signs[bucket] += static_cast<int>(sign);
  });
  for (size_t i = 0; i < uses.size(); ++i) {
    EXPECT_NEAR(uses[i], 1000, 200) << i;
    EXPECT_LT(std::abs(signs[i]), 200) << i;
  }
}

// From nearly the same to nearly unrelated.
TEST(CodecLossTest, EstimatesTheCosine) {
  const auto decoded = random_floats(100'000, 1);
  for (const float scale : {0.01F, 0.1F, 1.0F, 10.0F}) {
    const auto noise = random_floats(100'000, 2, scale);
    std::vector<float> exact = decoded;
    for (size_t i = 0; i < exact.size(); ++i) exact[i] += noise[i];
    const double right = cosine_of(exact, decoded);
    const auto estimate = loss_of(exact, decoded, 77).cosine();
    ASSERT_TRUE(estimate.has_value());
    // Four standard deviations.
    EXPECT_NEAR(*estimate, right, 4 * (1 - right * right) / 16 + 1e-9) << scale;
  }
}

TEST(CodecLossTest, EstimatesTheCosineOfFewLargeElementsToo) {
  std::vector<float> exact(50'000, 1e-3F), decoded(50'000, 0.0F);
  for (size_t i = 0; i < exact.size(); i += 1000) exact[i] = decoded[i] = 1;
  EXPECT_NEAR(*loss_of(exact, decoded).cosine(), cosine_of(exact, decoded), 1e-3);
}

TEST(CodecLossTest, OppositeAndSameDirectionsAreSeenExactly) {
  const auto values = random_floats(1000, 3);
  std::vector<float> opposite = values, half = values;
  for (float& value : opposite) value = -value;
  for (float& value : half) value /= 2;
  EXPECT_NEAR(*loss_of(values, values).cosine(), 1, 1e-12);
  EXPECT_NEAR(*loss_of(values, half).cosine(), 1, 1e-12);
  EXPECT_NEAR(*loss_of(values, opposite).cosine(), -1, 1e-12);
}

TEST(CodecLossTest, ThereIsNoCosineOfNothing) {
  const std::vector<float> zeros(100, 0.0F);
  EXPECT_EQ(loss_of(zeros, zeros).cosine(), std::nullopt);
  EXPECT_EQ(loss_of(random_floats(100, 4), zeros).cosine(), std::nullopt);
  EXPECT_EQ(CodecLoss().cosine(), std::nullopt);
}

TEST(CodecLossTest, WhatIsExactHasNoError) {
  const auto values = random_floats(100, 5);
  EncodedElements chunk;
  chunk.given = values;
  chunk.decoded = values;
  chunk.is_part = false;
  chunk.is_exact = true;
  chunk.is_final = true;
  const CodecLoss loss = loss_of(chunk);
  EXPECT_EQ(loss.error, CodecLoss::Sketch{});
  EXPECT_EQ(loss.elements, 0u);
  EXPECT_NEAR(*loss.cosine(), 1, 1e-12);
}

TEST(CodecLossTest, TheResidualIsTheMemorysNormOverTheGradients) {
  const CodecLoss loss = loss_with({3, 4}, {0, 50}, {3, 0});
  EXPECT_DOUBLE_EQ(loss.residual().value(), 10);
  CodecLoss other = loss;
  other.add(loss);
  EXPECT_DOUBLE_EQ(other.residual().value(), 10);
  EXPECT_EQ(other.elements, 4u);
}

TEST(CodecLossTest, WithoutMemoryTheResidualIsZero) {
  EXPECT_EQ(loss_of({1, 2}, {1, 1}).residual(), 0);
}

TEST(CodecLossTest, OfGradientsThatAreZeroTheResidualIsNotKnown) {
  EXPECT_EQ(loss_with({0, 0}, {0, 1}, {0, 0}).residual(), std::nullopt);
}

TEST(CodecLossTest, SaturatedIsWhatStillHoldsAThreshold) {
  const CodecLoss loss =
      loss_with({1, 1, 1, 1}, {0.5F, -0.5F, 0.25F, -7}, {0.5F, 0.5F, 0.5F, 0.5F}, 0.5F);
  EXPECT_EQ(loss.saturated, 3u);
  EXPECT_DOUBLE_EQ(loss.saturation(), 0.75);
}

TEST(CodecLossTest, WhatBecomesInfiniteIsSaturatedAndHasNoCosine) {
  const CodecLoss loss = loss_of({70'000, 1}, {kInfinity, 1});
  EXPECT_EQ(loss.saturated, 1u);
  EXPECT_EQ(loss.not_finite, 0u);
  EXPECT_EQ(loss.cosine(), std::nullopt);
}

TEST(CodecLossTest, GradientsThatAreNotFiniteAreCounted) {
  const CodecLoss loss = loss_of({kNaN, 1, -kInfinity}, {kNaN, 1, -kInfinity});
  EXPECT_EQ(loss.not_finite, 2u);
  EXPECT_EQ(loss.saturated, 0u);
  EXPECT_EQ(loss.cosine(), std::nullopt);
  EXPECT_EQ(loss.residual(), std::nullopt);
}

}  // namespace
}  // namespace braid
