// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "codec_world.h"

namespace braid::test {
namespace {

constexpr uint64_t kFeedbackCount = 3000;
constexpr uint64_t kSteps = 40;

// Multiples of 2^−10 up to 8: sums of a few dozen of them are exact.
std::vector<float> exact_gradient(uint64_t seed) {
  auto gradient = gradient_of(kFeedbackCount, seed);
  for (float& value : gradient) value = std::nearbyint(value * 1024) / 1024;
  return gradient;
}

// Σ decoded + e = Σ gradients. Returns the largest difference, beside the largest memory where that
// is more than 1.
double telescope(const GradientCodec& codec) {
  std::vector<float> memory(kFeedbackCount);
  std::vector<double> sent(kFeedbackCount);
  std::vector<double> given(kFeedbackCount);
  for (uint64_t step = 0; step < kSteps; ++step) {
    const auto gradient = exact_gradient(step);
    const auto encoded = encoded_by(codec, gradient, memory, {0, step, 0});
    const auto decoded = decoded_by(codec, encoded, kFeedbackCount);
    for (size_t i = 0; i < kFeedbackCount; ++i) {
      sent[i] += decoded[i];
      given[i] += gradient[i];
    }
  }
  double worst = 0;
  double largest = 1;
  for (size_t i = 0; i < kFeedbackCount; ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(memory[i])));
    worst = std::max(worst, std::fabs(sent[i] + memory[i] - given[i]));
  }
  return worst / largest;
}

TEST(ErrorFeedback, sums_telescope_exactly_for_top_k_and_powers_of_two) {
  for (const char* spec : {"topk:ratio=0.01", "topk:ratio=0.3", "2bit:threshold=0.5",
                           "2bit:threshold=0.125", "none", "block-sparse"}) {
    EXPECT_EQ(telescope(*codec_of(spec)), 0) << spec;
  }
}

TEST(ErrorFeedback, sums_telescope_to_rounding_for_all_others) {
  for (const char* spec : all_specs()) {
    const auto codec = codec_of(spec);
    // A majority's sign has no size, and what it leaves grows; dgc's memory is of its own kind.
    if (codec->spec().kind == CodecKind::SignVote || codec->spec().kind == CodecKind::Dgc) continue;
    EXPECT_LT(telescope(*codec), 5e-5) << spec;
  }
}

// MXNet's own test of its 2-bit compression (tests/nightly/dist_sync_kvstore.py): threshold 0.5,
// an optimizer that adds twice the sum, three workers.
TEST(ErrorFeedback, two_bit_follows_its_golden_sequence) {
  constexpr int kWorkers = 3;
  constexpr float kThreshold = 0.5f;
  const auto codec = codec_of("2bit:threshold=0.5");
  std::vector<std::vector<float>> memories(kWorkers, std::vector<float>(1));
  float weight = 0;
  const auto push = [&](float gradient) {
    for (auto& memory : memories) {
      const auto encoded = encoded_by(*codec, std::vector<float>{gradient}, memory);
      weight += 2 * decoded_by(*codec, encoded, 1)[0];
    }
    return weight;
  };
  EXPECT_EQ(push(0.4f), 0);
  EXPECT_EQ(push(kThreshold - 0.3f), kThreshold * 2 * kWorkers);
  EXPECT_EQ(push(0.2f), kThreshold * 2 * kWorkers);
  EXPECT_EQ(push(kThreshold - 0.3f), 2 * kThreshold * 2 * kWorkers);
  for (const auto& memory : memories) EXPECT_NEAR(memory[0], 0, 1e-6);
}

double square(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return sum;
}

// ‖x − C(x)‖² of ‖x‖²; with a memory of zeros that is what is left there.
double left_of(const char* spec, const std::vector<float>& x) {
  std::vector<float> memory(x.size());
  encoded_by(*codec_of(spec), x, memory);
  return square(memory) / square(x);
}

TEST(ErrorFeedback, top_k_leaves_at_most_its_share) {
  for (const double ratio : {0.01, 0.1, 0.5}) {
    const std::string spec = "topk:ratio=" + std::to_string(ratio);
    for (uint64_t seed = 0; seed < 5; ++seed) {
      EXPECT_LE(left_of(spec.c_str(), gradient_of(kFeedbackCount, seed)), 1 - ratio);
    }
    // The bound is met where all are equal.
    EXPECT_NEAR(left_of(spec.c_str(), std::vector<float>(kFeedbackCount, 1)), 1 - ratio, 1e-9);
  }
}

TEST(ErrorFeedback, scaled_sign_leaves_exactly_what_theory_says) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const auto x = gradient_of(kFeedbackCount, seed);
    double sum = 0;
    for (const float value : x) sum += std::fabs(static_cast<double>(value));
    const double delta = sum * sum / (static_cast<double>(kFeedbackCount) * square(x));
    EXPECT_NEAR(left_of("ef-sign:block=0", x), 1 - delta, 1e-6);
    EXPECT_LT(left_of("ef-sign:block=64", x), 1);
    EXPECT_LE(left_of("1bit:block=0", x), 1 - delta + 1e-6);  // two levels are no worse than one
  }
}

TEST(ErrorFeedback, lossless_codecs_give_back_every_bit) {
  auto values = gradient_of(kFeedbackCount, 1);
  std::fill(values.begin() + 300, values.begin() + 2000, 0.0f);
  values[700] = -0.0f;
  values[2500] = std::nanf("12");
  int found = 0;
  for (const char* spec : all_specs()) {
    const auto codec = codec_of(spec);
    if (!codec->traits().is_lossless) continue;
    ++found;
    const auto encoded = encoded_by(*codec, values);
    if (codec->spec().kind == CodecKind::BlockSparse) {
      EXPECT_LT(encoded.size(), 3 * kFeedbackCount);
    }
    const auto decoded = decoded_by(*codec, encoded, kFeedbackCount);
    EXPECT_EQ(std::memcmp(decoded.data(), values.data(), kFeedbackCount * sizeof(float)), 0)
        << spec;
  }
  EXPECT_EQ(found, 3);
}

}  // namespace
}  // namespace braid::test
