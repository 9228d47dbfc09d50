// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace braid {

// A flow's messages that wait for room in its TCP socket: SendQueue sends them in clear,
// SealedQueue encrypts them.
class OutgoingMessages {
 public:
  enum class Outcome : uint8_t {
    Empty,   // all is the kernel's now
    Full,    // the socket has no room
    Failed,  // error() says why
  };
  struct Owner {
    virtual ~Owner() = default;
    // The message's memory is not read any more. May push.
    virtual void on_sent(uint64_t token) = 0;
  };

  virtual ~OutgoingMessages() = default;
  void push(std::span<const uint8_t> header, std::span<const uint8_t> payload, uint64_t token);
  virtual bool empty() const = 0;
  virtual Outcome flush(int socket, Owner& owner) = 0;
  const Status& error() const { return error_; }

 protected:
  struct Message {
    std::span<const uint8_t> header;
    std::span<const uint8_t> payload;
    uint64_t token;
  };

  std::span<const Message> waiting() const { return std::span(messages_).subspan(first_); }
  // The first one.
  void end_message(Owner& owner);
  Outcome fail(Status error);
  // By errno.
  Outcome after_failed_send();

 private:
  std::vector<Message> messages_;  // what it has room for stays
  size_t first_ = 0;               // those before it are sent
  Status error_;
};

}  // namespace braid
