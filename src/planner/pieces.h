// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace braid {

// The bytes of one of `pieces` equal units of a group of `bytes`. What is left over goes to the
// first ones, a byte each.
constexpr uint64_t piece_bytes(uint64_t bytes, uint32_t pieces, uint32_t piece) {
  return bytes / pieces + (piece < bytes % pieces ? 1 : 0);
}

}  // namespace braid
