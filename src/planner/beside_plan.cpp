// SPDX-License-Identifier: Apache-2.0
#include "planner/beside_plan.h"

#include <utility>

namespace braid {
namespace {

Workload beside(Workload workload, const BesideSteps& kind) {
  workload.beside = kind.units;
  return workload;
}

}  // namespace

double mean_iteration_seconds(const Workload& workload, std::span<const BesideSteps> kinds,
                              const Plan& plan, const CostModel& cost,
                              const SimulatorOptions& options) {
  double rest = 1;
  double seconds = 0;
  for (const BesideSteps& kind : kinds) {
    rest -= kind.share;
    seconds += kind.share * simulate(beside(workload, kind), plan, cost, options).iteration_seconds;
  }
  if (rest <= 0) return seconds;
  return seconds + rest * simulate(workload, plan, cost, options).iteration_seconds;
}

BesidePlan plan_beside(const Planner& planner, const Workload& workload,
                       std::span<const BesideSteps> kinds, const CostModel& cost,
                       const PlannerOptions& planner_options,
                       const SimulatorOptions& simulator_options) {
  const auto judged = [&](Plan plan) {
    const double seconds = mean_iteration_seconds(workload, kinds, plan, cost, simulator_options);
    return BesidePlan{std::move(plan), seconds};
  };
  BesidePlan best = judged(planner.plan(workload, cost, planner_options));
  for (const BesideSteps& kind : kinds) {
    BesidePlan other = judged(planner.plan(beside(workload, kind), cost, planner_options));
    if (other.iteration_seconds < best.iteration_seconds) best = std::move(other);
  }
  return best;
}

}  // namespace braid
