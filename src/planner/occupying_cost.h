// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planner/fitted_cost.h"
#include "planner/planner.h"

// How daemons plan: what their planners are given, and the advice for a job that runs.
namespace braid {

// A fitted cost, of which the beginning of every startup is work of the nodes' own processors: that
// of units side by side does not overlap, as their waiting for the network does. The cost outlives
// it. Immutable; any thread.
class OccupyingCost final : public CostModel {
 public:
  static constexpr double kOccupiedSeconds = 2e-4;  // at most; measured on two slow cores per node

  explicit OccupyingCost(const FittedCost& cost) : cost_(cost) {}
  Phases phases(uint64_t bytes) const override {
    const Phases fitted = cost_.phases(bytes);
    const double occupied = occupied_of(fitted.startup_seconds);
    return {fitted.startup_seconds - occupied, fitted.transfer_seconds + occupied};
  }
  double slowdown(uint32_t transfers) const override { return cost_.slowdown(transfers); }
  std::vector<Line> lines() const override {
    std::vector<Line> lines = cost_.lines();
    for (Line& line : lines) {
      const double occupied = occupied_of(line.startup_seconds);
      line.startup_seconds -= occupied;
      line.transfer_seconds += occupied;
    }
    return lines;
  }

 private:
  static double occupied_of(double startup_seconds) {
    return std::min(startup_seconds, kOccupiedSeconds);
  }
  const FittedCost& cost_;
};

inline PlannerOptions daemon_planner_options(uint32_t streams) {
  PlannerOptions options;
  options.streams = streams;
  options.fewest_groups = false;         // what was measured is never exact
  options.piece_bytes_min = UINT64_MAX;  // the engine cuts what is large by itself
  return options;
}

}  // namespace braid
