// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "codec_world.h"

namespace braid::test {
namespace {

constexpr int kEncodings = 10'000;

// The mean of many encodings is the input: within five deviations of the mean, for every element.
// The seeds are fixed, so this passes always or never.
TEST(StochasticRounding, is_unbiased) {
  constexpr uint64_t kCount = 48;
  const auto values = gradient_of(kCount, 2);
  int found = 0;
  for (const char* spec : all_specs()) {
    const auto codec = codec_of(spec);
    if (!codec->traits().is_unbiased || codec->traits().is_lossless) continue;
    ++found;
    std::vector<double> sums(kCount);
    std::vector<double> squares(kCount);
    for (int step = 0; step < kEncodings; ++step) {
      const auto encoded = encoded_by(*codec, values, {9, static_cast<uint64_t>(step), 70});
      const auto decoded = decoded_by(*codec, encoded, kCount);
      for (size_t i = 0; i < kCount; ++i) {
        const double error = static_cast<double>(decoded[i]) - values[i];
        sums[i] += error;
        squares[i] += error * error;
      }
    }
    double varied = 0;
    for (size_t i = 0; i < kCount; ++i) {
      const double mean = sums[i] / kEncodings;
      const double deviation = std::sqrt(squares[i] / kEncodings / kEncodings);
      varied += squares[i];
      // What is next to a code may never have gone to the other one in so many draws: then it shows
      // no deviation, and its mean is off by up to 7 / kEncodings of a step, of fp8 an eighth.
      EXPECT_LE(std::fabs(mean), 5 * deviation + 1e-4 * std::fabs(values[i]))
          << spec << ", element " << i << " of " << values[i];
    }
    EXPECT_GT(varied, 0) << spec;
  }
  EXPECT_EQ(found, 11);
}

TEST(StochasticRounding, follows_seed_stream_and_step_alone) {
  constexpr uint64_t kCount = 1000;
  const auto values = gradient_of(kCount, 2);
  for (const char* text : {"bf16:rounding=stochastic", "int8:rounding=stochastic",
                           "int4:rounding=stochastic", "fp8-e4m3:rounding=stochastic",
                           "fp8-e5m2:rounding=stochastic", "qsgd", "terngrad", "natural"}) {
    std::set<std::vector<uint8_t>> different;
    for (const uint64_t seed : {0, 1}) {
      CodecSpec spec = *parse_codec_spec(text);
      spec.seed = seed;
      const auto codec = make_codec(spec).value();
      for (const EncodePlace& place : {EncodePlace{0, 0, 0}, EncodePlace{1, 0, 0},
                                       EncodePlace{0, 1, 0}, EncodePlace{0, 0, 1}}) {
        different.insert(encoded_by(*codec, values, place));
        different.insert(encoded_by(*codec, values, place));  // is the same again
      }
    }
    EXPECT_EQ(different.size(), 8u) << text;
  }
}

// Written down, so that a change of a format is noticed.
TEST(NearestRounding, makes_the_bytes_of_the_specification) {
  const std::vector<float> values = {1, -2, 0.25f, 4};
  const auto expect_bytes = [&](const char* spec, const std::vector<uint8_t>& bytes) {
    EXPECT_EQ(encoded_by(*codec_of(spec), values), bytes) << spec;
  };
  expect_bytes("bf16", {0x80, 0x3f, 0x00, 0xc0, 0x80, 0x3e, 0x80, 0x40});
  expect_bytes("fp16", {0x00, 0x3c, 0x00, 0xc0, 0x00, 0x34, 0x00, 0x44});
  expect_bytes("int8", {0x04, 0x02, 0x01, 0x3d, 32, 0xc0, 8, 127});
  expect_bytes("sign-vote", {0, 0, 0x80, 0x3f, 0x02, 0});
  expect_bytes("ef-sign", {0, 0, 0xe8, 0x3f, 0x02, 0});              // 1.8125
  expect_bytes("1bit", {0, 0, 0xe0, 0x3f, 0, 0, 0, 0xc0, 0x02, 0});  // 1.75, −2
  expect_bytes("2bit", {0x09, 0, 0x02, 0});
  expect_bytes("topk:ratio=0.5", {1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0x80, 0x40});
  expect_bytes("block-sparse",
               {1, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0x80, 0x3e, 0, 0, 0x80, 0x40});
  expect_bytes("natural", {127, 128, 125, 129, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0});
  expect_bytes("fp8-e4m3", {0x25, 0x49, 0x12, 0x3c, 0x6e, 0xf6, 0x5e, 0x7e});
  expect_bytes("int4", {0x25, 0x49, 0x12, 0x3f, 2, 0x0c, 0, 7, 0, 0, 0, 0});
}

}  // namespace
}  // namespace braid::test
