// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/message_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <sys/uio.h>

namespace braid {
namespace {

// After a message of so many bytes the next header is read alone: what follows it is likely to be
// as large, and has a place where it can be read to without a copy.
constexpr size_t kLargePayload = 16 << 10;

}  // namespace

MessageReader::MessageReader(FlowChannelHandler& handler, size_t header_bytes)
    : message_(handler, header_bytes) {}

MessageReader::Outcome MessageReader::read(int socket, ReadBuffer& buffer) {
  look_again();
  std::array<iovec, 2> parts{};
  size_t count = 0;
  size_t placed = 0;  // bytes of parts[0] that are not in the buffer
  if (message_.state() == State::Store || message_.state() == State::Whole) {
    placed = message_.payload_left();
    parts[count++] = {message_.place(), placed};
  }
  // What was left of the last piece comes first, so the next one is aligned.
  std::memcpy(buffer.data(), rest_.data(), rest_bytes_);
  const size_t room = std::min(read_ahead(), buffer.size() - rest_bytes_);
  parts[count++] = {buffer.data() + rest_bytes_, room};
  const auto received = receive(socket, std::span(parts).first(count), message_.handler());
  if (!received) return Outcome::Failed;
  if (*received == 0) return Outcome::Drained;
  if (const size_t stored = std::min(*received, placed); stored != 0) message_.note_taken(stored);
  if (*received > placed) {
    const size_t buffered = *received - placed + std::exchange(rest_bytes_, 0);
    if (!take(std::span(buffer).first(buffered))) return Outcome::Failed;
  }
  return *received == placed + room ? Outcome::More : Outcome::Drained;
}

void MessageReader::look_again() {
  if (message_.look_again()) message_.note_taken(std::exchange(rest_bytes_, 0));
}

size_t MessageReader::read_ahead() const {
  if (message_.payload_bytes() < kLargePayload) return sizeof(ReadBuffer);
  switch (message_.state()) {
    case State::Header:
      return message_.header_bytes() - header_taken_;
    case State::Store:
    case State::Whole:
      return message_.header_bytes();
    case State::Fold:
    case State::Drop:
      break;
  }
  return message_.payload_left() - rest_bytes_ + message_.header_bytes();
}

// False: what has come is no message.
bool MessageReader::take(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    if (message_.state() != State::Header) {
      bytes = take_payload(bytes);
      continue;
    }
    bytes = take_header(bytes);
    if (header_taken_ == message_.header_bytes() && !begin_payload(bytes)) return false;
  }
  return true;
}

std::span<const uint8_t> MessageReader::take_header(std::span<const uint8_t> bytes) {
  const auto room = message_.header().subspan(header_taken_);
  const size_t next = std::min(bytes.size(), room.size());
  std::memcpy(room.data(), bytes.data(), next);
  header_taken_ += next;
  return bytes.subspan(next);
}

bool MessageReader::begin_payload(std::span<const uint8_t>& bytes) {
  header_taken_ = 0;
  if (!message_.begin()) return false;
  const size_t payload = message_.payload_bytes();
  if (bytes.size() >= payload) {
    message_.take_whole(bytes.first(payload));
    bytes = bytes.subspan(payload);
  } else {
    message_.begin_parts();
  }
  return true;
}

std::span<const uint8_t> MessageReader::take_payload(std::span<const uint8_t> bytes) {
  const auto next = bytes.first(std::min(bytes.size(), message_.payload_left()));
  const auto after = bytes.subspan(next.size());
  switch (message_.state()) {
    case State::Header:
      break;
    case State::Store:
    case State::Whole:
      std::memcpy(message_.place(), next.data(), next.size());
      message_.note_taken(next.size());
      break;
    case State::Drop:
      message_.note_taken(next.size());
      break;
    case State::Fold:
      fold(next);
      break;
  }
  return after;
}

// `bytes` begin with what was left of the last piece.
void MessageReader::fold(std::span<const uint8_t> bytes) {
  const bool is_last = bytes.size() == message_.payload_left();
  const size_t rest = is_last ? 0 : bytes.size() % ChunkSink::kPieceBytes;
  const auto piece = bytes.first(bytes.size() - rest);
  std::memcpy(rest_.data(), bytes.data() + piece.size(), rest);
  rest_bytes_ = rest;
  if (piece.empty()) return;
  message_.fold(piece);
  message_.note_taken(piece.size());
}

}  // namespace braid
