// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace braid {

// Of a group of `bytes` in `pieces` equal units: what is left over goes to the first ones, a byte
// each.
constexpr uint64_t piece_bytes(uint64_t bytes, uint32_t pieces, uint32_t piece) {
  return bytes / pieces + (piece < bytes % pieces ? 1 : 0);
}

}  // namespace braid
