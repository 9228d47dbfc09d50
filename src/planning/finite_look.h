// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "proto/types.h"

namespace braid {

// Whether some of a gradient's elements are all finite: the first, middle and last kLookedAtBytes
// of it. A loss that is NaN or infinite makes whole gradients so, and to look at all elements would
// cost as much as to add them. Integers always are. `input` is aligned for its elements.
inline constexpr uint64_t kLookedAtBytes = 512;
bool looks_finite(const uint8_t* input, uint64_t bytes, DataType dtype);

// Which gradients of one rank were not finite.
struct NotFiniteSteps {
  uint64_t steps = 0;  // that had such
  uint64_t first_step = 0;
  uint64_t last_step = 0;
  std::string first_tensor;

  void add(uint64_t step, const std::string& tensor) {
    if (steps != 0 && step == last_step) return;
    if (steps++ == 0) {
      first_step = step;
      first_tensor = tensor;
    }
    last_step = step;
  }
};

}  // namespace braid
