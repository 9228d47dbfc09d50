// SPDX-License-Identifier: Apache-2.0
#include "planner/fit_cost.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "planner/robust_line.h"
#include "planner/size_bands.h"

namespace braid {
namespace {

using Band = FittedCost::Band;
using Slowdown = FittedCost::Slowdown;

Status check(std::span<const CostMeasurement> measurements) {
  for (size_t i = 0; i < measurements.size(); ++i) {
    const auto [bytes, seconds, concurrent] = measurements[i];
    if (!(std::isfinite(seconds) && seconds > 0)) {
      return make_status(StatusCode::InvalidArgument,
                         "measurement {} ({} bytes): {} seconds; right is more than 0", i, bytes,
                         seconds);
    }
    if (bytes == 0) {
      return make_status(StatusCode::InvalidArgument, "measurement {}: 0 bytes; right is 1 or more",
                         i);
    }
    if (concurrent == 0 || concurrent > FittedCost::kTransfersMax) {
      return make_status(StatusCode::InvalidArgument,
                         "measurement {} ({} bytes): {} units at the same time; right are 1 to {}",
                         i, bytes, concurrent, FittedCost::kTransfersMax);
    }
  }
  return Status::ok();
}

// By number of units at the same time: the median of each size, by size.
std::map<uint32_t, std::vector<CostPoint>> points_of(std::span<const CostMeasurement> measured) {
  std::vector<CostMeasurement> sorted(measured.begin(), measured.end());
  const auto key = [](const CostMeasurement& one) { return std::pair(one.concurrent, one.bytes); };
  std::sort(sorted.begin(), sorted.end(),
            [&](const CostMeasurement& a, const CostMeasurement& b) { return key(a) < key(b); });
  std::map<uint32_t, std::vector<CostPoint>> points;
  for (size_t begin = 0; begin < sorted.size();) {
    std::vector<double> seconds;
    size_t end = begin;
    for (; end < sorted.size() && key(sorted[end]) == key(sorted[begin]); ++end) {
      seconds.push_back(sorted[end].seconds);
    }
    points[sorted[begin].concurrent].push_back(
        {static_cast<double>(sorted[begin].bytes), median_of(std::move(seconds))});
    begin = end;
  }
  return points;
}

// Nothing begins earlier than now: a band whose line would goes through the origin.
LinearCost from_origin(std::span<const CostPoint> points) {
  std::vector<double> rates;
  for (const CostPoint& point : points) rates.push_back(point.seconds / point.bytes);
  return {0, median_of(std::move(rates))};
}

Band fit_band(std::span<const CostPoint> points) {
  LinearCost line = fit_line(points);
  if (line.startup_seconds < 0) line = from_origin(points);
  return {static_cast<uint64_t>(points.front().bytes), static_cast<uint64_t>(points.back().bytes),
          line, static_cast<uint32_t>(points.size()), residual_of(points, line)};
}

std::vector<Band> fit_bands(std::span<const CostPoint> points, size_t bands_max) {
  std::vector<size_t> starts = find_band_starts(points, std::max<size_t>(bands_max, 1));
  starts.push_back(points.size());
  std::vector<Band> bands;
  size_t begin = 0;
  for (const size_t end : starts) {
    bands.push_back(fit_band(points.subspan(begin, end - begin)));
    begin = end;
  }
  return bands;
}

// The factor s that minimises Σ |measured − startup − s·transfer|: a median of the sizes' own
// factors, weighted by their transfers, since the noise of small messages says nothing about it.
std::optional<double> slowdown_of(const FittedCost& model, std::span<const CostPoint> points) {
  std::vector<std::pair<double, double>> factors;  // and their weights
  double weights = 0;
  for (const CostPoint& point : points) {
    const auto bytes = static_cast<uint64_t>(point.bytes);
    const CostModel::Phases alone = model.phases(bytes);
    if (!model.covers(bytes) || alone.transfer_seconds <= 0) continue;
    factors.emplace_back((point.seconds - alone.startup_seconds) / alone.transfer_seconds,
                         alone.transfer_seconds);
    weights += alone.transfer_seconds;
  }
  std::sort(factors.begin(), factors.end());
  double below = 0;
  for (const auto& [factor, weight] : factors) {
    below += weight;
    if (below >= weights / 2) return factor;
  }
  return std::nullopt;
}

}  // namespace

Result<FittedCost> fit_cost(std::span<const CostMeasurement> measurements,
                            const FitOptions& options) {
  BRAID_RETURN_IF_ERROR(check(measurements));
  auto points = points_of(measurements);
  const std::vector<CostPoint> alone = std::move(points[1]);
  points.erase(1);
  if (alone.size() < 2) {
    return make_status(StatusCode::InvalidArgument,
                       "{} distinct sizes were measured with one unit in flight; right are 2 or "
                       "more, over the whole range that is planned with",
                       alone.size());
  }
  auto bands = fit_bands(alone, std::min(options.bands_max, FittedCost::kBandsMax));
  const auto model = FittedCost::create(bands, {});
  if (!model) return model.status();
  std::vector<Slowdown> slowdowns;
  double floor = 1;
  for (const auto& [transfers, measured] : points) {
    const auto factor = slowdown_of(*model, measured);
    if (!factor) continue;
    floor = std::clamp(*factor, floor, static_cast<double>(transfers));
    slowdowns.push_back({transfers, floor});
  }
  return FittedCost::create(std::move(bands), std::move(slowdowns));
}

}  // namespace braid
