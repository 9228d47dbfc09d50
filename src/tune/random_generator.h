// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>

#include "base/assert.h"

namespace braid {

// Reproducible: the same seed gives the same numbers with every compiler, which the distributions
// of the standard library do not promise. For searches, never for secrets (base/random.h).
class RandomGenerator {
 public:
  explicit RandomGenerator(uint64_t seed) : engine_(seed) {}

  uint64_t below(uint64_t limit) {
    BRAID_ASSERT(limit > 0, "nothing is below 0");
    return engine_() % limit;  // limits are tiny next to 2⁶⁴: no bias to speak of
  }
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }  // [0, 1)

 private:
  std::mt19937_64 engine_;
};

}  // namespace braid
