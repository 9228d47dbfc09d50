// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "codec/rows.h"

namespace braid {

// An element and its magnitude, as bits: NaN is larger than infinity, which is larger than all
// numbers.
struct PickedElement {
  uint32_t index;
  uint32_t magnitude;
};

constexpr uint32_t kMagnitudeMask = 0x7fffffffu;

// Appends the elements of at least this magnitude to the `found` ones in `picked`, in their order;
// `first_index` is the first one's. Returns how many there are then: more than `most`, and it has
// stopped. `picked` has room for `most` and kPickedSpare.
inline constexpr uint64_t kPickedSpare = kRowElements;
uint64_t pick_from(const float* values, uint64_t count, uint32_t first_index, uint32_t magnitude,
                   uint64_t found, uint64_t most, PickedElement* picked);

// velocity = momentum · velocity + gradient; memory += velocity
void add_momentum(const float* gradient, uint64_t count, float momentum, float* velocity,
                  float* memory);

}  // namespace braid
