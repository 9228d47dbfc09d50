// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <sys/uio.h>

#include "net/flow_channel.h"

namespace braid {

// Where a loop's channels read what has no place of its own yet: small enough to stay in a core's
// L2 cache, so what is folded from here does not come from memory again.
using ReadBuffer = std::array<uint8_t, 256 << 10>;

// Reads a flow's messages from its TCP socket: MessageReader in clear, SealedReader encrypted ones.
class IncomingMessages {
 public:
  enum class Outcome : uint8_t {
    Drained,  // all that was there was read
    More,     // there may be more
    Failed,   // the handler was told
  };

  virtual ~IncomingMessages() = default;
  // One system call. `buffer` may be used by others before and afterwards.
  virtual Outcome read(int socket, ReadBuffer& buffer) = 0;

 protected:
  // How many bytes came, 0 if none are there. Nothing: the connection is over, and `handler` was
  // told.
  static std::optional<size_t> receive(int socket, std::span<iovec> parts,
                                       FlowChannelHandler& handler);
};

}  // namespace braid
