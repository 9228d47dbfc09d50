// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/record_cipher.h"
#include "net/tcp/coming_message.h"
#include "net/tcp/incoming_messages.h"

namespace braid {

// Reads messages from a TCP socket that a SealedQueue fills: records (SealedRecord) come into the
// buffer and are decrypted, straight to its place what is to be stored, else where they lie. The
// handler hears of nothing before the tag of its record was checked; at a place to store there may
// have been bytes of a record that is refused.
class SealedReader final : public IncomingMessages {
 public:
  SealedReader(FlowChannelHandler& handler, size_t header_bytes, RecordCipher cipher);

  Outcome read(int socket, ReadBuffer& buffer) override;

 private:
  using State = ComingMessage::State;

  size_t missing() const;
  bool take(std::span<uint8_t> bytes);
  bool check_length(size_t bytes);
  bool take_record(std::span<uint8_t> record);
  bool take_first(std::span<uint8_t> plain);
  bool fail(const char* why);

  ComingMessage message_;
  RecordCipher cipher_;
  // The record of which only a part has come. Its memory is made when there is one, and stays.
  std::vector<uint8_t> begun_;
  size_t begun_bytes_ = 0;
};

}  // namespace braid
