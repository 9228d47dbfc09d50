// SPDX-License-Identifier: Apache-2.0
#include "reference.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "codec_world.h"
#include "hwy/targets.h"

namespace braid::test {
namespace {

// Each test runs once per instruction set that was compiled and that this processor has: all of
// them must make what the reference makes, to the last bit.
class CodecReference : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

constexpr EncodePlace kPlace = {11, 22, 33};

void expect_reference(const GradientCodec& codec, std::span<const float> values,
                      const std::string& what) {
  SCOPED_TRACE(to_string(codec.spec()) + ", " + std::to_string(values.size()) + " elements, " +
               what);
  std::vector<float> memory;
  std::vector<float> expected_values(values.begin(), values.end());
  if (codec.traits().needs_memory) {
    memory.resize(values.size() * codec.traits().memory_floats);
    for (float& value : expected_values) value += 0.0f;  // −0 becomes 0, NaNs become quiet
  }
  const auto encoded = encoded_by(codec, values, memory, kPlace);
  ASSERT_EQ(encoded, reference_encode(codec.spec(), expected_values, kPlace));
  const auto expected = reference_decode(codec.spec(), encoded, values.size());
  const auto decoded = decoded_by(codec, encoded, values.size());
  // Behind an odd byte, as bytes from the network may lie.
  std::vector<uint8_t> moved(encoded.size() + 1);
  std::copy(encoded.begin(), encoded.end(), moved.begin() + 1);
  const auto before = gradient_of(values.size(), 99);
  auto sums = before;
  ASSERT_TRUE(codec.decode_and_add(std::span(moved).subspan(1), sums));
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_PRED2(is_same, decoded[i], expected[i]) << "element " << i << " of " << values[i];
    ASSERT_PRED2(is_same, sums[i], before[i] + expected[i]) << "sum " << i;
  }
}

TEST_P(CodecReference, all_codecs_make_its_bytes) {
  for (const char* spec : all_specs()) {
    const auto codec = codec_of(spec);
    for (const uint64_t count :
         {0, 1, 2, 7, 15, 16, 17, 31, 33, 63, 100, 255, 256, 257, 1000, 4095, 4113, 20'011}) {
      expect_reference(*codec, gradient_of(count, count + 1), "a gradient");
      if (HasFatalFailure()) return;
    }
  }
}

// Any bits are a float: NaNs, infinities, subnormal numbers and all magnitudes.
TEST_P(CodecReference, all_codecs_make_its_bytes_of_any_bits) {
  std::mt19937_64 random(1);
  for (const char* spec : all_specs()) {
    const auto codec = codec_of(spec);
    for (const uint64_t count : {1, 16, 37, 2500}) {
      std::vector<float> values(count);
      for (float& value : values) value = std::bit_cast<float>(static_cast<uint32_t>(random()));
      expect_reference(*codec, values, "any bits");
      for (float& value : values) value = std::isfinite(value) ? value : 0;
      expect_reference(*codec, values, "any numbers");
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(CodecReference, all_codecs_make_its_bytes_at_the_ends_of_the_range) {
  constexpr float kMost = std::numeric_limits<float>::max();
  constexpr float kLeast = std::numeric_limits<float>::denorm_min();
  const std::vector<std::vector<float>> cases = {std::vector<float>(50, 0.0f),
                                                 std::vector<float>(50, -0.0f),
                                                 {kMost, -kMost, 1, 0},
                                                 {kLeast, -kLeast, 0},
                                                 std::vector<float>(70, kMost),
                                                 {0x1p-100f, 0x1p-101f},
                                                 {0x1p-101f, 0},
                                                 std::vector<float>(40, 1.0f),
                                                 {0.5f, 1.5f, 2.5f, -3.5f, 127},
                                                 {0.5f, 1.5f, -2.5f, 7},
                                                 {1 + 0x1p-8f, 1 + 0x3p-8f, 65519, 65520},
                                                 {448, 13.5f, 12.5f, 0.001953125f, 0.0009765625f}};
  for (const char* spec : all_specs()) {
    const auto codec = codec_of(spec);
    for (size_t i = 0; i < cases.size(); ++i) {
      expect_reference(*codec, cases[i], "case " + std::to_string(i));
      if (HasFatalFailure()) return;
    }
  }
}

// Error feedback takes slices and other ways through the kernels.
TEST_P(CodecReference, error_memory_is_what_was_not_sent) {
  for (const char* spec : all_specs()) {
    const auto codec = codec_of(spec);
    if (codec->spec().kind == CodecKind::Dgc) continue;  // has a memory of its own kind
    SCOPED_TRACE(spec);
    constexpr uint64_t kCount = 20'011;
    const auto gradient = gradient_of(kCount, 5);
    auto memory = gradient_of(kCount, 6);
    std::vector<float> p(kCount);
    for (size_t i = 0; i < kCount; ++i) p[i] = gradient[i] + memory[i];
    const auto encoded = encoded_by(*codec, gradient, memory, kPlace);
    ASSERT_EQ(encoded, reference_encode(codec->spec(), p, kPlace));
    const auto sent = reference_decode(codec->spec(), encoded, kCount);
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(memory[i], p[i] - sent[i]) << "element " << i;
  }
}

// The paper's formulas, element by element.
TEST_P(CodecReference, dgc_corrects_its_momentum) {
  const auto codec = codec_of("dgc:ratio=0.05,momentum=0.5");
  constexpr uint64_t kCount = 20'011;
  std::vector<float> memory(2 * kCount);
  std::vector<float> u(kCount);
  std::vector<float> v(kCount);
  for (uint64_t step = 0; step < 5; ++step) {
    const auto gradient = gradient_of(kCount, step);
    for (size_t i = 0; i < kCount; ++i) {
      u[i] = 0.5f * u[i] + gradient[i];
      v[i] += u[i];
    }
    const auto expected = reference_encode(codec->spec(), v, kPlace);
    ASSERT_EQ(encoded_by(*codec, gradient, memory, kPlace), expected) << "step " << step;
    const auto sent = reference_decode(codec->spec(), expected, kCount);
    for (size_t i = 0; i < kCount; ++i) {
      if (sent[i] != 0) u[i] = v[i] = 0;
      ASSERT_EQ(memory[i], u[i]);
      ASSERT_EQ(memory[kCount + i], v[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, CodecReference,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& param) {
                           return std::string(hwy::TargetName(param.param));
                         });

}  // namespace
}  // namespace braid::test
