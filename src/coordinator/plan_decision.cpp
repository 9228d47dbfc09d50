// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan_decision.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_map>

#include "planner/occupying_cost.h"

namespace braid {
namespace {

double to_seconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

struct MergedReport {
  const PlanReport* first = nullptr;
  std::vector<uint64_t> ready_ns;
  uint64_t forward_ns = 0;
  std::vector<uint32_t> order;  // tensors by readiness
};

uint64_t bytes_of(const PlanReport& report, uint32_t tensor) {
  return report.counts[tensor] * element_bytes(report.dtypes[tensor]);
}

Result<MergedReport> merge(std::span<const PlanReport> reports) {
  MergedReport merged;
  merged.first = &reports.front();
  merged.ready_ns = merged.first->ready_ns;
  for (const PlanReport& report : reports) {
    if (report.tensors != merged.first->tensors || report.counts != merged.first->counts ||
        report.dtypes != merged.first->dtypes || report.codecs != merged.first->codecs)
      return Status(StatusCode::Protocol, "nodes report different tensors for one set");
    for (size_t i = 0; i < merged.ready_ns.size(); ++i)
      merged.ready_ns[i] = std::max(merged.ready_ns[i], report.ready_ns[i]);
    merged.forward_ns = std::max(merged.forward_ns, report.forward_ns);
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
    workload.tensors.push_back({to_seconds(merged.ready_ns[i]), bytes_of(*merged.first, i)});
  }
  return workload;
}

std::shared_ptr<const SetMeasured> measured_of(const MergedReport& merged,
                                               std::span<const PlanReport> reports) {
  auto measured = std::make_shared<SetMeasured>();
  for (const uint32_t i : merged.order) {
    const double ready = to_seconds(merged.ready_ns[i]);
    measured->tensors.push_back({merged.first->tensors[i], ready, bytes_of(*merged.first, i)});
    measured->last_ready_seconds = ready;
  }
  std::ranges::sort(measured->tensors, {}, &SetMeasured::Tensor::hash);
  measured->beside = merge_beside(reports);
  return measured;
}

using Kind = std::pair<DataType, uint64_t>;  // and the codec
Kind kind_of(const PlanReport& report, uint32_t tensor) {
  return {report.dtypes[tensor], report.codecs.empty() ? 0 : report.codecs[tensor]};
}

// A reduction has one dtype and one codec: groups are parted into as many as they have of both.
std::vector<std::vector<uint32_t>> one_kind_each(const Plan& plan, const MergedReport& merged) {
  const PlanReport& report = *merged.first;
  std::vector<std::vector<uint32_t>> groups;
  for (const Plan::Group& group : plan.groups) {
    const size_t first = groups.size();
    for (uint32_t i = group.begin; i < group.end; ++i) {
      const uint32_t tensor = merged.order[i];
      auto own = std::find_if(groups.begin() + static_cast<int64_t>(first), groups.end(),
                              [&](const auto& tensors) {
                                return kind_of(report, tensors.front()) == kind_of(report, tensor);
                              });
      if (own == groups.end()) own = groups.emplace(own);
      own->push_back(tensor);
    }
  }
  return groups;
}

// The groups that hold now, as a plan over the order of readiness: a group's tensors may have
// changed places since it was made, so a border stands wherever the group changes. Groups of
// several kinds that take turns count as one: so they were planned.
Plan plan_of(std::span<const std::vector<uint64_t>> groups, const MergedReport& merged) {
  std::unordered_map<uint64_t, size_t> group_of;
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const uint64_t hash : groups[i]) group_of[hash] = i;
  }
  Plan plan;
  std::map<Kind, size_t> last;
  for (uint32_t i = 0; i < merged.order.size(); ++i) {
    const auto found = group_of.find(merged.first->tensors[merged.order[i]]);
    const size_t group = found == group_of.end() ? SIZE_MAX - 1 - i : found->second;
    const auto before = last.try_emplace(kind_of(*merged.first, merged.order[i]), group).first;
    if (i == 0 || before->second != group) plan.groups.push_back({i, i, 1});
    plan.groups.back().end = i + 1;
    before->second = group;
  }
  return plan;
}

}  // namespace

Result<PlanDecision> decide_plan(std::span<const PlanReport> reports,
                                 std::span<const CostMeasurement> measurements,
                                 std::span<const std::vector<uint64_t>> current,
                                 std::span<const SetTraffic> others,
                                 const PlanningOptions& options) {
  auto merged = merge(reports);
  if (!merged) return merged.status();
  auto cost = fit_cost(measurements);
  if (!cost) return cost.status();
  Workload workload = workload_of(*merged);
  const auto measured = measured_of(*merged, reports);
  const std::vector<BesideSteps> beside =
      beside_steps(merged->first->set, *measured, others, workload);
  const OccupyingCost occupying(*cost);

  const PlannerOptions planner_options = daemon_planner_options(options.streams);
  SimulatorOptions simulator_options;
  simulator_options.streams = options.streams;
  const BesidePlan best = plan_beside(*options.planner, workload, beside, occupying,
                                      planner_options, simulator_options);

  PlanDecision decision{{}, best.iteration_seconds, 0, *cost, measured};
  decision.current_seconds = mean_iteration_seconds(workload, beside, plan_of(current, *merged),
                                                    occupying, simulator_options);
  for (const auto& group : one_kind_each(best.plan, *merged)) {
    auto& hashes = decision.groups.emplace_back();
    for (const uint32_t tensor : group) hashes.push_back(merged->first->tensors[tensor]);
  }
  return decision;
}

}  // namespace braid
