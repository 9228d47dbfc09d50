// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace braid {

// Messages that wait for room in a TCP socket. They are sent from where they lie, many by one
// system call.
class SendQueue {
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

  void push(std::span<const uint8_t> header, std::span<const uint8_t> payload, uint64_t token);
  bool empty() const { return first_ == messages_.size(); }
  Outcome flush(int socket, Owner& owner);
  const Status& error() const { return error_; }

 private:
  struct Message {
    std::span<const uint8_t> header;
    std::span<const uint8_t> payload;
    uint64_t token;
  };

  ssize_t send_some(int socket);

  std::vector<Message> messages_;  // what it has room for stays
  size_t first_ = 0;               // those before it are sent
  size_t sent_ = 0;                // bytes of the first message
  Status error_;
};

}  // namespace braid
