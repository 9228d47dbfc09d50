// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/flow_channel.h"

namespace braid {

// The message that comes on a channel now: its header, how its payload is taken in, and how much of
// it was.
//
//   payload that is here as a whole       goes to the handler
//   else, by what intake() says:
//     Store    each byte goes to its place
//     Fold     pieces go to the handler
//     Whole    is gathered in memory of its own
//
// intake() is asked again when more has come (look_again); when its answer changes, the rest is
// dropped.
class ComingMessage {
 public:
  enum class State : uint8_t { Header, Store, Fold, Whole, Drop };

  // `header_bytes`: kHeaderBytesMax at most.
  ComingMessage(FlowChannelHandler& handler, size_t header_bytes);

  State state() const { return state_; }
  FlowChannelHandler& handler() { return handler_; }
  std::span<uint8_t> header() { return std::span(header_).first(header_bytes_); }
  size_t header_bytes() const { return header_bytes_; }
  uint32_t payload_bytes() const { return payload_bytes_; }  // of the message, or of the last one
  size_t payload_left() const { return payload_bytes_ - taken_; }

  // The header is here. False: it is none, and the handler was told.
  bool begin();
  // The payload is here, too: that was the message.
  void take_whole(std::span<const uint8_t> payload);
  // It comes in parts.
  void begin_parts();
  // Store, Whole: where the next byte goes.
  uint8_t* place();
  // Fold: the next piece, see ChunkSink.
  void fold(std::span<const uint8_t> piece);
  // The next bytes are at place(), were folded, or are to be dropped. The last ones end the
  // message.
  void note_taken(size_t bytes);
  // Another flow may have brought the chunk, or its operation may be over. True: what is left of
  // the message is dropped from now on.
  bool look_again();

 private:
  static constexpr size_t kHeaderBytesMax = sizeof(proto::ChunkHeader);

  void end();

  FlowChannelHandler& handler_;
  const size_t header_bytes_;
  State state_ = State::Header;
  std::array<uint8_t, kHeaderBytesMax> header_{};
  uint32_t payload_bytes_ = 0;
  size_t taken_ = 0;            // of them
  ChunkIntake intake_;          // of that message
  std::vector<uint8_t> whole_;  // State::Whole; what it has room for stays
};

}  // namespace braid
