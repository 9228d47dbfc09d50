// SPDX-License-Identifier: Apache-2.0
// Bytes that come from a peer may be anything. Under AddressSanitizer these tests also see that
// nothing outside is read or written: every buffer has exactly its size.
#include <cstring>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "codec_world.h"

namespace braid::test {
namespace {

std::vector<uint8_t> encoded_any(const GradientCodec& codec, uint64_t count) {
  std::vector<float> memory(codec.traits().needs_memory ? 2 * count : 0);
  return encoded_by(codec, gradient_of(count, 1), memory);
}

// Decodes in both ways, which agree whether they can.
bool can_decode(const GradientCodec& codec, const std::vector<uint8_t>& encoded, uint64_t count) {
  const std::vector<uint8_t> bytes(encoded);  // of exactly its size
  std::vector<float> out(count);
  const Status status = codec.decode(bytes, out);
  EXPECT_EQ(codec.decode_and_add(bytes, out).code(), status.code());
  if (!status) {
    EXPECT_EQ(status.code(), StatusCode::Protocol);
    EXPECT_NE(status.message().find(codec_name(codec.spec().kind)), std::string::npos);
  }
  return status.is_ok();
}

TEST(Malformed, truncated_and_longer_parts_are_refused) {
  for (const char* spec : all_specs()) {
    const auto codec = codec_of(spec);
    for (const uint64_t count : {1, 16, 40, 300}) {
      const auto encoded = encoded_any(*codec, count);
      ASSERT_TRUE(can_decode(*codec, encoded, count)) << spec;
      for (uint64_t length = 0; length < encoded.size(); ++length) {
        const std::vector<uint8_t> part(encoded.begin(),
                                        encoded.begin() + static_cast<ptrdiff_t>(length));
        ASSERT_FALSE(can_decode(*codec, part, count)) << spec << ", " << length << " bytes";
      }
      auto longer = encoded;
      longer.push_back(0);
      ASSERT_FALSE(can_decode(*codec, longer, count)) << spec;
      ASSERT_FALSE(can_decode(*codec, {}, count)) << spec;
    }
  }
}

TEST(Malformed, random_bytes_and_flipped_bits_do_no_harm) {
  std::mt19937_64 random(4);
  for (const char* spec : all_specs()) {
    const auto codec = codec_of(spec);
    for (int round = 0; round < 400; ++round) {
      const uint64_t count = 1 + random() % 600;
      const uint64_t most = codec->encoded_bytes_max(count);
      std::vector<uint8_t> bytes(round % 3 == 0 ? random() % (2 * most + 8) : most);
      for (auto& byte : bytes) byte = static_cast<uint8_t>(random());
      can_decode(*codec, bytes, count);
      bytes = encoded_any(*codec, count);
      for (uint64_t flips = 1 + random() % 3; flips > 0; --flips)
        bytes[random() % bytes.size()] ^= static_cast<uint8_t>(1u << (random() % 8));
      can_decode(*codec, bytes, count);
    }
  }
}

std::vector<uint8_t> pairs(std::initializer_list<uint32_t> indices) {
  std::vector<uint8_t> encoded(indices.size() * 8);
  std::memcpy(encoded.data(), std::data(indices), indices.size() * 4);
  return encoded;
}

TEST(Malformed, top_k_refuses_indices_that_encode_does_not_make) {
  const auto codec = codec_of("topk:ratio=0.03");
  constexpr uint64_t kCount = 100;
  EXPECT_TRUE(can_decode(*codec, pairs({0, 50, 99}), kCount));
  EXPECT_FALSE(can_decode(*codec, pairs({0, 50, 100}), kCount));
  EXPECT_FALSE(can_decode(*codec, pairs({0, 50, UINT32_MAX}), kCount));
  EXPECT_FALSE(can_decode(*codec, pairs({UINT32_MAX, 0, 1}), kCount));
  EXPECT_FALSE(can_decode(*codec, pairs({0, 50, 50}), kCount));
  EXPECT_FALSE(can_decode(*codec, pairs({50, 0, 99}), kCount));
  EXPECT_FALSE(can_decode(*codec, pairs({0, 50}), kCount));
  EXPECT_FALSE(can_decode(*codec, pairs({0, 1, 2, 3}), kCount));
  std::vector<float> out(kCount, 7);
  EXPECT_FALSE(codec->decode(pairs({0, 50, 100}), out));
  EXPECT_EQ(out, std::vector<float>(kCount, 7));
}

TEST(Malformed, block_sparse_refuses_blocks_that_do_not_fit_its_bitmap) {
  const auto codec = codec_of("block-sparse:block=16");
  constexpr uint64_t kCount = 40;  // blocks of 16, 16 and 8
  const auto part = [](uint8_t bitmap, size_t elements) {
    std::vector<uint8_t> encoded(1 + elements * 4);
    encoded[0] = bitmap;
    return encoded;
  };
  EXPECT_TRUE(can_decode(*codec, part(0, 0), kCount));
  EXPECT_TRUE(can_decode(*codec, part(3, 32), kCount));
  EXPECT_TRUE(can_decode(*codec, part(5, 24), kCount));
  EXPECT_FALSE(can_decode(*codec, part(5, 32), kCount));
  EXPECT_FALSE(can_decode(*codec, part(7, 32), kCount));
  EXPECT_FALSE(can_decode(*codec, part(0, 16), kCount));
  EXPECT_FALSE(can_decode(*codec, part(8, 0), kCount));
  EXPECT_FALSE(can_decode(*codec, part(8, 16), kCount));
}

TEST(Malformed, a_vote_is_one_or_nan) {
  const auto codec = codec_of("sign-vote");
  auto encoded = encoded_any(*codec, 20);
  const float two = 2;
  std::memcpy(encoded.data(), &two, sizeof(two));
  EXPECT_FALSE(can_decode(*codec, encoded, 20));
}

}  // namespace
}  // namespace braid::test
