// SPDX-License-Identifier: Apache-2.0
#include "planner/size_bands.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace braid {
namespace {

constexpr size_t kPlacesMax = 128;     // where the dynamic programme may cut
constexpr double kBandPenalty = 0.29;  // in units of log(squared residual): 1 − e^−0.29 = 1/4
constexpr double kIrrelevant = 0.02;   // relative residuals that change no plan
constexpr double kParametersPerBand = 4;  // a, b, the place of the cut, the noise

// Squared relative residuals of the best line through points [begin, end) whose startup is not
// negative, in constant time.
class SegmentCost {
 public:
  explicit SegmentCost(std::vector<CostPoint> smooth)
      : points_(std::move(smooth)), sums_(points_.size() + 1) {
    for (size_t i = 0; i < points_.size(); ++i) {
      const double x = points_[i].bytes;
      const double y = points_[i].seconds;
      const double weight = 1 / (y * y);
      Sums& sum = sums_[i + 1];
      sum = sums_[i];
      sum.w += weight;
      sum.wx += weight * x;
      sum.wy += weight * y;
      sum.wxx += weight * x * x;
      sum.wxy += weight * x * y;
      sum.wyy += 1;
    }
  }

  double operator()(size_t begin, size_t end) const {
    if (end < begin + kBandPointsMin ||
        points_[end - 1].bytes < kBandSizeRatioMin * points_[begin].bytes) {
      return std::numeric_limits<double>::infinity();
    }
    const Sums& low = sums_[begin];
    const Sums& high = sums_[end];
    const double w = high.w - low.w;
    const double wx = high.wx - low.wx;
    const double wy = high.wy - low.wy;
    const double wxx = high.wxx - low.wxx;
    const double wxy = high.wxy - low.wxy;
    const double wyy = high.wyy - low.wyy;
    const double xx = wxx - wx * wx / w;
    const double xy = wxy - wx * wy / w;
    const double yy = wyy - wy * wy / w;
    if (xx <= 0) return std::max(0.0, yy);
    const bool begins_below_zero = wy < xy / xx * wx;
    return std::max(0.0, begins_below_zero ? wyy - wxy * wxy / wxx : yy - xy * xy / xx);
  }

 private:
  struct Sums {
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0, wyy = 0;
  };
  std::vector<CostPoint> points_;
  std::vector<Sums> sums_;
};

// 0, …, points: where bands may begin and end.
std::vector<size_t> cut_places(size_t points) {
  const size_t intervals = std::min(points, kPlacesMax);
  std::vector<size_t> places;
  for (size_t i = 0; i <= intervals; ++i) places.push_back(i * points / intervals);
  return places;
}

// best[k][j]: the first places[j] points in k + 1 bands; from[k][j]: where the last one begins.
struct Programme {
  std::vector<std::vector<double>> best;
  std::vector<std::vector<size_t>> from;
};

Programme run_programme(const SegmentCost& cost, const std::vector<size_t>& places,
                        size_t bands_max) {
  const size_t n = places.size();
  Programme programme;
  for (size_t k = 0; k < bands_max; ++k) {
    std::vector<double> best(n, std::numeric_limits<double>::infinity());
    std::vector<size_t> from(n, 0);
    for (size_t j = 1; j < n; ++j) {
      if (k == 0) best[j] = cost(0, places[j]);
      for (size_t i = 1; k > 0 && i < j; ++i) {
        const double before = programme.best[k - 1][i];
        if (before >= best[j]) continue;
        const double sum = before + cost(places[i], places[j]);
        if (sum < best[j]) {
          best[j] = sum;
          from[j] = i;
        }
      }
    }
    programme.best.push_back(std::move(best));
    programme.from.push_back(std::move(from));
  }
  return programme;
}

size_t choose_bands(const Programme& programme, double points) {
  const double penalty = std::max(kBandPenalty * points, kParametersPerBand * std::log(points));
  size_t chosen = 1;
  double lowest = std::numeric_limits<double>::infinity();
  for (size_t k = 0; k < programme.best.size(); ++k) {
    const double squares = programme.best[k].back() / points + kIrrelevant * kIrrelevant;
    const double score = points * std::log(squares) + penalty * static_cast<double>(k);
    if (score < lowest) {
      lowest = score;
      chosen = k + 1;
    }
  }
  return chosen;
}

// The best place for each start between its neighbours, at most `reach` points away.
void refine(const SegmentCost& cost, size_t reach, size_t points, std::vector<size_t>& starts) {
  for (size_t s = 0; s < starts.size(); ++s) {
    const size_t begin = s == 0 ? 0 : starts[s - 1];
    const size_t end = s + 1 == starts.size() ? points : starts[s + 1];
    const size_t first = std::max(begin + 1, starts[s] - std::min(starts[s], reach));
    const size_t last = std::min(end - 1, starts[s] + reach);
    double lowest = cost(begin, starts[s]) + cost(starts[s], end);
    for (size_t place = first; place <= last; ++place) {
      const double sum = cost(begin, place) + cost(place, end);
      if (sum < lowest) {
        lowest = sum;
        starts[s] = place;
      }
    }
  }
}

}  // namespace

std::vector<size_t> find_band_starts(std::span<const CostPoint> points, size_t bands_max) {
  if (points.size() < 2 * kBandPointsMin) return {};
  const SegmentCost cost(running_median(points));
  const std::vector<size_t> places = cut_places(points.size());
  const Programme programme = run_programme(cost, places, bands_max);
  std::vector<size_t> starts;
  size_t j = places.size() - 1;
  for (size_t k = choose_bands(programme, static_cast<double>(points.size())) - 1; k > 0; --k) {
    j = programme.from[k][j];
    starts.push_back(places[j]);
  }
  std::reverse(starts.begin(), starts.end());
  refine(cost, points.size() / kPlacesMax + 1, points.size(), starts);
  return starts;
}

}  // namespace braid
