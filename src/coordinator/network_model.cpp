// SPDX-License-Identifier: Apache-2.0
#include "coordinator/network_model.h"

#include <algorithm>
#include <cmath>

namespace braid {
namespace {

// To two significant digits.
uint64_t rounded(uint64_t bytes) {
  constexpr uint64_t kBytesMax = 1'000'000'000'000'000'000;  // a peer can say anything
  bytes = std::min(bytes, kBytesMax);
  uint64_t unit = 1;
  while (bytes / unit >= 100) unit *= 10;
  return (bytes + unit / 2) / unit * unit;
}

}  // namespace

bool differ(double a, double b, double share) {
  return a > 0 && b > 0 && std::max(a, b) > std::min(a, b) * (1 + share);
}

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

std::vector<CostMeasurement> MeasurementJoin::add(
    std::span<const PlanReport::MeasuredOperation> operations) {
  std::vector<CostMeasurement> complete;
  for (const PlanReport::MeasuredOperation& one : operations) {
    if (one.bytes == 0 || one.nanoseconds == 0) continue;  // a peer can say anything
    Open& open = open_[one.id];
    if (open.nodes == 0 || one.nanoseconds < open.quickest.nanoseconds) open.quickest = one;
    if (++open.nodes < nodes_) continue;
    complete.push_back(
        {rounded(open.quickest.bytes), static_cast<double>(open.quickest.nanoseconds) / 1e9, 1});
    open_.erase(one.id);
  }
  // So many are open only if a node has not measured some of them, and never will.
  if (open_.size() > kOpenMax) open_.clear();
  return complete;
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

std::vector<CostMeasurement> PlanMeasurements::all() const {
  std::vector<CostMeasurement> measurements;
  for (const auto& [bytes, seconds] : seconds_) {
    for (const double one : seconds) measurements.push_back({bytes, one, 1});
  }
  return measurements;
}

std::vector<CostMeasurement> NetworkModel::add(
    std::span<const PlanReport::MeasuredOperation> operations) {
  std::vector<CostMeasurement> complete = join_.add(operations);
  measurements_.add(complete);
  return complete;
}

void NetworkModel::take_cost(const FittedCost& cost) {
  cost_ = cost;
  if (!reference_) reference_ = cost;
}

double NetworkModel::slowness(std::span<const CostMeasurement> measured) const {
  return reference_ ? braid::slowness(measured, *reference_) : 0;
}

void NetworkModel::change(std::span<const CostMeasurement> latest) {
  ++era_;
  if (cost_) measurements_.rescale(latest, *cost_);
}

void NetworkModel::forget() {
  ++era_;
  join_.clear();
  measurements_.clear();
  cost_.reset();
  reference_.reset();
}

}  // namespace braid
