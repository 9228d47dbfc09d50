// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "codec/codec_spec.h"
#include "codec/dither.h"
#include "codec/into.h"

namespace braid {

enum class BlockCode : uint8_t { Int8, Int4, Fp8E4M3, Fp8E5M2 };
// What the largest code of a block stands for: its largest magnitude, or its Euclidean norm.
enum class BlockScale : uint8_t { Largest, Norm };

// Elements in blocks of one scale: the scale (float32), then one code for each element, value =
// code · scale. int8: a byte. int4: of each 16 elements 8 bytes, element i in the lower and element
// i + 8 in the upper half of byte i, as −7 to 7 in two's complement. fp8: a byte (OCP, "8-bit
// Floating Point Specification", 2023).
struct BlockFormat {
  BlockCode code = BlockCode::Int8;
  BlockScale scale = BlockScale::Largest;
  Rounding rounding = Rounding::Nearest;
  uint32_t levels = 127;  // int8, int4: the largest code
  uint32_t block = 256;   // elements, a multiple of 16
  float step = 0;         // int8, int4: what code 1 stands for in all blocks; 0: as `scale` says
};

// Blocks with nothing above this are sent as zeros: 1/scale would leave float32's range.
inline constexpr float kBlockSmallest = 0x1p-100f;

// The code bytes of `count` elements of one block.
uint64_t block_code_bytes(BlockCode code, uint64_t count);

void encode_blocks(const BlockFormat& format, const Dither& dither, const float* in, uint64_t count,
                   uint8_t* out);
// Any bytes are the codes of something: codes that encode_blocks() does not make are NaN (fp8) or
// taken as they are (int8, int4).
void decode_blocks(const BlockFormat& format, const uint8_t* in, uint64_t count, Into into,
                   float* out);

}  // namespace braid
