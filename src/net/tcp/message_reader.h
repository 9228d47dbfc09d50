// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/flow_channel.h"

namespace braid {

// Where a loop's channels read what has no place of its own yet: small enough to stay in a core's
// L2 cache, so what is folded from here does not come from memory again.
using ReadBuffer = std::array<uint8_t, 256 << 10>;

// Reads messages from a TCP socket: headers of one size, each with the payload that it announces.
//
//   payload in the buffer as a whole      goes to the handler from there
//   else, by what intake() says:
//     Store    the rest is read straight to its place
//     Fold     is read into the buffer and goes to the handler in pieces
//     Whole    is gathered in memory of its own
//
// intake() is asked again before each read; when its answer changes, the rest is dropped.
class MessageReader {
 public:
  enum class Outcome : uint8_t {
    Drained,  // all that was there was read
    More,     // there may be more
    Failed,   // the handler was told
  };

  // `header_bytes`: kHeaderBytesMax at most.
  MessageReader(FlowChannelHandler& handler, size_t header_bytes);

  // One system call. `buffer` may be used by others before and afterwards.
  Outcome read(int socket, ReadBuffer& buffer);

 private:
  static constexpr size_t kHeaderBytesMax = sizeof(proto::ChunkHeader);
  enum class State : uint8_t { Header, Store, Fold, Whole, Drop };

  std::span<const uint8_t> header() const { return std::span(header_).first(header_bytes_); }
  size_t payload_left() const { return payload_bytes_ - taken_; }
  void look_again();
  size_t read_ahead() const;
  bool take(std::span<const uint8_t> bytes);
  std::span<const uint8_t> take_header(std::span<const uint8_t> bytes);
  bool begin_payload(std::span<const uint8_t>& bytes);
  void begin_intake();
  std::span<const uint8_t> take_payload(std::span<const uint8_t> bytes);
  void fold(std::span<const uint8_t> bytes);
  void note_taken(size_t bytes);
  void end_payload();

  FlowChannelHandler& handler_;
  const size_t header_bytes_;
  State state_ = State::Header;
  std::array<uint8_t, kHeaderBytesMax> header_{};
  size_t header_taken_ = 0;
  uint32_t payload_bytes_ = 0;  // of the message that is being read, or of the last one
  size_t taken_ = 0;            // of them; Fold: without the rest
  ChunkIntake intake_;          // of that message
  std::vector<uint8_t> whole_;  // State::Whole; what it has room for stays
  std::array<uint8_t, ChunkSink::kPieceBytes> rest_{};  // State::Fold: less than a piece has come
  size_t rest_bytes_ = 0;
};

}  // namespace braid
