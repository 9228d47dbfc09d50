// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/message_reader.h"

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "net/tcp/message_taker.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using How = ChunkIntake::How;
using Outcome = MessageReader::Outcome;
constexpr size_t kHeaderBytes = kTestHeaderBytes;
using Taker = MessageTaker;

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
