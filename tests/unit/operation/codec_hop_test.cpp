// SPDX-License-Identifier: Apache-2.0
#include "operation/codec_hop.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint64_t kValues = 500;

// An operation of elements in so many pieces, whose memory has lost something already.
class CodecHopTest : public testing::TestWithParam<std::tuple<const char*, uint64_t>> {
 protected:
  CodecHopTest() {
    coded_ = *make_coded_sum(*parse_codec_spec(std::get<0>(GetParam())), 2, 1);
    memory_ = *ErrorMemory::create(2 * kValues, coded_.memory_floats);
    for (uint32_t plane = 0; plane < memory_->planes(); ++plane) {
      float lost = 0.25F;
      for (float& one : memory_->elements(plane, 0, 2 * kValues)) one = lost = -lost * 0.99F;
    }
    const uint64_t pieces = std::get<1>(GetParam());
    for (uint64_t i = 0; i < pieces; ++i) {
      elements_.append(2 * i * kValues / pieces, kValues / pieces);
    }
  }

  std::vector<uint8_t> encode(ErrorUse use) {
    CodecHop hop(coded_, memory_, elements_, 7, 0, nullptr, use);
    std::vector<float> values(kValues);
    for (uint64_t i = 0; i < kValues; ++i) values[i] = static_cast<float>(i % 11) / 8 - 0.5F;
    std::vector<uint8_t> bytes(hop.encoded_bytes_max(Encoding::Part, kValues));
    bytes.resize(hop.encode(Encoding::Part, {0, kValues * sizeof(float)}, values, bytes));
    return bytes;
  }

  std::vector<float> lost() {
    std::vector<float> all;
    for (uint32_t plane = 0; plane < memory_->planes(); ++plane) {
      const auto of_plane = memory_->elements(plane, 0, 2 * kValues);
      all.insert(all.end(), of_plane.begin(), of_plane.end());
    }
    return all;
  }

  CodedSum coded_;
  std::shared_ptr<ErrorMemory> memory_;
  ElementRanges elements_;
};

TEST(ErrorMemoryTest, HasTheBytesOfAllItsPlanes) {
  EXPECT_EQ(ErrorMemory::bytes_of(1000, 2), 8000u);
  EXPECT_EQ(ErrorMemory::bytes_of(uint64_t{1} << 62, 1), std::nullopt);
  EXPECT_EQ(ErrorMemory::create(uint64_t{1} << 62, 1).status().code(),
            StatusCode::ResourceExhausted);
  EXPECT_EQ(ErrorMemory::create(uint64_t{1} << 61, 1).status().code(),
            StatusCode::ResourceExhausted);
}

TEST(ErrorMemoryDeathTest, GivesNothingThatLiesBehindIt) {
  const auto memory = *ErrorMemory::create(100, 2);
  EXPECT_EQ(memory->elements(1, 90, 10).size(), 10u);
  EXPECT_DEATH((void)memory->elements(0, 90, 11), "made for these elements");
  EXPECT_DEATH((void)memory->elements(0, 101, 0), "made for these elements");
  EXPECT_DEATH((void)memory->elements(1, 50, UINT64_MAX - 40), "made for these elements");
  EXPECT_DEATH((void)memory->elements(2, 0, 1), "made for these elements");
}

TEST_P(CodecHopTest, WhatOnlyReadsTheMemorySendsTheSameAndLeavesItAsItWas) {
  const std::vector<float> before = lost();
  const std::vector<uint8_t> read = encode(ErrorUse::Read);
  EXPECT_EQ(lost(), before);
  EXPECT_EQ(encode(ErrorUse::Renew), read);
  EXPECT_NE(lost(), before);
  EXPECT_NE(encode(ErrorUse::Read), read) << "the memory is in what is sent";
}

// In one piece, in pieces, and with memory of two planes.
INSTANTIATE_TEST_SUITE_P(Memories, CodecHopTest,
                         testing::Values(std::tuple{"2bit:threshold=0.5", 1},
                                         std::tuple{"2bit:threshold=0.5", 5},
                                         std::tuple{"dgc:ratio=0.05", 1},
                                         std::tuple{"dgc:ratio=0.05", 5}));

}  // namespace
}  // namespace braid
