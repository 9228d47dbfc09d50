// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "proto/types.h"

namespace braid {

// Streamed: past the caches, where the result is too large to be still there when it is read; then
// nothing of it need be read before it is written. Takes effect where `out` is aligned to a vector.
enum class Store : uint8_t { Cached, Streamed };

// out[i] = operands[0][i] op operands[1][i] op …, folded from left to right: the order of the span
// is the order of the additions. Uses the widest vectors that the processor has; all of them give
// the same bits, except that which NaN a NaN is may differ.
//
// float16 and bfloat16 are folded in float32 and rounded once, to nearest even, at the end.
// Integers wrap around. Min and max propagate NaN: the result is NaN if any operand is (of two
// zeros or equal values the earlier one stays). Average is folded like sum: see divide_all.
//
// `out` may be one of the operands, but must not overlap one in any other way. No operand needs any
// alignment, and nothing outside the `count` elements is touched. One operand is a copy.
void reduce_all(DataType dtype, Reduction reduction, std::span<const uint8_t* const> operands,
                uint64_t count, uint8_t* out, Store store = Store::Cached);

// Divides in place, the last step of an average: floats by true division (16-bit ones in float32),
// integers towards zero.
void divide_all(DataType dtype, uint8_t* data, uint64_t count, uint32_t divisor);

}  // namespace braid
