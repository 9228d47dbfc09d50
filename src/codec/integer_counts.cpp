// SPDX-License-Identifier: Apache-2.0
#include "codec/integer_counts.h"

#include <algorithm>

#include "base/assert.h"
#include "codec/gradient_codec.h"
#include "codec/rows.h"

namespace braid {
namespace {

constexpr int8_t kSpoilt = IntegerSums::kNotFinite;

// Without a branch: the compiler makes vectors of it.
int8_t added(int8_t count, int8_t more) {
  const auto sum = static_cast<int8_t>(static_cast<uint8_t>(count) + static_cast<uint8_t>(more));
  return count == kSpoilt || more == kSpoilt ? kSpoilt : sum;
}

uint32_t bit_of(const uint8_t* bits, uint64_t i) { return (bits[i / 8] >> (i % 8)) & 1u; }

}  // namespace

void count_signs(const uint8_t* signs, std::span<int8_t> counts) {
  for (uint64_t i = 0; i < counts.size(); ++i) {
    counts[i] = added(counts[i], bit_of(signs, i) != 0 ? int8_t{-1} : int8_t{1});
  }
}

void count_ternary(const uint8_t* encoded, std::span<int8_t> counts) {
  constexpr uint64_t kRowBytes = 4;
  for (uint64_t i = 0; i < counts.size(); ++i) {
    const uint8_t* const row = encoded + i / kRowElements * kRowBytes;
    const uint32_t plus = bit_of(row, i % kRowElements);
    const uint32_t minus = bit_of(row + kRowBytes / 2, i % kRowElements);
    const auto step = static_cast<int8_t>(static_cast<int>(plus) - static_cast<int>(minus));
    counts[i] = added(counts[i], (plus & minus) != 0 ? kSpoilt : step);
  }
}

void spoil_counts(std::span<int8_t> counts) { std::fill(counts.begin(), counts.end(), kSpoilt); }

void add_counts(std::span<const int8_t> more, std::span<int8_t> counts) {
  BRAID_ASSERT(more.size() == counts.size(), "counts of parts that differ");
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = added(counts[i], more[i]);
}

}  // namespace braid
