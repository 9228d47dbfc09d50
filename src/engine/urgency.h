// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace braid {

// Which of a job's operations goes first where several could: the one of larger urgency, and of
// equals the one that came first. It follows from the registration and the step alone, so it is the
// same on all nodes.

// The urgency of operations that are not planned. They keep their order of arrival, because their
// trainer may wait for them at once. It waits for planned ones only when it has submitted all.
inline constexpr uint64_t kMostUrgent = UINT64_MAX;

// The urgency of a planned tensor: an earlier step goes first, and in a step what comes later in
// the order of backward, for that is what the next forward pass begins with.
constexpr uint64_t urgency_of(uint64_t step, uint32_t place_in_backward) {
  constexpr uint64_t kPlaceBits = 20;  // TensorTable::kTensorsMax
  constexpr uint64_t kStepMax = (uint64_t{1} << 43) - 1;
  constexpr uint64_t kPlaceMax = (uint64_t{1} << kPlaceBits) - 1;
  return (kStepMax - std::min(step, kStepMax)) << kPlaceBits |
         std::min<uint64_t>(place_in_backward, kPlaceMax);
}

}  // namespace braid
