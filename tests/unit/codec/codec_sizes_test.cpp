// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>

#include "codec_world.h"

namespace braid::test {
namespace {

uint64_t size_of(const char* spec, uint64_t count) {
  return codec_of(spec)->encoded_bytes_max(count);
}

// The formulas of proto/SPEC.md, of 1000 elements and of one.
TEST(CodecSizes, are_those_of_the_specification) {
  EXPECT_EQ(size_of("none", 1000), 4000u);
  EXPECT_EQ(size_of("bf16", 1000), 2000u);
  EXPECT_EQ(size_of("fp16", 1000), 2000u);
  EXPECT_EQ(size_of("int8:block=256", 1000), 4 * 4u + 1000);
  EXPECT_EQ(size_of("int4:block=64", 1000), 16 * 4u + 63 * 8);
  EXPECT_EQ(size_of("fp8-e4m3:block=256", 1000), 4 * 4u + 1000);
  EXPECT_EQ(size_of("fp8-e5m2:block=1008", 1000), 4u + 1000);
  EXPECT_EQ(size_of("ef-sign:block=0", 1000), 4u + 63 * 2);
  EXPECT_EQ(size_of("ef-sign:block=256", 1000), 4 * 4u + 63 * 2);
  EXPECT_EQ(size_of("sign-vote", 1000), 4u + 63 * 2);
  EXPECT_EQ(size_of("1bit:block=0", 1000), 8u + 63 * 2);
  EXPECT_EQ(size_of("2bit", 1000), 63 * 4u);
  EXPECT_EQ(size_of("topk:ratio=0.01", 1000), 10 * 8u);
  EXPECT_EQ(size_of("topk:ratio=0.0105", 1000), 11 * 8u);
  EXPECT_EQ(size_of("dgc:ratio=0.0001", 1000), 8u);
  EXPECT_EQ(size_of("qsgd:levels=127,block=512", 1000), 2 * 4u + 1000);
  EXPECT_EQ(size_of("qsgd:levels=7,block=512", 1000), 2 * 4u + 63 * 8);
  EXPECT_EQ(size_of("terngrad:block=512", 1000), 2 * 4u + 63 * 4);
  EXPECT_EQ(size_of("natural", 1000), 63 * 18u);
  EXPECT_EQ(size_of("block-sparse:block=256", 1000), 1u + 4000);
  EXPECT_EQ(size_of("int8", 1), 5u);
  EXPECT_EQ(size_of("2bit", 1), 4u);
  EXPECT_EQ(size_of("topk", 1), 8u);
}

TEST(CodecSizes, are_kept_to_and_grow) {
  for (const char* spec : all_specs()) {
    const auto codec = codec_of(spec);
    EXPECT_EQ(codec->encoded_bytes_max(0), 0u);
    uint64_t before = 0;
    for (uint64_t count = 1; count < 600; ++count) {
      const auto gradient = gradient_of(count, count);
      std::vector<float> memory(codec->traits().needs_memory ? 2 * count : 0);
      const uint64_t bytes = encoded_by(*codec, gradient, memory).size();
      const uint64_t most = codec->encoded_bytes_max(count);
      if (codec->traits().has_exact_size) {
        ASSERT_EQ(bytes, most) << spec << ", " << count;
      }
      ASSERT_LE(bytes, most) << spec << ", " << count;
      ASSERT_GE(most, before) << spec << ", " << count;
      before = most;
    }
  }
}

// Nothing behind the encoded bytes or the elements is written.
TEST(CodecSizes, nothing_else_is_written) {
  constexpr uint8_t kGuard = 0xa5;
  constexpr uint64_t kGuards = 64;
  for (const char* spec : all_specs()) {
    const auto codec = codec_of(spec);
    for (const uint64_t count : {1, 5, 16, 23, 100, 511}) {
      const uint64_t most = codec->encoded_bytes_max(count);
      std::vector<uint8_t> encoded(most + kGuards, kGuard);
      std::vector<float> memory(count * codec->traits().memory_floats);
      const auto bytes = codec->encode(gradient_of(count, 3), memory, {}, encoded).value();
      for (uint64_t i = most; i < encoded.size(); ++i) ASSERT_EQ(encoded[i], kGuard) << spec;
      std::vector<float> out(count + kGuards, 7.0f);
      ASSERT_TRUE(codec->decode({encoded.data(), bytes}, std::span(out).first(count)));
      ASSERT_TRUE(codec->decode_and_add({encoded.data(), bytes}, std::span(out).first(count)));
      for (uint64_t i = count; i < out.size(); ++i) ASSERT_EQ(out[i], 7.0f) << spec;
    }
  }
}

TEST(CodecSizes, that_do_not_fit_are_refused) {
  const auto codec = codec_of("int8");
  const auto gradient = gradient_of(100, 1);
  std::vector<uint8_t> encoded(codec->encoded_bytes_max(100));
  std::vector<float> memory(100);
  EXPECT_TRUE(codec->encode(gradient, memory, {}, encoded));
  EXPECT_EQ(codec->encode(gradient, std::span(memory).first(99), {}, encoded).status().code(),
            StatusCode::InvalidArgument);
  EXPECT_EQ(codec->encode(gradient, memory, {}, std::span(encoded).first(encoded.size() - 1))
                .status()
                .code(),
            StatusCode::InvalidArgument);
  const auto dgc = codec_of("dgc");
  EXPECT_EQ(dgc->encode(gradient, {}, {}, encoded).status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(dgc->encode(gradient, memory, {}, encoded).status().code(),
            StatusCode::InvalidArgument);
  EXPECT_EQ(*codec->encode({}, {}, {}, {}), 0u);
  EXPECT_TRUE(codec->decode({}, {}));
  EXPECT_EQ(codec->decode(encoded, {}).code(), StatusCode::Protocol);
}

// Where a part may be cut, the pieces' bytes are the part's: so a chunk can go before the next one
// is encoded. Also what is drawn at random follows the element, and not the piece.
TEST(CodecSizes, pieces_of_granules_make_the_same_bytes) {
  constexpr uint64_t kCount = 10'000;
  const auto gradient = gradient_of(kCount, 8);
  int cut = 0;
  for (const char* spec : all_specs()) {
    const auto codec = codec_of(spec);
    const uint64_t granule = codec->traits().granule;
    if (granule == 0) continue;
    ++cut;
    const EncodePlace place = {1, 2, 1000};
    const auto whole = encoded_by(*codec, gradient, place);
    for (const uint64_t granules : {1, 3, 10}) {
      std::vector<uint8_t> pieces;
      std::vector<float> decoded;
      for (uint64_t at = 0; at < kCount; at += granule * granules) {
        const uint64_t count = std::min(granule * granules, kCount - at);
        const auto piece = encoded_by(*codec, std::span(gradient).subspan(at, count),
                                      {place.stream, place.step, place.first_element + at});
        pieces.insert(pieces.end(), piece.begin(), piece.end());
        const auto elements = decoded_by(*codec, piece, count);
        decoded.insert(decoded.end(), elements.begin(), elements.end());
      }
      EXPECT_EQ(pieces, whole) << spec;
      EXPECT_EQ(decoded, decoded_by(*codec, whole, kCount)) << spec;
    }
  }
  EXPECT_GE(cut, 20);
}

}  // namespace
}  // namespace braid::test
