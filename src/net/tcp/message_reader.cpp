// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/message_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>
#include <sys/uio.h>

#include "base/assert.h"

namespace braid {
namespace {

// After a message of so many bytes the next header is read alone: what follows it is likely to be
// as large, and has a place where it can be read to without a copy.
constexpr size_t kLargePayload = 16 << 10;

}  // namespace

MessageReader::MessageReader(FlowChannelHandler& handler, size_t header_bytes)
    : handler_(handler), header_bytes_(header_bytes) {
  BRAID_ASSERT(header_bytes <= kHeaderBytesMax, "no message has a larger header");
}

MessageReader::Outcome MessageReader::read(int socket, ReadBuffer& buffer) {
  look_again();
  std::array<iovec, 2> parts{};
  size_t count = 0;
  size_t placed = 0;  // bytes of parts[0] that are not in the buffer
  if (state_ == State::Store || state_ == State::Whole) {
    uint8_t* const place = state_ == State::Store ? intake_.store_at : whole_.data();
    placed = payload_left();
    parts[count++] = {place + taken_, placed};
  }
  // What was left of the last piece comes first, so the next one is aligned.
  std::memcpy(buffer.data(), rest_.data(), rest_bytes_);
  const size_t room = std::min(read_ahead(), buffer.size() - rest_bytes_);
  parts[count++] = {buffer.data() + rest_bytes_, room};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  const ssize_t received = ::recvmsg(socket, &message, MSG_DONTWAIT);
  if (received < 0) {
    if (errno == EAGAIN || errno == EINTR) return Outcome::Drained;
    handler_.on_channel_error(Status::from_errno(errno, "the connection broke"));
    return Outcome::Failed;
  }
  if (received == 0) {
    handler_.on_channel_error({StatusCode::Unavailable, "the other side closed the connection"});
    return Outcome::Failed;
  }
  const auto bytes = static_cast<size_t>(received);
  if (const size_t stored = std::min(bytes, placed); stored != 0) note_taken(stored);
  if (bytes > placed) {
    const size_t buffered = bytes - placed + std::exchange(rest_bytes_, 0);
    if (!take(std::span(buffer).first(buffered))) return Outcome::Failed;
  }
  return bytes == placed + room ? Outcome::More : Outcome::Drained;
}

// Another flow may have brought the chunk, or its operation may be over.
void MessageReader::look_again() {
  if (state_ != State::Store && state_ != State::Fold) return;
  if (handler_.intake(header()) == intake_) return;
  if (state_ == State::Fold) {
    taken_ += std::exchange(rest_bytes_, 0);
  }
  state_ = State::Drop;
}

size_t MessageReader::read_ahead() const {
  if (payload_bytes_ < kLargePayload) return sizeof(ReadBuffer);
  const size_t headers = header_bytes_ - header_taken_;
  switch (state_) {
    case State::Header:
      return headers;
    case State::Store:
    case State::Whole:
      return header_bytes_;
    case State::Fold:
    case State::Drop:
      break;
  }
  return payload_left() - rest_bytes_ + header_bytes_;
}

// False: what has come is no message.
bool MessageReader::take(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    if (state_ != State::Header) {
      bytes = take_payload(bytes);
      continue;
    }
    bytes = take_header(bytes);
    if (header_taken_ == header_bytes_ && !begin_payload(bytes)) return false;
  }
  return true;
}

std::span<const uint8_t> MessageReader::take_header(std::span<const uint8_t> bytes) {
  const size_t next = std::min(bytes.size(), header_bytes_ - header_taken_);
  std::memcpy(header_.data() + header_taken_, bytes.data(), next);
  header_taken_ += next;
  return bytes.subspan(next);
}

bool MessageReader::begin_payload(std::span<const uint8_t>& bytes) {
  header_taken_ = 0;
  const auto announced = handler_.payload_bytes(header());
  if (!announced) {
    handler_.on_channel_error(announced.status());
    return false;
  }
  payload_bytes_ = *announced;
  taken_ = 0;
  if (bytes.size() >= payload_bytes_) {
    handler_.on_message(header(), bytes.first(payload_bytes_), true);
    bytes = bytes.subspan(payload_bytes_);
  } else {
    begin_intake();
  }
  return true;
}

void MessageReader::begin_intake() {
  intake_ = handler_.intake(header());
  switch (intake_.how) {
    case ChunkIntake::How::Store:
      state_ = State::Store;
      return;
    case ChunkIntake::How::Fold:
      state_ = State::Fold;
      return;
    case ChunkIntake::How::Whole:
      state_ = State::Whole;
      if (whole_.size() < payload_bytes_) whole_.resize(payload_bytes_);
      return;
  }
}

std::span<const uint8_t> MessageReader::take_payload(std::span<const uint8_t> bytes) {
  const auto next = bytes.first(std::min(bytes.size(), payload_left()));
  const auto after = bytes.subspan(next.size());
  switch (state_) {
    case State::Header:
      break;
    case State::Store:
      std::memcpy(intake_.store_at + taken_, next.data(), next.size());
      note_taken(next.size());
      break;
    case State::Whole:
      std::memcpy(whole_.data() + taken_, next.data(), next.size());
      note_taken(next.size());
      break;
    case State::Drop:
      note_taken(next.size());
      break;
    case State::Fold:
      fold(next);
      break;
  }
  return after;
}

// `bytes` begin with what was left of the last piece.
void MessageReader::fold(std::span<const uint8_t> bytes) {
  const bool is_last = bytes.size() == payload_left();
  const size_t rest = is_last ? 0 : bytes.size() % ChunkSink::kPieceBytes;
  const auto piece = bytes.first(bytes.size() - rest);
  if (!piece.empty()) handler_.fold(header(), static_cast<uint32_t>(taken_), piece);
  std::memcpy(rest_.data(), bytes.data() + piece.size(), rest);
  rest_bytes_ = rest;
  if (!piece.empty()) note_taken(piece.size());
}

void MessageReader::note_taken(size_t bytes) {
  taken_ += bytes;
  if (taken_ == payload_bytes_) end_payload();
}

void MessageReader::end_payload() {
  const State state = std::exchange(state_, State::Header);
  if (state == State::Whole) {
    handler_.on_message(header(), std::span(whole_).first(payload_bytes_), true);
  } else {
    handler_.on_message_taken(header(), payload_bytes_, state == State::Drop);
  }
}

}  // namespace braid
