// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/fitted_cost.h"
#include "planner/planner.h"
#include "planner/simulator.h"

namespace braid {

// Says nothing about being linear: planners take their path for any cost.
class OpaqueCost final : public CostModel {
 public:
  explicit OpaqueCost(LinearCost cost) : cost_(cost) {}
  Phases phases(uint64_t bytes) const override { return LinearCostModel(cost_).phases(bytes); }

 private:
  LinearCost cost_;
};

// Another cost that says nothing of its lines. That one outlives it.
class UnknownCost final : public CostModel {
 public:
  explicit UnknownCost(const CostModel& cost) : cost_(cost) {}
  Phases phases(uint64_t bytes) const override { return cost_.phases(bytes); }
  double slowdown(uint32_t transfers) const override { return cost_.slowdown(transfers); }

 private:
  const CostModel& cost_;
};

// Any time for each number of bytes; the last one's for more.
class TableCost final : public CostModel {
 public:
  explicit TableCost(std::vector<Phases> table) : table_(std::move(table)) {}
  Phases phases(uint64_t bytes) const override {
    return table_[std::min<uint64_t>(bytes, table_.size() - 1)];
  }

 private:
  std::vector<Phases> table_;
};

// Random workloads and costs, the same ones in every run.
class Instances {
 public:
  explicit Instances(uint64_t seed) : random_(seed) {}

  uint64_t below(uint64_t limit) { return random_() % limit; }
  double real(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }

  // Small whole numbers, zeros among them: sums are exact, ties are many.
  Workload whole_workload(size_t tensors_max) {
    Workload workload;
    workload.forward_seconds = static_cast<double>(below(5));
    const uint64_t time_limit = 1 + below(7);
    const uint64_t bytes_limit = 1 + below(7);
    double ready = 0;
    for (size_t count = 1 + below(tensors_max); count > 0; --count) {
      ready += static_cast<double>(below(time_limit));
      workload.tensors.push_back({ready, below(bytes_limit)});
    }
    return workload;
  }
  LinearCost whole_cost() { return {static_cast<double>(below(6)), static_cast<double>(below(4))}; }

  // Milliseconds and megabytes, from idle networks to overloaded ones.
  Workload real_workload(size_t tensors_max) {
    Workload workload;
    workload.forward_seconds = real(0, 0.1);
    const double bytes_max = real(1e3, 1e7);
    double ready = 0;
    for (size_t count = 1 + below(tensors_max); count > 0; --count) {
      ready += real(0, 2e-3);
      workload.tensors.push_back({ready, 1 + static_cast<uint64_t>(real(0, bytes_max))});
    }
    return workload;
  }
  LinearCost real_cost() { return {real(0, 2e-3), real(0, 1e-9)}; }

  TableCost table_cost(size_t bytes_max) {
    std::vector<CostModel::Phases> table;
    CostModel::Phases phases{static_cast<double>(below(4)), 0};
    for (size_t bytes = 0; bytes <= bytes_max; ++bytes) {
      // Sometimes flat, sometimes a jump.
      if (below(3) == 0) phases.transfer_seconds += static_cast<double>(below(5));
      if (below(8) == 0) phases.startup_seconds += static_cast<double>(below(3));
      table.push_back(phases);
    }
    return TableCost(std::move(table));
  }

  // Bands that rise, fall and jump where they meet, of few sizes each; whole numbers.
  FittedCost whole_bands(size_t bands_max) {
    std::vector<FittedCost::Band> bands;
    uint64_t bytes = 0;
    for (size_t count = 1 + below(bands_max); count > 0; --count) {
      const uint64_t bytes_min = bytes + 1 + below(3);
      bytes = bytes_min + below(8);
      const double startup =
          bands.empty() ? static_cast<double>(below(6)) : static_cast<double>(below(50)) - 20;
      bands.push_back({bytes_min, bytes, {startup, static_cast<double>(below(5))}, 2, 0});
    }
    return FittedCost::create(std::move(bands), {}).value();
  }
  // The same for the sizes of real_workload.
  FittedCost real_bands(size_t bands_max) {
    std::vector<FittedCost::Band> bands;
    double bytes = real(1e3, 1e6);
    for (size_t count = 1 + below(bands_max); count > 0; --count) {
      LinearCost cost = real_cost();
      if (!bands.empty()) {
        const double reached = bands.back().cost.seconds(bytes);
        cost.startup_seconds = reached * real(0.5, 1.5) - cost.seconds_per_byte * bytes;
      }
      const auto bytes_min = static_cast<uint64_t>(bytes) + 1;
      bytes *= real(1.1, 6);
      bands.push_back({bytes_min, static_cast<uint64_t>(bytes), cost, 2, 0});
    }
    return FittedCost::create(std::move(bands), {{2, real(1, 2)}}).value();
  }

  // A plan that nobody would make.
  Plan plan(const Workload& workload, uint32_t pieces_max) {
    Plan plan;
    const auto tensors = static_cast<uint32_t>(workload.tensors.size());
    for (uint32_t begin = 0; begin < tensors;) {
      const auto end = static_cast<uint32_t>(begin + 1 + below(std::min(tensors - begin, 5u)));
      plan.groups.push_back({begin, end, static_cast<uint32_t>(1 + below(pieces_max))});
      begin = end;
    }
    return plan;
  }

 private:
  std::mt19937_64 random_;
};

inline Plan plan_by(std::string_view planner, const Workload& workload, const CostModel& cost,
                    const PlannerOptions& options = {}) {
  return find_planner(planner).value()->plan(workload, cost, options);
}

inline double iteration_seconds(const Workload& workload, const Plan& plan, const CostModel& cost,
                                uint32_t streams = 1) {
  SimulatorOptions options;
  options.streams = streams;
  return simulate(workload, plan, cost, options).iteration_seconds;
}

// The groups' ends: {2, 3} is {[0, 2), [2, 3)}.
inline std::vector<uint32_t> ends_of(const Plan& plan) {
  std::vector<uint32_t> ends;
  for (const Plan::Group& group : plan.groups) ends.push_back(group.end);
  return ends;
}

}  // namespace braid
