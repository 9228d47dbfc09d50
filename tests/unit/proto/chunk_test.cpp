// SPDX-License-Identifier: Apache-2.0
#include "proto/chunk.h"

#include <functional>

#include <gtest/gtest.h>

namespace braid::proto {
namespace {

template <typename Header>
std::span<const uint8_t> bytes_of(const Header& header) {
  return {reinterpret_cast<const uint8_t*>(&header), sizeof(header)};
}

ChunkHeader good_chunk() {
  ChunkHeader header{};
  header.magic = kChunkMagic;
  header.version = kChunkVersion;
  header.phase = static_cast<uint8_t>(Phase::AllGather);
  header.bytes = 100;
  return header;
}

AckHeader good_ack() {
  AckHeader header{};
  header.magic = kChunkMagic;
  header.version = kChunkVersion;
  return header;
}

TEST(ChunkHeaderTest, FieldsAreChecked) {
  ASSERT_TRUE(parse_chunk_header(bytes_of(good_chunk()), 100).has_value());
  EXPECT_FALSE(parse_chunk_header(bytes_of(good_chunk()), 99).has_value());
  EXPECT_FALSE(parse_chunk_header(bytes_of(good_chunk()).first(63), 100).has_value());
  const auto is_refused = [](const std::function<void(ChunkHeader&)>& change) {
    ChunkHeader header = good_chunk();
    change(header);
    return !parse_chunk_header(bytes_of(header), header.bytes).has_value();
  };
  EXPECT_TRUE(is_refused([](ChunkHeader& header) { header.magic ^= 1; }));
  EXPECT_TRUE(is_refused([](ChunkHeader& header) { ++header.version; }));
  EXPECT_TRUE(is_refused([](ChunkHeader& header) { header.phase = 0; }));
  EXPECT_TRUE(is_refused([](ChunkHeader& header) { header.phase = 4; }));
  EXPECT_TRUE(is_refused([](ChunkHeader& header) { header.encoding = kEncodingCount; }));
  EXPECT_TRUE(is_refused([](ChunkHeader& header) { header.ack_time = 3; }));
  EXPECT_TRUE(is_refused([](ChunkHeader& header) { header.bytes = kChunkBytesMax + 1; }));
  EXPECT_TRUE(is_refused([](ChunkHeader& header) {
    header.phase = static_cast<uint8_t>(Phase::AllGather);  // only parts have one
    header.signature = 1;
  }));
}

TEST(AckHeaderTest, FieldsAreChecked) {
  ASSERT_TRUE(parse_ack_header(bytes_of(good_ack())).has_value());
  EXPECT_FALSE(parse_ack_header(bytes_of(good_ack()).first(23)).has_value());
  AckHeader header = good_ack();
  header.magic ^= 1;
  EXPECT_FALSE(parse_ack_header(bytes_of(header)).has_value());
  header = good_ack();
  ++header.version;
  EXPECT_FALSE(parse_ack_header(bytes_of(header)).has_value());
  for (size_t i = 0; i < sizeof(header.reserved); ++i) {
    header = good_ack();
    header.reserved[i] = 0x80;
    EXPECT_FALSE(parse_ack_header(bytes_of(header)).has_value()) << "reserved byte " << i;
  }
}

}  // namespace
}  // namespace braid::proto
