// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace braid {

// A daemon's identity: random, new at each start, so that a restarted daemon is never taken for the
// one before.
using NodeId = uint64_t;

struct Peer {
  NodeId id = 0;
  std::string name;     // for people
  std::string address;  // of its control plane, as others reach it
  uint16_t port = 0;
};

}  // namespace braid
