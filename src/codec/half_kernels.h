// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "codec/dither.h"
#include "codec/into.h"

namespace braid {

enum class HalfKind : uint8_t { BFloat16, Float16 };

// Two bytes for each element. To nearest even; NaN becomes a quiet NaN.
void encode_halves(HalfKind kind, const float* in, uint64_t count, uint8_t* out);
// bfloat16 up or down, the nearer the more likely; NaN and infinity stay.
void encode_bfloat16_dithered(const Dither& dither, const float* in, uint64_t count, uint8_t* out);
void decode_halves(HalfKind kind, const uint8_t* in, uint64_t count, Into into, float* out);

}  // namespace braid
