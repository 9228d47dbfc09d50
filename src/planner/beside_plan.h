// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "planner/cost_model.h"
#include "planner/plan.h"
#include "planner/planner.h"
#include "planner/simulator.h"
#include "planner/workload.h"

// Plans for a workload that shares its network with what is planned by others, such as a model's
// gradients beside the factors of K-FAC. Pure; any thread.
namespace braid {

// What others send in such a share of the workload's steps. Not all of them have a step each time.
struct BesideSteps {
  double share = 0;                   // of the steps; those of all kinds are 1 at most
  std::vector<Workload::Unit> units;  // on the workload's time axis, by readiness
};

struct BesidePlan {
  Plan plan;
  double iteration_seconds = 0;  // the mean over the steps, as mean_iteration_seconds() has it
};

// The mean over all steps: those of each kind, and the rest, in which nobody else sends anything.
// A step goes on until the units of the others are through, too.
double mean_iteration_seconds(const Workload& workload, std::span<const BesideSteps> kinds,
                              const Plan& plan, const CostModel& cost,
                              const SimulatorOptions& options);

// The best of what `planner` makes of the workload alone and beside each kind of steps, by that
// mean; of equals the one that was made alone. So it is never worse than that one, and the same
// without any kinds.
BesidePlan plan_beside(const Planner& planner, const Workload& workload,
                       std::span<const BesideSteps> kinds, const CostModel& cost,
                       const PlannerOptions& planner_options,
                       const SimulatorOptions& simulator_options);

}  // namespace braid
