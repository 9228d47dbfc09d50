// SPDX-License-Identifier: Apache-2.0
#include "planner/robust_line.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.h"

namespace braid {
namespace {

constexpr size_t kTheilSenPointsMax = 64;      // its work grows with their square
constexpr size_t kNoisePointsMin = 16;         // fewer say nothing about noise
constexpr double kNoiseExponentUnknown = 0.5;  // like a sum of independent delays
constexpr size_t kSmoothingHalfWidth = 2;
constexpr double kGrossResidual = 1;  // relative; how much farther off an outlier is says nothing
constexpr int kTrimRoundsMax = 10;
constexpr double kTrimDeviations = 3;
constexpr double kDeviationPerMedian = 1.4826;  // of a normal distribution

// At most kTheilSenPointsMax points: medians of neighbours.
std::vector<CostPoint> thinned(std::span<const CostPoint> points) {
  if (points.size() <= kTheilSenPointsMax) return {points.begin(), points.end()};
  std::vector<CostPoint> out;
  for (size_t i = 0; i < kTheilSenPointsMax; ++i) {
    const size_t begin = i * points.size() / kTheilSenPointsMax;
    const size_t end = (i + 1) * points.size() / kTheilSenPointsMax;
    std::vector<double> bytes;
    std::vector<double> seconds;
    for (const CostPoint& point : points.subspan(begin, end - begin)) {
      bytes.push_back(point.bytes);
      seconds.push_back(point.seconds);
    }
    out.push_back({median_of(std::move(bytes)), median_of(std::move(seconds))});
  }
  return out;
}

double median_intercept(std::span<const CostPoint> points, double slope) {
  std::vector<double> intercepts;
  for (const CostPoint& point : points) intercepts.push_back(point.seconds - slope * point.bytes);
  return median_of(std::move(intercepts));
}

LinearCost theil_sen(std::span<const CostPoint> points) {
  std::vector<double> slopes;
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t j = i + 1; j < points.size(); ++j) {
      slopes.push_back((points[j].seconds - points[i].seconds) /
                       (points[j].bytes - points[i].bytes));
    }
  }
  const double slope = slopes.empty() ? 0 : std::max(0.0, median_of(std::move(slopes)));
  return {median_intercept(points, slope), slope};
}

std::vector<double> distances(std::span<const CostPoint> points, const LinearCost& line) {
  std::vector<double> out;
  for (const CostPoint& point : points) {
    out.push_back(std::abs(point.seconds - line.seconds(point.bytes)));
  }
  return out;
}

// p of: noise ∝ secondsᵖ, from the lower and the upper half of the points.
double noise_exponent(std::span<const CostPoint> points, const std::vector<double>& distance) {
  if (points.size() < kNoisePointsMin) return kNoiseExponentUnknown;
  const size_t half = points.size() / 2;
  const auto middle = distance.begin() + static_cast<std::ptrdiff_t>(half);
  const double low = median_of({distance.begin(), middle});
  const double high = median_of({middle, distance.end()});
  const double growth = std::log(points[half + half / 2].seconds / points[half / 2].seconds);
  if (low <= 0 || high <= 0 || growth <= 0) return kNoiseExponentUnknown;
  return std::clamp(std::log(high / low) / growth, 0.0, 1.0);
}

LinearCost least_squares(std::span<const CostPoint> points, const std::vector<double>& weights) {
  double sum = 0;
  double mean_bytes = 0;
  double mean_seconds = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    sum += weights[i];
    mean_bytes += weights[i] * points[i].bytes;
    mean_seconds += weights[i] * points[i].seconds;
  }
  mean_bytes /= sum;
  mean_seconds /= sum;
  double squares = 0;
  double products = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const double offset = points[i].bytes - mean_bytes;
    squares += weights[i] * offset * offset;
    products += weights[i] * offset * (points[i].seconds - mean_seconds);
  }
  const double slope = squares > 0 ? std::max(0.0, products / squares) : 0;
  return {mean_seconds - slope * mean_bytes, slope};
}

// How badly a candidate for the first line fits: outliers count, at most with kGrossResidual.
double badness(std::span<const CostPoint> points, const LinearCost& line) {
  double sum = 0;
  for (const CostPoint& point : points) {
    sum += std::min(std::abs(point.seconds - line.seconds(point.bytes)) / point.seconds,
                    kGrossResidual);
  }
  return sum;
}

LinearCost first_line(std::span<const CostPoint> points) {
  const LinearCost crowd = theil_sen(thinned(points));
  const std::vector<CostPoint> smooth = running_median(points);
  std::vector<double> weights;
  weights.reserve(smooth.size());
  for (const CostPoint& point : smooth) weights.push_back(1 / (point.seconds * point.seconds));
  const LinearCost whole = least_squares(smooth, weights);
  return badness(points, whole) < badness(points, crowd) ? whole : crowd;
}

}  // namespace

double median_of(std::vector<double> values) {
  BRAID_ASSERT(!values.empty(), "the median of nothing");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::vector<CostPoint> running_median(std::span<const CostPoint> points) {
  std::vector<CostPoint> out(points.begin(), points.end());
  for (size_t i = 0; i < points.size(); ++i) {
    const size_t half = std::min({kSmoothingHalfWidth, i, points.size() - 1 - i});
    std::vector<double> seconds;
    for (size_t j = i - half; j <= i + half; ++j) seconds.push_back(points[j].seconds);
    out[i].seconds = median_of(std::move(seconds));
  }
  return out;
}

LinearCost fit_line(std::span<const CostPoint> points) {
  LinearCost line = first_line(points);
  if (points.size() < 3) return line;
  const double exponent = noise_exponent(points, distances(points, line));
  std::vector<double> all_weights;
  for (const CostPoint& point : points) {
    all_weights.push_back(std::pow(point.seconds, -2 * exponent));
  }
  for (int round = 0; round < kTrimRoundsMax; ++round) {
    // In units of the noise that a point of its time has.
    std::vector<double> scaled = distances(points, line);
    for (size_t i = 0; i < scaled.size(); ++i) scaled[i] *= std::sqrt(all_weights[i]);
    const double limit = kTrimDeviations * kDeviationPerMedian * median_of(scaled);
    std::vector<CostPoint> near;
    std::vector<double> weights;
    for (size_t i = 0; i < points.size(); ++i) {
      if (scaled[i] > limit) continue;
      near.push_back(points[i]);
      weights.push_back(all_weights[i]);
    }
    const LinearCost next = least_squares(near, weights);
    if (next == line) break;
    line = next;
  }
  return line;
}

double residual_of(std::span<const CostPoint> points, const LinearCost& line) {
  std::vector<double> residuals = distances(points, line);
  for (size_t i = 0; i < residuals.size(); ++i) {
    const double fitted = line.seconds(points[i].bytes);
    residuals[i] = fitted > 0 ? residuals[i] / fitted : 1;
  }
  return median_of(std::move(residuals));
}

}  // namespace braid
