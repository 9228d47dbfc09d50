// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/hash.h"

namespace braid {

// Random numbers that are counted, not drawn: the number of an element follows from the keys and
// from its place alone. So neither the width of vectors nor the cut into parts changes it.
//
// Three rounds of multiply and shift (a bijection of 32 bits, after "triple32", hash-prospector by
// Chris Wellons), with a key before the first round and one before the second. Places are counted
// modulo 2^32: elements that are so far apart share their number.
struct Dither {
  uint32_t first_key = 0;
  uint32_t second_key = 0;
  uint32_t first_place = 0;  // of the first element

  // `seed` is the codec's, `stream` tells the users of one seed apart: node, tensor and direction.
  static constexpr Dither make(uint64_t seed, uint64_t stream, uint64_t step, uint64_t place) {
    constexpr uint64_t kOdd = 0x9e3779b97f4a7c15ULL;
    const uint64_t key = mix64(mix64(mix64(seed + kOdd) ^ (stream + kOdd)) ^ (step + kOdd));
    return {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32),
            static_cast<uint32_t>(place)};
  }

  constexpr Dither after(uint64_t elements) const {
    return {first_key, second_key, first_place + static_cast<uint32_t>(elements)};
  }

  // 32 random bits of the element `index` places after the first.
  constexpr uint32_t bits(uint32_t index) const {
    uint32_t x = (first_place + index) ^ first_key;
    x = (x ^ (x >> 17)) * kMultipliers[0] + second_key;
    x = (x ^ (x >> 11)) * kMultipliers[1];
    x = (x ^ (x >> 15)) * kMultipliers[2];
    return x ^ (x >> 14);
  }

  static constexpr uint32_t kMultipliers[3] = {0xed5ad4bbu, 0xac4c1b51u, 0x31848babu};
};

}  // namespace braid
