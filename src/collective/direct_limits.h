// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace braid {

// Operations of a job that a node begins directly of its own accord, at once and on one I/O loop.
inline constexpr uint32_t kDirectInFlight = 16;
// Of a job and an I/O loop: parts of operations that this node has yet to submit.
inline constexpr uint64_t kDirectEarlyBytesMax = 64 << 20;

// All-reduces of more bytes are not direct among `nodes` nodes, two or more. Until a slow node
// submits, all others wait for its part, so they are kDirectInFlight of each other node at most;
// and of each it may get a part from all others.
constexpr uint64_t direct_bytes_max(uint32_t nodes) {
  const uint64_t others = nodes - 1;
  return kDirectEarlyBytesMax / (kDirectInFlight * others * others);
}

}  // namespace braid
