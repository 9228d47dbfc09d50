// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/message_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/fd.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using How = ChunkIntake::How;
using Outcome = MessageReader::Outcome;

constexpr size_t kHeaderBytes = sizeof(proto::ChunkHeader);

// A header of this test's: how many bytes follow, and which message it is.
struct TestHeader {
  uint32_t bytes = 0;
  uint32_t number = 0;
  std::array<uint8_t, kHeaderBytes - 8> zeros{};
};
static_assert(sizeof(TestHeader) == kHeaderBytes);

// Puts each message together, in whichever way it comes.
class Taker final : public FlowChannelHandler {
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
    EXPECT_EQ(header.size(), kHeaderBytes);
    if (parsed(header).number == kNone) return Status(StatusCode::Protocol, "no message");
    coming.assign(parsed(header).bytes, 0);
    return parsed(header).bytes;
  }
  ChunkIntake intake(std::span<const uint8_t> header) override {
    if (parsed(header).number == gone) return {};
    const How how = ways[parsed(header).number % ways.size()];
    return {how, how == How::Store ? coming.data() : nullptr};
  }
  void fold(std::span<const uint8_t> header, uint32_t offset,
            std::span<const uint8_t> piece) override {
    EXPECT_EQ(offset % ChunkSink::kPieceBytes, 0u);
    EXPECT_EQ(offset, folded);
    const bool is_last = offset + piece.size() == parsed(header).bytes;
    EXPECT_TRUE(is_last || piece.size() % ChunkSink::kPieceBytes == 0);
    std::copy(piece.begin(), piece.end(), coming.begin() + offset);
    folded = static_cast<uint32_t>(offset + piece.size());
  }
  void on_message_taken(std::span<const uint8_t> header, uint32_t bytes,
                        bool was_dropped) override {
    EXPECT_EQ(bytes, parsed(header).bytes);
    if (was_dropped) dropped.push_back(parsed(header).number);
    if (!was_dropped) end(header, std::move(coming));
    folded = 0;
  }

  static constexpr uint32_t kNone = UINT32_MAX;
  std::vector<How> ways{How::Whole};  // message n comes by ways[n mod size]
  uint32_t gone = kNone;              // this one can be taken in no more
  std::vector<uint32_t> numbers;      // as they came
  std::vector<std::vector<uint8_t>> payloads;
  std::vector<uint32_t> dropped;
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

std::vector<uint8_t> payload_of(uint32_t number, uint32_t bytes) {
  std::vector<uint8_t> payload(bytes);
  for (size_t at = 0; at < payload.size(); ++at)
    payload[at] = static_cast<uint8_t>(number * 31 + at * 7 + (at >> 8));
  return payload;
}

class MessageReaderTest : public ::testing::Test {
 protected:
  MessageReaderTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    writing_ = Fd(ends[0]);
    reading_ = Fd(ends[1]);
    const int room = 4 << 20;
    ::setsockopt(writing_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
  }

  static void add(std::vector<uint8_t>& stream, uint32_t number, uint32_t bytes) {
    const TestHeader header{bytes, number, {}};
    const auto* begin = reinterpret_cast<const uint8_t*>(&header);
    stream.insert(stream.end(), begin, begin + sizeof(header));
    const auto payload = payload_of(number, bytes);
    stream.insert(stream.end(), payload.begin(), payload.end());
  }
  void write(std::span<const uint8_t> bytes) {
    ASSERT_EQ(::send(writing_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT),
              static_cast<ssize_t>(bytes.size()));
  }
  Outcome read_all() {
    Outcome outcome = Outcome::More;
    while (outcome == Outcome::More) outcome = reader_.read(reading_.get(), *buffer_);
    return outcome;
  }
  void expect_all(uint32_t count, const std::vector<uint32_t>& bytes) {
    ASSERT_EQ(taker_.numbers.size(), count);
    for (uint32_t number = 0; number < count; ++number) {
      EXPECT_EQ(taker_.numbers[number], number);
      EXPECT_EQ(taker_.payloads[number], payload_of(number, bytes[number])) << number;
    }
  }

