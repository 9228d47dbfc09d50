// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "net/tcp/message_taker.h"
#include "net/tcp/sealed_queue.h"
#include "net/tcp/sealed_reader.h"
#include "net/tcp/sealed_record.h"

namespace braid::testing {

using Bytes = std::vector<uint8_t>;

inline constexpr auto kRecord = static_cast<uint32_t>(SealedRecord::kBytesMax);
inline constexpr auto kHeader = static_cast<uint32_t>(kTestHeaderBytes);

inline RecordCipher test_cipher(uint8_t key = 7) {
  Sha256Digest bytes{};
  bytes.fill(key);
  return RecordCipher(bytes);
}

inline Bytes header_of(uint32_t number, uint32_t bytes) {
  const TestHeader header{bytes, number, {}};
  const auto* begin = reinterpret_cast<const uint8_t*>(&header);
  return {begin, begin + sizeof(header)};
}

// Two ends of a stream.
struct MessageSockets {
  MessageSockets() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    writing = Fd(ends[0]);
    reading = Fd(ends[1]);
  }
  void write(std::span<const uint8_t> bytes) const {
    ASSERT_EQ(::send(writing.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  Fd writing;
  Fd reading;
};

// Sends messages; the memory of those that are encrypted is overwritten.
class SealedSender final : private OutgoingMessages::Owner {
 public:
  explicit SealedSender(uint8_t key = 7, std::span<const uint8_t> greeting = {})
      : queue_(test_cipher(key), greeting) {}

  void push(uint32_t number, uint32_t bytes) {
    Message& message =
        messages_.emplace_back(Message{header_of(number, bytes), payload_of(number, bytes)});
    queue_.push(message.header, message.payload, messages_.size() - 1);
  }
  OutgoingMessages::Outcome flush(const Fd& socket) { return queue_.flush(socket.get(), *this); }
  // The bytes of what was pushed.
  Bytes stream() {
    const MessageSockets sockets;
    Bytes all;
    Bytes buffer(1 << 20);
    auto outcome = OutgoingMessages::Outcome::Full;
    while (outcome == OutgoingMessages::Outcome::Full) {
      outcome = flush(sockets.writing);
      for (ssize_t read = 1; read > 0;) {
        read = ::recv(sockets.reading.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (read > 0) all.insert(all.end(), buffer.begin(), buffer.begin() + read);
      }
    }
    EXPECT_EQ(outcome, OutgoingMessages::Outcome::Empty);
    return all;
  }
  size_t sent() const { return sent_; }
  bool empty() const { return queue_.empty(); }

 private:
  struct Message {
    Bytes header;
    Bytes payload;
  };

  void on_sent(uint64_t token) override {
    EXPECT_EQ(token, sent_++);
    std::ranges::fill(messages_[token].header, uint8_t{0xEE});
    std::ranges::fill(messages_[token].payload, uint8_t{0xEE});
  }

  SealedQueue queue_;
  std::deque<Message> messages_;
  size_t sent_ = 0;
};

class SealedReceiver {
 public:
  explicit SealedReceiver(std::vector<ChunkIntake::How> ways = {ChunkIntake::How::Whole},
                          uint8_t key = 7)
      : reader_(taker, kTestHeaderBytes, test_cipher(key)) {
    taker.ways = std::move(ways);
  }
  // Others use the buffer, too.
  IncomingMessages::Outcome read_once() {
    buffer_->fill(0xDD);
    return reader_.read(sockets.reading.get(), *buffer_);
  }
  IncomingMessages::Outcome read_all() {
    auto outcome = IncomingMessages::Outcome::More;
    while (outcome == IncomingMessages::Outcome::More) outcome = read_once();
    return outcome;
  }
  // As much of it as is read before an error, in cuts of `cut` bytes.
  IncomingMessages::Outcome take(std::span<const uint8_t> stream, size_t cut) {
    auto outcome = IncomingMessages::Outcome::Drained;
    while (!stream.empty() && outcome != IncomingMessages::Outcome::Failed) {
      const size_t next = std::min(stream.size(), cut);
      sockets.write(stream.first(next));
      stream = stream.subspan(next);
      outcome = read_all();
    }
    return outcome;
  }
  void expect_all(const std::vector<uint32_t>& sizes) const {
    EXPECT_TRUE(taker.failure.is_ok()) << taker.failure.message();
    ASSERT_EQ(taker.numbers.size(), sizes.size());
    expect_first(sizes);
  }
  // What has come is the beginning of what was sent.
  void expect_first(const std::vector<uint32_t>& sizes) const {
    ASSERT_LE(taker.numbers.size(), sizes.size());
    for (uint32_t number = 0; number < taker.numbers.size(); ++number) {
      EXPECT_EQ(taker.numbers[number], number);
      EXPECT_TRUE(taker.payloads[number] == payload_of(number, sizes[number])) << number;
    }
    EXPECT_TRUE(taker.is_folded_right);
  }

  MessageTaker taker;
  MessageSockets sockets;

 private:
  SealedReader reader_;
  std::unique_ptr<ReadBuffer> buffer_ = std::make_unique<ReadBuffer>();
};

inline void push_all(SealedSender& sender, const std::vector<uint32_t>& sizes) {
  for (uint32_t number = 0; number < sizes.size(); ++number) sender.push(number, sizes[number]);
}

inline Bytes stream_of(const std::vector<uint32_t>& sizes) {
  SealedSender sender;
  push_all(sender, sizes);
  return sender.stream();
}

}  // namespace braid::testing
