// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "codec/into.h"

namespace braid {

// memory[i] = gradient[i] + memory[i]
void add_floats(const float* gradient, uint64_t count, float* memory);
// float32 as it is, at any alignment.
void decode_floats(const uint8_t* in, uint64_t count, Into into, float* out);

}  // namespace braid