  Taker taker_;
  MessageReader reader_{taker_, kHeaderBytes};
  std::unique_ptr<ReadBuffer> buffer_ = std::make_unique<ReadBuffer>();
  Fd writing_;
  Fd reading_;
};

TEST_F(MessageReaderTest, ManySmallMessagesComeByOneRead) {
  std::vector<uint8_t> stream;
  std::vector<uint32_t> sizes;
  for (uint32_t number = 0; number < 100; ++number) {
    sizes.push_back(number * 3);
    add(stream, number, sizes.back());
  }
  write(stream);
  EXPECT_EQ(reader_.read(reading_.get(), *buffer_), Outcome::Drained);
  expect_all(100, sizes);
}

// Streams of messages of all sizes, cut anywhere, taken in in all ways. Others use the buffer, too.
TEST_F(MessageReaderTest, MessagesAreWholeWhereverTheStreamIsCut) {
  taker_.ways = {How::Store, How::Fold, How::Whole};
  std::mt19937 random(7);
  std::vector<uint8_t> stream;
  std::vector<uint32_t> sizes;
  for (uint32_t number = 0; number < 300; ++number) {
    const std::array<uint32_t, 6> limits{1, 64, 300, 5000, 40'000, 300'000};
    sizes.push_back(std::uniform_int_distribution<uint32_t>(0, limits[random() % 6])(random));
    add(stream, number, sizes.back());
  }
  std::span<const uint8_t> left(stream);
  while (!left.empty()) {
    const std::array<size_t, 4> limits{3, 100, 20'000, 150'000};
    const size_t next = std::min(left.size(), 1 + random() % limits[random() % 4]);
    write(left.first(next));
    left = left.subspan(next);
    ASSERT_EQ(read_all(), Outcome::Drained);
    buffer_->fill(0xEE);
  }
  expect_all(300, sizes);
  EXPECT_TRUE(taker_.failure.is_ok());
}

TEST_F(MessageReaderTest, WhatNobodyWantsAnyMoreIsDroppedToItsEnd) {
  for (const How how : {How::Store, How::Fold}) {
    Taker taker;
    taker.ways = {how};
    MessageReader reader(taker, kHeaderBytes);
    std::vector<uint8_t> stream;
    add(stream, 0, 100'000);
    add(stream, 1, 50);
    write(std::span(stream).first(30'001));
    while (reader.read(reading_.get(), *buffer_) == Outcome::More) {
    }
    taker.gone = 0;
    write(std::span(stream).subspan(30'001));
    while (reader.read(reading_.get(), *buffer_) == Outcome::More) {
    }
    EXPECT_THAT(taker.dropped, ElementsAre(0u));
    EXPECT_THAT(taker.numbers, ElementsAre(1u));
    EXPECT_EQ(taker.payloads[0], payload_of(1, 50));
  }
}

TEST_F(MessageReaderTest, AHeaderThatIsNoneEndsTheChannel) {
  std::vector<uint8_t> stream;
  add(stream, 0, 10);
  add(stream, Taker::kNone, 10);
  add(stream, 2, 10);
  write(stream);
  EXPECT_EQ(reader_.read(reading_.get(), *buffer_), Outcome::Failed);
  EXPECT_THAT(taker_.failure.message(), HasSubstr("no message"));
  EXPECT_THAT(taker_.numbers, ElementsAre(0u));
}

TEST_F(MessageReaderTest, TheEndOfTheStreamIsAnError) {
  writing_.reset();
  EXPECT_EQ(reader_.read(reading_.get(), *buffer_), Outcome::Failed);
  EXPECT_THAT(taker_.failure.message(), HasSubstr("closed the connection"));
}

TEST_F(MessageReaderTest, NothingToReadIsNoError) {
  EXPECT_EQ(reader_.read(reading_.get(), *buffer_), Outcome::Drained);
  EXPECT_TRUE(taker_.failure.is_ok());
}

}  // namespace
}  // namespace braid::testing
