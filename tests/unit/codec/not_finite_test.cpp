// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "codec_world.h"

namespace braid::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kQuietNan = std::numeric_limits<float>::quiet_NaN();
constexpr uint64_t kPartCount = 200;
constexpr uint64_t kAt = 100;

// The elements that a NaN at kAt may spoil.
std::pair<uint64_t, uint64_t> spoilt_range(const GradientCodec& codec) {
  switch (codec.traits().not_finite) {
    case NotFinite::Element:
      return {kAt, kAt + 1};
    case NotFinite::Block: {
      const uint64_t block = codec.spec().block == 0 ? kPartCount : codec.spec().block;
      return {kAt / block * block, std::min(kPartCount, kAt / block * block + block)};
    }
    case NotFinite::Part:
      return {0, kPartCount};
  }
  return {0, 0};
}

// Mixed precision finds out that a step went wrong by what comes out: nothing may hide it.
TEST(NotFiniteValues, are_seen_as_far_as_the_traits_say) {
  for (const char* spec : all_specs()) {
    const auto codec = codec_of(spec);
    for (const float bad : {kQuietNan, -kQuietNan, kInfinity, -kInfinity}) {
      if (codec->spec().kind == CodecKind::SignVote && std::isinf(bad)) continue;  // has a sign
      auto values = gradient_of(kPartCount, 3);
      values[kAt] = bad;
      std::vector<float> memory(kPartCount * codec->traits().memory_floats);
      const auto encoded = encoded_by(*codec, values, memory);
      const auto decoded = decoded_by(*codec, encoded, kPartCount);
      const auto [first, last] = spoilt_range(*codec);
      for (uint64_t i = 0; i < kPartCount; ++i) {
        ASSERT_EQ(std::isfinite(decoded[i]), i < first || i >= last) << spec << ", element " << i;
      }
      for (const float one : memory) ASSERT_TRUE(std::isfinite(one)) << spec;
    }
  }
}

TEST(NotFiniteValues, infinities_stay_where_the_format_has_them) {
  for (const char* spec : {"bf16", "bf16:rounding=stochastic", "fp16", "topk", "none"}) {
    const auto codec = codec_of(spec);
    const std::vector<float> values = {1, -kInfinity, 2};
    const auto decoded = decoded_by(*codec, encoded_by(*codec, values), 3);
    EXPECT_EQ(decoded[1], -kInfinity) << spec;
  }
}

// Many of them, more than Top-K sends: none may stay behind and spoil the next steps.
TEST(NotFiniteValues, do_not_stay_in_the_memory) {
  for (const char* spec : all_specs()) {
    const auto codec = codec_of(spec);
    std::vector<float> memory(kPartCount * codec->traits().memory_floats);
    encoded_by(*codec, std::vector<float>(kPartCount, kQuietNan), memory);
    for (const float one : memory) ASSERT_TRUE(std::isfinite(one)) << spec;
    const auto next =
        decoded_by(*codec, encoded_by(*codec, gradient_of(kPartCount, 1), memory), kPartCount);
    for (const float one : next) ASSERT_TRUE(std::isfinite(one)) << spec;
  }
}

}  // namespace
}  // namespace braid::test
