// SPDX-License-Identifier: Apache-2.0
#include "job/plan_measurements.h"

#include <algorithm>
#include <cmath>

namespace braid {

double slowness(std::span<const CostMeasurement> measurements, const CostModel& cost) {
  std::vector<double> ratios;
  for (const CostMeasurement& one : measurements) {
    const double expected = cost.seconds(one.bytes);
    if (expected > 0) ratios.push_back(one.seconds / expected);
  }
  if (ratios.empty()) return 0;
  const auto middle = ratios.begin() + static_cast<int64_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

void PlanMeasurements::add(std::span<const CostMeasurement> measurements) {
  for (const CostMeasurement& one : measurements) {
    if (seconds_.size() >= kSizesMax && !seconds_.contains(one.bytes)) continue;
    std::deque<double>& seconds = seconds_[one.bytes];
    seconds.push_back(one.seconds);
    if (seconds.size() > kKeptPerSize) seconds.pop_front();
  }
}

void PlanMeasurements::rescale(std::span<const CostMeasurement> latest, const CostModel& cost) {
  const double factor = slowness(latest, cost);
  if (factor == 0) return;
  for (auto& [bytes, seconds] : seconds_) {
    const double longer = (factor - 1) * cost.phases(bytes).transfer_seconds;
    // It may have been quicker than the cost says.
    for (double& one : seconds) one = std::max(one + longer, one * std::min(factor, 1.0));
  }
  // These were measured as they are.
  for (const CostMeasurement& one : latest) seconds_.erase(one.bytes);
  add(latest);
}

std::vector<CostMeasurement> PlanMeasurements::quickest(double share) const {
  std::vector<CostMeasurement> measurements;
  for (const auto& [bytes, seconds] : seconds_) {
    std::vector<double> sorted(seconds.begin(), seconds.end());
    std::sort(sorted.begin(), sorted.end());
    const auto kept = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
    sorted.resize(std::clamp<size_t>(kept, 1, sorted.size()));
    for (const double one : sorted) measurements.push_back({bytes, one, 1});
  }
  return measurements;
}

}  // namespace braid
