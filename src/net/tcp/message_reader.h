// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/tcp/coming_message.h"
#include "net/tcp/incoming_messages.h"

namespace braid {

// Reads messages from a TCP socket: headers of one size, each with the payload that it announces.
// What is to be stored (ComingMessage) is read straight to its place, the rest into the buffer.
class MessageReader final : public IncomingMessages {
 public:
  MessageReader(FlowChannelHandler& handler, size_t header_bytes);

  Outcome read(int socket, ReadBuffer& buffer) override;

 private:
  using State = ComingMessage::State;

  void look_again();
  size_t read_ahead() const;
  bool take(std::span<const uint8_t> bytes);
  std::span<const uint8_t> take_header(std::span<const uint8_t> bytes);
  bool begin_payload(std::span<const uint8_t>& bytes);
  std::span<const uint8_t> take_payload(std::span<const uint8_t> bytes);
  void fold(std::span<const uint8_t> bytes);

  ComingMessage message_;
  size_t header_taken_ = 0;
  std::array<uint8_t, ChunkSink::kPieceBytes> rest_{};  // Fold: less than a piece has come
  size_t rest_bytes_ = 0;
};

}  // namespace braid
