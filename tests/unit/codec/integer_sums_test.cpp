// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "codec_world.h"

namespace braid::test {
namespace {

constexpr uint64_t kSummedCount = 1003;
constexpr size_t kNodes = 7;

struct Parts {
  std::unique_ptr<GradientCodec> codec;
  std::vector<std::vector<uint8_t>> encoded;
};

Parts make_parts(const char* spec) {
  Parts parts = {codec_of(spec), {}};
  for (size_t node = 0; node < kNodes; ++node) {
    parts.encoded.push_back(encoded_by(*parts.codec, gradient_of(kSummedCount, node)));
  }
  return parts;
}

std::vector<int8_t> counts_of(const Parts& parts, const std::vector<size_t>& nodes) {
  std::vector<int8_t> counts(kSummedCount);
  for (const size_t node : nodes) {
    EXPECT_TRUE(parts.codec->integer_sums()->add_encoded(parts.encoded[node], counts));
  }
  return counts;
}

TEST(IntegerSums, are_what_the_traits_promise) {
  int found = 0;
  for (const char* spec : all_specs()) {
    const auto codec = codec_of(spec);
    const bool can_add = codec->traits().addition == Addition::AsIntegers;
    EXPECT_EQ(codec->integer_sums() != nullptr, can_add) << spec;
    found += can_add ? 1 : 0;
    EXPECT_EQ(
        codec->traits().addition == Addition::AfterCast,
        codec->spec().kind == CodecKind::BFloat16 || codec->spec().kind == CodecKind::Float16);
  }
  EXPECT_EQ(found, 4);
}

// Around the ring from any node on, in any order, and along a tree.
TEST(IntegerSums, have_the_same_bits_in_any_order) {
  for (const char* spec : {"2bit:threshold=0.3", "sign-vote"}) {
    const Parts parts = make_parts(spec);
    std::vector<size_t> order = {0, 1, 2, 3, 4, 5, 6};
    const auto expected = counts_of(parts, order);
    for (size_t first = 1; first < kNodes; ++first) {
      std::rotate(order.begin(), order.begin() + 1, order.end());
      EXPECT_EQ(counts_of(parts, order), expected) << spec;
    }
    std::sort(order.begin(), order.end());
    while (std::next_permutation(order.begin(), order.end()) && order[0] < 2) {
      ASSERT_EQ(counts_of(parts, order), expected) << spec;
    }
    auto tree = counts_of(parts, {6, 2, 0});
    add_counts(counts_of(parts, {5, 1}), tree);
    add_counts(counts_of(parts, {3, 4}), tree);
    EXPECT_EQ(tree, expected) << spec;
  }
}

// A power of two: float32 sums are exact, too.
TEST(IntegerSums, of_two_bits_are_the_sum_of_what_is_decoded) {
  const Parts parts = make_parts("2bit:threshold=0.25");
  std::vector<float> expected(kSummedCount);
  for (const auto& encoded : parts.encoded) {
    ASSERT_TRUE(parts.codec->decode_and_add(encoded, expected));
  }
  std::vector<float> out(kSummedCount);
  parts.codec->integer_sums()->decode_counts(counts_of(parts, {0, 1, 2, 3, 4, 5, 6}), out);
  EXPECT_EQ(out, expected);
  EXPECT_GT(*std::max_element(out.begin(), out.end()), 1.0f);
}

TEST(IntegerSums, of_votes_are_the_majority_and_a_tie_is_plus) {
  for (const size_t nodes : {size_t{2}, size_t{3}, size_t{4}, kNodes}) {
    const Parts parts = make_parts("sign-vote");
    std::vector<size_t> order;
    std::vector<int> votes(kSummedCount);
    std::vector<float> sums(kSummedCount);
    for (size_t node = 0; node < nodes; ++node) {
      order.push_back(node);
      const auto gradient = gradient_of(kSummedCount, node);
      for (size_t i = 0; i < kSummedCount; ++i) votes[i] += gradient[i] < 0 ? -1 : 1;
      ASSERT_TRUE(parts.codec->decode_and_add(parts.encoded[node], sums));
    }
    std::vector<float> out(kSummedCount);
    parts.codec->integer_sums()->decode_counts(counts_of(parts, order), out);
    // The owner who adds in float32 gets the same by encoding the sum.
    const auto by_owner = decoded_by(*parts.codec, encoded_by(*parts.codec, sums), kSummedCount);
    bool has_tie = false;
    for (size_t i = 0; i < kSummedCount; ++i) {
      has_tie = has_tie || votes[i] == 0;
      ASSERT_EQ(out[i], votes[i] >= 0 ? 1 : -1) << "element " << i << " of " << nodes;
      ASSERT_EQ(by_owner[i], out[i]) << "element " << i << " of " << nodes;
    }
    EXPECT_EQ(has_tie, nodes % 2 == 0);
  }
}

TEST(IntegerSums, hold_as_many_parts_as_they_say) {
  const auto codec = codec_of("2bit:threshold=1");
  for (const float sign : {1.0f, -1.0f}) {
    const auto encoded = encoded_by(*codec, std::vector<float>(20, sign));
    std::vector<int8_t> counts(20);
    for (uint32_t i = 0; i < kIntegerSumPartsMax; ++i) {
      ASSERT_TRUE(codec->integer_sums()->add_encoded(encoded, counts));
    }
    std::vector<float> out(20);
    codec->integer_sums()->decode_counts(counts, out);
    EXPECT_EQ(out, std::vector<float>(20, sign * kIntegerSumPartsMax));
  }
}

TEST(IntegerSums, what_is_not_finite_stays_so) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto codec = codec_of("2bit");
  std::vector<int8_t> counts(3);
  ASSERT_TRUE(codec->integer_sums()->add_encoded(
      encoded_by(*codec, std::vector<float>{1, -kInfinity, 0}), counts));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(codec->integer_sums()->add_encoded(
        encoded_by(*codec, std::vector<float>{1, 1, std::nanf("")}), counts));
  }
  std::vector<float> out(3);
  codec->integer_sums()->decode_counts(counts, out);
  EXPECT_EQ(out[0], 101 * 0.5f);
  EXPECT_TRUE(std::isnan(out[1]));
  EXPECT_TRUE(std::isnan(out[2]));

  const auto vote = codec_of("sign-vote");
  std::vector<int8_t> votes(2);
  ASSERT_TRUE(vote->integer_sums()->add_encoded(
      encoded_by(*vote, std::vector<float>{1, std::nanf("")}), votes));
  ASSERT_TRUE(
      vote->integer_sums()->add_encoded(encoded_by(*vote, std::vector<float>{1, 1}), votes));
  std::vector<float> majority(2);
  vote->integer_sums()->decode_counts(votes, majority);
  EXPECT_TRUE(std::isnan(majority[0]));
  EXPECT_TRUE(std::isnan(majority[1]));
}

TEST(IntegerSums, malformed_parts_are_refused) {
  std::vector<int8_t> counts(20);
  const auto codec = codec_of("2bit");
  EXPECT_EQ(codec->integer_sums()->add_encoded(std::vector<uint8_t>(7), counts).code(),
            StatusCode::Protocol);
  const auto vote = codec_of("sign-vote");
  EXPECT_EQ(vote->integer_sums()->add_encoded(std::vector<uint8_t>(8), counts).code(),
            StatusCode::Protocol);  // a unit of 0
  EXPECT_EQ(vote->integer_sums()->add_encoded(std::vector<uint8_t>(9), counts).code(),
            StatusCode::Protocol);
  EXPECT_EQ(counts, std::vector<int8_t>(20));
}

}  // namespace
}  // namespace braid::test
