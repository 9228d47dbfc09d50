// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "planner/cost_model.h"

namespace braid {

// What one size takes: the median of its measurements.
struct CostPoint {
  double bytes = 0;
  double seconds = 0;
};

double median_of(std::vector<double> values);  // of one or more

// Each time replaced by the median of the five around it: single outliers vanish, steps stay where
// they are.
std::vector<CostPoint> running_median(std::span<const CostPoint> points);

// The line a + b·M through points of increasing size, of which up to about a quarter may be
// anything. A first line, then least squares over the points that lie near it. The first line is
// the better of two: Theil–Sen, which bears many outliers but believes a crowd of small sizes more
// than a few large ones, and least squares of the running median, which is the other way round.
//
// Least squares need to know how the noise grows with the time measured. It is estimated from the
// points: from not at all (ordinary least squares) to in proportion. Without this, the noise of
// large messages would drown the startup of small ones. The slope is never negative.
LinearCost fit_line(std::span<const CostPoint> points);

// Median of |measured − fitted| / fitted.
double residual_of(std::span<const CostPoint> points, const LinearCost& line);

}  // namespace braid
