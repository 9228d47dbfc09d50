// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "codec/into.h"
#include "codec/rows.h"

namespace braid {

// Signs are two bytes for each row of 16 elements, element i's in bit i: 1 is negative (its sign
// bit is set: −0 is negative). Bits past the last element are 0, and nobody looks at them.
constexpr uint64_t sign_bytes(uint64_t count) { return divide_up(count, kRowElements) * 2; }

// The magnitudes of the elements without and of those with a sign bit, added up. Not finite if one
// of them is not, or where 64 of them leave float32's range.
//
// In float32 with one accumulator for each place in a row, and from time to time into float64: the
// same order, whatever the vectors.
struct SignSums {
  double positive = 0;
  double negative = 0;
  uint64_t negatives = 0;
};

SignSums encode_signs(const float* in, uint64_t count, uint8_t* signs);
// The same signs. True: no element is NaN.
bool encode_signs_alone(const float* in, uint64_t count, uint8_t* signs);
// The sum of all magnitudes alone: half of the additions.
double encode_signs_and_sum(const float* in, uint64_t count, uint8_t* signs);
// memory = gradient + memory, and the same of that: one pass.
double add_signs_and_sum(const float* gradient, uint64_t count, float* memory, uint8_t* signs);

void decode_signs(const uint8_t* signs, uint64_t count, float positive, float negative, Into into,
                  float* out);

}  // namespace braid
