// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/simulator.h"

namespace braid {

// One of many equal steps in which owners update parameters: a group's reduce-scatter, update and
// all-gather are one operation, which costs what an all-reduce of the group costs. The next forward
// pass goes through the layers as their parameters come, and waits for those that are not there.
// Groups that are ready start in the order in which the forward pass needs them.
//
// The forward pass is taken to spend on each layer the share that backward spends on it: a trace
// does not tell. iteration_seconds is the time from one backward pass's beginning to the next
// one's; exposed_seconds what the forward pass waits in it.
Timeline simulate_sharded(const Workload& workload, const Plan& plan, const CostModel& cost,
                          const SimulatorOptions& options = {});

}  // namespace braid
