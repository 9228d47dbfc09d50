// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/status.h"
#include "planner/cost_model.h"
#include "planner/planner.h"
#include "planner/simulator.h"
#include "planner/update_method.h"
#include "planner/workload.h"

namespace braid {

struct UpdateOptions {
  SimulatorOptions simulator;
  PlannerOptions planning;
  // How much of an all-reduce's transfer is adding, from 0 to 1. All of it belongs to the push. Of
  // the rest, and of the startup, push and pull have one half each.
  double adding_share = 0;
  // CdSgd, which needs it: encoded bytes of a unit of so many plain ones.
  std::function<uint64_t(uint64_t)> encoded_bytes;
};

// What the nodes send each other from the end of a step on: all of its units are ready at once. The
// push is what an all-reduce sends to the owners, the pull what it sends back.
struct UpdateRound {
  std::vector<CostModel::Phases> units;  // in sending order
  double wire_bytes = 0;                 // a plain all-reduce of so many bytes sends as much
};

// The rounds of a method whose updates come late or seldom, over one period of steps.
struct UpdateRounds {
  std::vector<UpdateRound> kinds;
  std::vector<std::optional<uint32_t>> kind_of_step;  // the round that a step's end begins, if any
  uint32_t delay = 0;  // the end of this many steps later waits until the round is over
  // Whether a step's end waits before it begins its own round, or begins it first.
  bool waits_first = false;
  size_t groups = 0;  // that the planner made
};

// `method` is neither Sync nor Sharded, whose communication begins during backward. The planner
// plans for tensors that are ready together. INVALID_ARGUMENT: more fragments than tensors.
Result<UpdateRounds> make_update_rounds(const Workload& workload, const CostModel& cost,
                                        const Planner& planner, const UpdateMethod& method,
                                        const UpdateOptions& options);

}  // namespace braid
