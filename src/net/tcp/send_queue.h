// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>

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
  using Done = std::function<void(uint64_t token)>;

  void push(std::span<const uint8_t> header, std::span<const uint8_t> payload, uint64_t token);
  bool empty() const { return messages_.empty(); }
  // `done` is told of each message whose memory is not read any more; it may push.
  Outcome flush(int socket, const Done& done);
  const Status& error() const { return error_; }

 private:
  struct Message {
    std::span<const uint8_t> header;
    std::span<const uint8_t> payload;
    uint64_t token;
  };

  ssize_t send_some(int socket);

  std::deque<Message> messages_;
  size_t sent_ = 0;  // bytes of the first message
  Status error_;
};

}  // namespace braid
