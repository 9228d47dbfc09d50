// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "proto/types.h"
#include "proto/update.h"

namespace braid {

// What Load and Fetch do to some values of a slot, which follow one another. `bytes` has as many
// elements of the tensor's type, one of floats, at any alignment. High and Low are of 16-bit types:
// the upper and the lower half of each float32, and a load of one leaves the other as it is.
void load_values(DataType dtype, StateBits bits, const uint8_t* bytes, uint64_t count,
                 uint8_t* values);
// Rounded: to nearest even.
void fetch_values(DataType dtype, StateBits bits, const uint8_t* values, uint64_t count,
                  uint8_t* bytes);

}  // namespace braid
