// SPDX-License-Identifier: Apache-2.0
#include "planning/plan_decision.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "plan/simulator.h"

namespace braid {
namespace {

double to_seconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

// The fitted cost, of which the beginning of every startup is work of the nodes' own processors:
// that of units side by side does not overlap, as their waiting for the network does.
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

struct MergedReport {
  const PlanReport* first = nullptr;
  std::vector<uint64_t> ready_ns;
  uint64_t forward_ns = 0;
  std::vector<uint32_t> order;  // tensors by readiness
};

Result<MergedReport> merge(std::span<const PlanReport* const> reports) {
  MergedReport merged;
  merged.first = reports.front();
  merged.ready_ns = reports.front()->ready_ns;
  for (const PlanReport* report : reports) {
    if (report->tensors != merged.first->tensors || report->counts != merged.first->counts ||
        report->dtypes != merged.first->dtypes)
      return Status(StatusCode::Protocol, "nodes report different tensors for one set");
    for (size_t i = 0; i < merged.ready_ns.size(); ++i)
      merged.ready_ns[i] = std::max(merged.ready_ns[i], report->ready_ns[i]);
    merged.forward_ns = std::max(merged.forward_ns, report->forward_ns);
  }
  merged.order.resize(merged.ready_ns.size());
  std::iota(merged.order.begin(), merged.order.end(), 0);
  std::stable_sort(merged.order.begin(), merged.order.end(),
                   [&](uint32_t a, uint32_t b) { return merged.ready_ns[a] < merged.ready_ns[b]; });
  return merged;
}

Workload workload_of(const MergedReport& merged) {
  Workload workload;
  workload.forward_seconds = to_seconds(merged.forward_ns);
  for (const uint32_t i : merged.order) {
    workload.tensors.push_back({to_seconds(merged.ready_ns[i]),
                                merged.first->counts[i] * element_bytes(merged.first->dtypes[i])});
  }
  return workload;
}

// A reduction has one dtype: groups are parted where it changes.
Plan one_dtype_each(const Plan& plan, const MergedReport& merged) {
  Plan parted;
  for (const Plan::Group& group : plan.groups) {
    uint32_t begin = group.begin;
    for (uint32_t i = group.begin + 1; i <= group.end; ++i) {
      if (i < group.end &&
          merged.first->dtypes[merged.order[i]] == merged.first->dtypes[merged.order[begin]])
        continue;
      parted.groups.push_back({begin, i, 1});
      begin = i;
    }
  }
  return parted;
}

// The groups that hold now, as a plan over the order of readiness: a group's tensors may have
// changed places since it was made, so a border stands wherever the group changes.
Plan plan_of(std::span<const std::vector<uint64_t>> groups, const MergedReport& merged) {
  std::unordered_map<uint64_t, size_t> group_of;
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const uint64_t hash : groups[i]) group_of[hash] = i;
  }
  Plan plan;
  size_t last = SIZE_MAX;
  for (uint32_t i = 0; i < merged.order.size(); ++i) {
    const auto found = group_of.find(merged.first->tensors[merged.order[i]]);
    const size_t group = found == group_of.end() ? SIZE_MAX - 1 - i : found->second;
    if (group != last) plan.groups.push_back({i, i, 1});
    plan.groups.back().end = i + 1;
    last = group;
  }
  return plan;
}

}  // namespace

Result<PlanDecision> decide_plan(std::span<const PlanReport* const> reports,
                                 std::span<const CostMeasurement> measurements,
                                 std::span<const std::vector<uint64_t>> current,
                                 const PlanningOptions& options) {
  auto merged = merge(reports);
  if (!merged) return merged.status();
  auto cost = fit_cost(measurements);
  if (!cost) return cost.status();
  const Workload workload = workload_of(*merged);
  const OccupyingCost occupying(*cost);

  PlannerOptions planner_options;
  planner_options.streams = options.streams;
  planner_options.fewest_groups = false;         // what was measured is never exact
  planner_options.piece_bytes_min = UINT64_MAX;  // the engine cuts what is large by itself
  SimulatorOptions simulator_options;
  simulator_options.streams = options.streams;
  const Plan plan =
      one_dtype_each(options.planner->plan(workload, occupying, planner_options), *merged);

  PlanDecision decision{{}, 0, 0, *cost};
  decision.predicted_seconds =
      simulate(workload, plan, occupying, simulator_options).iteration_seconds;
  decision.current_seconds =
      simulate(workload, plan_of(current, *merged), occupying, simulator_options).iteration_seconds;
  for (const Plan::Group& group : plan.groups) {
    auto& hashes = decision.groups.emplace_back();
    for (uint32_t i = group.begin; i < group.end; ++i)
      hashes.push_back(merged->first->tensors[merged->order[i]]);
  }
  return decision;
}

}  // namespace braid
