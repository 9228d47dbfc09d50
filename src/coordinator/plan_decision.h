// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "coordinator/plan_director.h"
#include "coordinator/set_traffic.h"

namespace braid {

// A plan for one set, and what it should bring.
struct PlanDecision {
  std::vector<std::vector<uint64_t>> groups;  // hashes, in sending order
  double predicted_seconds = 0;               // of an iteration
  double current_seconds = 0;                 // of an iteration with the groups that hold now
  FittedCost cost;
  std::shared_ptr<const SetMeasured> measured;  // of the reports
};

// From the reports of all nodes: a tensor is ready when the slowest node has it. `current`: the
// groups that hold. `others`: the job's other sets. An error where there is too little to fit a
// cost to, or the nodes' reports contradict each other.
Result<PlanDecision> decide_plan(std::span<const PlanReport> reports,
                                 std::span<const CostMeasurement> measurements,
                                 std::span<const std::vector<uint64_t>> current,
                                 std::span<const SetTraffic> others,
                                 const PlanningOptions& options);

}  // namespace braid
