// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace braid {

// Units of a job's early operations that a node begins of its own accord, at once and on one I/O
// loop.
inline constexpr uint32_t kEarlyInFlight = 16;
// How many bytes an I/O loop keeps for a job: parts of operations that this node has yet to submit.
inline constexpr uint64_t kEarlyBytesMax = 64 << 20;

// All-reduces of more bytes are not direct among `nodes` nodes, two or more. Until a slow node
// submits, all others wait for its part, so they are kEarlyInFlight of each other node at most;
// and of each it may get a part from all others.
constexpr uint64_t direct_bytes_max(uint32_t nodes) {
  const uint64_t others = nodes - 1;
  return kEarlyBytesMax / (kEarlyInFlight * others * others);
}

// By two hops a node gets parts of the segment alone that it owns, which is cut at multiples of 64
// bytes: among n nodes n times as much is early. Smaller ones than the least may leave segments
// empty, and then their units wait for no stream, so nothing would bound how many are in flight.
// Among more than 257 nodes none is early.
constexpr uint64_t early_two_hops_bytes_max(uint32_t nodes) {
  const uint64_t direct = direct_bytes_max(nodes);
  return direct <= 64 ? 0 : nodes * (direct - 64);
}
constexpr uint64_t early_two_hops_bytes_min(uint32_t nodes) {
  return uint64_t{64} * nodes * (nodes - 1);
}

}  // namespace braid
