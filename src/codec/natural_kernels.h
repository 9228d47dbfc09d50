// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "codec/dither.h"
#include "codec/into.h"
#include "codec/rows.h"

namespace braid {

// Powers of two: 18 bytes for each row of 16 elements, of which 16 are the exponents as float32
// has them and two the signs (1: negative). An exponent e stands for 2^(e − 127), 0 for zero and
// 255 for NaN. What lies past the last element is 0, and nobody looks at it.
constexpr uint64_t natural_bytes(uint64_t count) { return divide_up(count, kRowElements) * 18; }

// Up or down to a power of two, the nearer the more likely. Above 2^127 always down.
void encode_natural(const float* in, uint64_t count, const Dither& dither, uint8_t* out);
void decode_natural(const uint8_t* in, uint64_t count, Into into, float* out);

}  // namespace braid
