// SPDX-License-Identifier: Apache-2.0
#include "control/control_frame_reader.h"

#include <random>

#include <gtest/gtest.h>

namespace braid {
namespace {

std::vector<uint8_t> framed(const std::vector<uint8_t>& payload) {
  const auto header = control_frame_header(payload.size());
  std::vector<uint8_t> bytes(header.begin(), header.end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

std::vector<uint8_t> filled(size_t size, uint8_t value) {
  return std::vector<uint8_t>(size, value);
}

// All frames that `bytes` hold, handed over in pieces of `piece` bytes.
std::vector<std::vector<uint8_t>> read_all(ControlFrameReader& reader,
                                           std::span<const uint8_t> bytes, size_t piece) {
  std::vector<std::vector<uint8_t>> frames;
  while (!bytes.empty()) {
    auto some = bytes.first(std::min(piece, bytes.size()));
    bytes = bytes.subspan(some.size());
    while (!some.empty()) {
      const auto complete = reader.read(some);
      EXPECT_TRUE(complete.is_ok());
      if (!complete) return frames;
      if (*complete) frames.emplace_back(reader.frame().begin(), reader.frame().end());
    }
  }
  return frames;
}

TEST(ControlFrameReader, PutsFramesTogetherHoweverTheyAreCut) {
  std::vector<uint8_t> stream;
  std::vector<std::vector<uint8_t>> expected;
  for (size_t size : {1, 3, 100, 4096, 2}) {
    expected.push_back(filled(size, static_cast<uint8_t>(size)));
    const auto bytes = framed(expected.back());
    stream.insert(stream.end(), bytes.begin(), bytes.end());
  }
  for (size_t piece : {size_t{1}, size_t{2}, size_t{7}, size_t{1000}, stream.size()}) {
    ControlFrameReader reader(4096);
    EXPECT_EQ(read_all(reader, stream, piece), expected) << "pieces of " << piece;
  }
}

TEST(ControlFrameReader, RefusesEmptyAndOverlongFrames) {
  for (size_t size : {size_t{0}, size_t{4097}, size_t{0xffffffff}}) {
    ControlFrameReader reader(4096);
    const auto header = control_frame_header(size);
    std::span<const uint8_t> bytes(header);
    const auto complete = reader.read(bytes);
    ASSERT_FALSE(complete.is_ok()) << size;
    EXPECT_EQ(complete.status().code(), StatusCode::Protocol);
  }
}

TEST(ControlFrameReader, TakesALimitForTheNextFrame) {
  ControlFrameReader reader(10);
  EXPECT_EQ(read_all(reader, framed(filled(10, 1)), 5).size(), 1u);
  reader.set_frame_bytes_max(20);
  EXPECT_EQ(read_all(reader, framed(filled(20, 2)), 5).size(), 1u);
}

TEST(ControlFrameReader, AlignsFramesForFlatBuffers) {
  ControlFrameReader reader(4096);
  auto stream = framed(filled(3, 1));
  const auto second = framed(filled(8, 2));
  stream.insert(stream.end(), second.begin(), second.end());
  std::span<const uint8_t> bytes(stream);
  while (!bytes.empty()) {
    const auto complete = reader.read(bytes).value();
    ASSERT_TRUE(complete);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(reader.frame().data()) % 8, 0u);
  }
}

TEST(ControlFrameReader, SurvivesRandomBytes) {
  std::mt19937 random(20240601);
  size_t refused = 0;
  size_t frames = 0;
  for (int round = 0; round < 3000; ++round) {
    ControlFrameReader reader(4096);
    std::vector<uint8_t> noise(random() % 300);
    for (auto& byte : noise) byte = static_cast<uint8_t>(random());
    // Every other one begins with a length that is allowed, or noise would never get beyond the
    // header.
    if (round % 2 == 0 && noise.size() >= 4) noise[1] = noise[2] = noise[3] = 0;
    std::span<const uint8_t> bytes(noise);
    while (!bytes.empty()) {
      auto piece = bytes.first(std::min<size_t>(bytes.size(), 1 + random() % 50));
      const size_t before = piece.size();
      const auto complete = reader.read(piece);
      ASSERT_LE(piece.size(), before);
      bytes = bytes.subspan(before - piece.size());
      if (!complete) {
        ++refused;
        break;
      }
      if (*complete) {
        ++frames;
        EXPECT_GE(reader.frame().size(), 1u);
        EXPECT_LE(reader.frame().size(), 4096u);
      }
    }
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(frames, 100u);
}

}  // namespace
}  // namespace braid
