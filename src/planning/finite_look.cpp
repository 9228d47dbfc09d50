// SPDX-License-Identifier: Apache-2.0
#include "planning/finite_look.h"

#include <cstring>

namespace braid {
namespace {

// NaN and infinity are the numbers whose exponent has all bits set.
template <typename Word>
bool is_finite(const uint8_t* input, uint64_t bytes, Word exponent) {
  bool is_finite = true;
  for (uint64_t at = 0; at + sizeof(Word) <= bytes; at += sizeof(Word)) {
    Word word = 0;
    std::memcpy(&word, input + at, sizeof(Word));
    is_finite &= (word & exponent) != exponent;
  }
  return is_finite;
}

bool is_finite(const uint8_t* input, uint64_t bytes, DataType dtype) {
  switch (dtype) {
    case DataType::Float32:
      return is_finite<uint32_t>(input, bytes, 0x7f80'0000U);
    case DataType::Float64:
      return is_finite<uint64_t>(input, bytes, 0x7ff0'0000'0000'0000U);
    case DataType::Float16:
      return is_finite<uint16_t>(input, bytes, 0x7c00U);
    case DataType::BFloat16:
      return is_finite<uint16_t>(input, bytes, 0x7f80U);
    case DataType::Int32:
    case DataType::Int64:
    case DataType::Uint8:
      break;
  }
  return true;
}

}  // namespace

bool looks_finite(const uint8_t* input, uint64_t bytes, DataType dtype) {
  if (bytes <= 3 * kLookedAtBytes) return is_finite(input, bytes, dtype);
  const uint64_t middle = bytes / 2 / kLookedAtBytes * kLookedAtBytes;
  const uint64_t last = bytes - kLookedAtBytes;
  return is_finite(input, kLookedAtBytes, dtype) &&
         is_finite(input + middle, kLookedAtBytes, dtype) &&
         is_finite(input + last, kLookedAtBytes, dtype);
}

}  // namespace braid
