// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/status.h"

namespace braid::delay_line {

// A node's NIC whose other end is a descriptor: a read takes a frame that the node has sent, a
// write hands it one (packets.h says what a frame is). The device is gone when the descriptor is.
struct Tap {
  Fd fd;
  uint64_t address = 0;  // six bytes of Ethernet address, as ethernet_address() makes it

  // Makes `interface` in the network namespace whose file is `namespace_path`. Calls setns(), so
  // the process must have no other thread; it returns to the namespace that it came from.
  static Result<Tap> create(const std::string& namespace_path, const std::string& interface);
};

// The six bytes at `bytes`.
uint64_t ethernet_address(const void* bytes);

}  // namespace braid::delay_line
