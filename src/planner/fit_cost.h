// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "planner/fitted_cost.h"

namespace braid {

// One all-reduce.
struct CostMeasurement {
  uint64_t bytes = 0;
  double seconds = 0;
  uint32_t concurrent = 1;  // units in flight at the same time, this one included
  bool operator==(const CostMeasurement&) const = default;
};

struct FitOptions {
  size_t bands_max = 8;
};

// A model of what was measured. The median of each size's measurements counts, and single sizes
// that lie far off do not, so outliers do no harm. No startup and no time per byte is negative.
// Measurements with concurrent == 1 give the bands; the others say how much longer their transfers
// took than the bands' ones.
//
// Pure, and quick enough for a daemon's loop: about a millisecond for thousands of measurements.
// Errors name the measurement: sizes, times or numbers that are not positive, more than
// FittedCost::kTransfersMax at the same time, or fewer than two sizes without others beside them.
Result<FittedCost> fit_cost(std::span<const CostMeasurement> measurements,
                            const FitOptions& options = {});

}  // namespace braid
