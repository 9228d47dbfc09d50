// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/record_cipher.h"
#include "net/tcp/outgoing_messages.h"

namespace braid {

// Encrypts messages, as records (SealedRecord), into a buffer of its own and sends them from there.
// So a message's memory is free once it is encrypted. While the buffer is full, messages wait as
// they are.
class SealedQueue final : public OutgoingMessages {
 public:
  // `greeting` goes first, in clear.
  SealedQueue(RecordCipher cipher, std::span<const uint8_t> greeting);

  bool empty() const override { return waiting().empty() && begin_ == end_; }
  Outcome flush(int socket, Owner& owner) override;

 private:
  Status seal_some(Owner& owner);
  bool has_room(size_t bytes);
  Status seal_next(const Message& message, size_t bytes);

  RecordCipher cipher_;
  std::vector<uint8_t> buffer_;
  size_t begin_ = 0;  // [begin_, end_) of the buffer are encrypted and not sent
  size_t end_ = 0;
  size_t sealed_ = 0;  // bytes of the first message
};

}  // namespace braid
