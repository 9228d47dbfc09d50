// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/coming_message.h"

#include <utility>

#include "base/assert.h"

namespace braid {

ComingMessage::ComingMessage(FlowChannelHandler& handler, size_t header_bytes)
    : handler_(handler), header_bytes_(header_bytes) {
  BRAID_ASSERT(header_bytes <= kHeaderBytesMax, "no message has a larger header");
}

bool ComingMessage::begin() {
  const auto announced = handler_.payload_bytes(header());
  if (!announced) {
    handler_.on_channel_error(announced.status());
    return false;
  }
  payload_bytes_ = *announced;
  taken_ = 0;
  return true;
}

void ComingMessage::take_whole(std::span<const uint8_t> payload) {
  handler_.on_message(header(), payload, true);
}

void ComingMessage::begin_parts() {
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

uint8_t* ComingMessage::place() {
  return (state_ == State::Store ? intake_.store_at : whole_.data()) + taken_;
}

void ComingMessage::fold(std::span<const uint8_t> piece) {
  handler_.fold(header(), static_cast<uint32_t>(taken_), piece);
}

void ComingMessage::note_taken(size_t bytes) {
  taken_ += bytes;
  if (taken_ == payload_bytes_) end();
}

bool ComingMessage::look_again() {
  if (state_ != State::Store && state_ != State::Fold) return false;
  if (handler_.intake(header()) == intake_) return false;
  state_ = State::Drop;
  return true;
}

void ComingMessage::end() {
  const State state = std::exchange(state_, State::Header);
  if (state == State::Whole) {
    handler_.on_message(header(), std::span(whole_).first(payload_bytes_), true);
  } else {
    handler_.on_message_taken(header(), state == State::Drop);
  }
}

}  // namespace braid
