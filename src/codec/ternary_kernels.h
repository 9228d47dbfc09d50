// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "codec/dither.h"
#include "codec/into.h"
#include "codec/rows.h"

namespace braid {

// Codes of −1, 0 and +1: four bytes for each row of 16 elements. Bit i of the first two is 1 where
// element i is +1, bit i of the others where it is −1; both: it is not finite, and decodes to NaN.
// Bits past the last element are 0, and nobody looks at them.
constexpr uint64_t ternary_bytes(uint64_t count) { return divide_up(count, kRowElements) * 4; }

// +1 from `threshold` on, −1 from −threshold on.
void encode_by_threshold(const float* in, uint64_t count, float threshold, uint8_t* out);
// The same of gradient + memory, which becomes the new memory without what is sent: one pass.
void encode_by_threshold(const float* gradient, uint64_t count, float threshold, float* memory,
                         uint8_t* out);
// The sign, with the probability |element| / scale, or 0. All elements are finite, none exceeds
// the scale.
void encode_by_chance(const float* in, uint64_t count, float scale, const Dither& dither,
                      uint8_t* out);
void decode_ternary(const uint8_t* in, uint64_t count, float scale, Into into, float* out);

// The largest magnitude of all; NaN where an element is NaN or infinite.
float largest_finite_magnitude(const float* in, uint64_t count);

}  // namespace braid
