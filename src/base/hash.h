// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace braid {

// FNV-1a, 64 bits, the same on every machine. Anybody can make two texts of one hash: for what is
// no harm when it is taken for something else. What trainers name goes by JobHash.
constexpr uint64_t fnv1a64(std::string_view bytes, uint64_t seed = 0xcbf29ce484222325ULL) {
  uint64_t hash = seed;
  for (char c : bytes) {
    hash ^= static_cast<uint8_t>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

// Spreads the bits of `x` (splitmix64's finaliser): for hash tables and for choosing a loop.
constexpr uint64_t mix64(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace braid
