// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <sys/types.h>

#include "net/tcp/outgoing_messages.h"

namespace braid {

// Sends messages from where they lie, many by one system call.
class SendQueue final : public OutgoingMessages {
 public:
  bool empty() const override { return waiting().empty(); }
  Outcome flush(int socket, Owner& owner) override;

 private:
  ssize_t send_some(int socket);

  size_t sent_ = 0;  // bytes of the first message
};

}  // namespace braid
