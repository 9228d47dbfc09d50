// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "net/flow_channel.h"

namespace braid::testing {

inline constexpr size_t kTestHeaderBytes = sizeof(proto::ChunkHeader);

// A header of these tests: how many bytes follow, and which message it is.
struct TestHeader {
  uint32_t bytes = 0;
  uint32_t number = 0;
  std::array<uint8_t, kTestHeaderBytes - 8> zeros{};
};
static_assert(sizeof(TestHeader) == kTestHeaderBytes);

// The payload of the message with that number.
inline uint8_t payload_byte(uint32_t number, size_t at) {
  return static_cast<uint8_t>(number * 31 + at * 7 + (at >> 8));
}
inline std::vector<uint8_t> payload_of(uint32_t number, uint32_t bytes) {
  std::vector<uint8_t> payload(bytes);
  for (size_t at = 0; at < payload.size(); ++at) payload[at] = payload_byte(number, at);
  return payload;
}

// Puts each message together, in whichever way it comes.
class MessageTaker final : public FlowChannelHandler {
 public:
  void on_work() override {}
  void on_connected() override {}
  void on_channel_error(const Status& error) override { failure = error; }
  void on_send_done(uint64_t, const Status&) override {}

  void on_message(std::span<const uint8_t> header, std::span<const uint8_t> payload,
                  bool is_whole) override {
    EXPECT_TRUE(is_whole);
    EXPECT_EQ(payload.size(), parsed(header).bytes);
    end(header, {payload.begin(), payload.end()});
  }
  Result<uint32_t> payload_bytes(std::span<const uint8_t> header) override {
    EXPECT_EQ(header.size(), kTestHeaderBytes);
    if (parsed(header).number == kNone) return Status(StatusCode::Protocol, "no message");
    coming.assign(parsed(header).bytes, 0);
    return parsed(header).bytes;
  }
  ChunkIntake intake(std::span<const uint8_t> header) override {
    if (parsed(header).number == gone) return {};
    const auto how = ways[parsed(header).number % ways.size()];
    return {how, how == ChunkIntake::How::Store ? coming.data() : nullptr};
  }
  void fold(std::span<const uint8_t> header, uint32_t offset,
            std::span<const uint8_t> piece) override {
    EXPECT_EQ(offset % ChunkSink::kPieceBytes, 0u);
    EXPECT_EQ(offset, folded);
    const bool is_last = offset + piece.size() == parsed(header).bytes;
    EXPECT_TRUE(is_last || piece.size() % ChunkSink::kPieceBytes == 0);
    for (size_t at = 0; at < piece.size(); ++at)
      is_folded_right &= piece[at] == payload_byte(parsed(header).number, offset + at);
    std::copy(piece.begin(), piece.end(), coming.begin() + offset);
    folded = static_cast<uint32_t>(offset + piece.size());
  }
  void on_message_taken(std::span<const uint8_t> header, bool was_dropped) override {
    if (was_dropped) dropped.push_back(parsed(header).number);
    if (!was_dropped) end(header, std::move(coming));
    folded = 0;
  }

  static constexpr uint32_t kNone = UINT32_MAX;
  // Message n comes by ways[n mod size].
  std::vector<ChunkIntake::How> ways{ChunkIntake::How::Whole};
  uint32_t gone = kNone;          // this one can be taken in no more
  std::vector<uint32_t> numbers;  // as they came
  std::vector<std::vector<uint8_t>> payloads;
  std::vector<uint32_t> dropped;
  bool is_folded_right = true;
  Status failure;

 private:
  static TestHeader parsed(std::span<const uint8_t> header) {
    TestHeader copy;
    std::memcpy(static_cast<void*>(&copy), header.data(), sizeof(copy));
    return copy;
  }
  void end(std::span<const uint8_t> header, std::vector<uint8_t> payload) {
    numbers.push_back(parsed(header).number);
    payloads.push_back(std::move(payload));
  }
  std::vector<uint8_t> coming;
  uint32_t folded = 0;
};

}  // namespace braid::testing
