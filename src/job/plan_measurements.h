// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "plan/fit_cost.h"

namespace braid {

// How much longer all-reduces took than `cost` says (the median); 0 without any.
double slowness(std::span<const CostMeasurement> measurements, const CostModel& cost);

// What the all-reduces of a job took, by size: the latest of each size are kept, so that sizes
// which the plan of the day does not have are not forgotten. Control loop only.
class PlanMeasurements {
 public:
  static constexpr size_t kKeptPerSize = 64;
  static constexpr size_t kSizesMax = 1024;

  void add(std::span<const CostMeasurement> measurements);
  // The network has become another: `latest` were measured on it, and the transfers of the others
  // are stretched by as much as these are slower than `cost` says. What startups have become only
  // small sizes could say.
  void rescale(std::span<const CostMeasurement> latest, const CostModel& cost);
  // Of each size the quickest, `share` of all (at least one). Every node measures an all-reduce
  // from the moment when its own neighbour is ready, and waits for the node that is ready last;
  // only what that one measured is the all-reduce and nothing else.
  std::vector<CostMeasurement> quickest(double share) const;

 private:
  std::map<uint64_t, std::deque<double>> seconds_;  // by size
};

}  // namespace braid
