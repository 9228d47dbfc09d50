// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

namespace braid {

using SipKey = std::array<uint64_t, 2>;

// SipHash-2-4 (Aumasson and Bernstein, INDOCRYPT 2012): who does not know the key cannot make two
// inputs of one hash, nor tell the hash of any. Several cycles per byte: for names and short
// records.
inline uint64_t siphash24(const SipKey& key, std::span<const uint8_t> bytes) {
  static_assert(std::endian::native == std::endian::little, "words are read as they lie");
  uint64_t v0 = key[0] ^ 0x736f6d6570736575ULL;
  uint64_t v1 = key[1] ^ 0x646f72616e646f6dULL;
  uint64_t v2 = key[0] ^ 0x6c7967656e657261ULL;
  uint64_t v3 = key[1] ^ 0x7465646279746573ULL;
  const auto mix = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      v0 += v1;
      v2 += v3;
      v1 = std::rotl(v1, 13) ^ v0;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32);
      v2 += v1;
      v0 += v3;
      v1 = std::rotl(v1, 17) ^ v2;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 = std::rotl(v2, 32);
    }
  };
  const auto take = [&](uint64_t word) {
    v3 ^= word;
    mix(2);
    v0 ^= word;
  };
  size_t taken = 0;
  for (; taken + sizeof(uint64_t) <= bytes.size(); taken += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + taken, sizeof(word));
    take(word);
  }
  uint64_t last = static_cast<uint64_t>(bytes.size()) << 56;
  for (size_t i = taken; i < bytes.size(); ++i)
    last |= static_cast<uint64_t>(bytes[i]) << (8 * (i - taken));
  take(last);
  v2 ^= 0xff;
  mix(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace braid
