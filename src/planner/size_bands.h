// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "planner/robust_line.h"

namespace braid {

// Where the line through the points changes or jumps: the first point of each band but the first.
// Points have increasing sizes and positive times. No band has fewer than kBandPointsMin points,
// nor one that spans less than kBandSizeRatioMin from its smallest to its largest size: that would
// say nothing about its slope.
//
// Least squares of relative residuals over all ways to cut into 1, 2, … bands (dynamic
// programming), each a line whose startup is 0 or more; an additional band must explain about a
// quarter of what is left, so that noise is not cut, but each real step is. Outliers are kept out
// by a running median, which leaves steps where they are. Cuts are sought among a bounded number of
// places, then moved to the best one nearby: the time taken is linear in the number of points.
inline constexpr size_t kBandPointsMin = 4;
inline constexpr double kBandSizeRatioMin = 1.25;
std::vector<size_t> find_band_starts(std::span<const CostPoint> points, size_t bands_max);

}  // namespace braid
