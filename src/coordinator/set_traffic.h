// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "messages/plan_messages.h"
#include "planner/beside_plan.h"
#include "planner/workload.h"

namespace braid {

// When one set's tensors are ready in its steps, as the nodes have last reported it, and which
// other sets began a step before. Times are those of the slowest node.
struct SetMeasured {
  struct Tensor {
    uint64_t hash = 0;
    double ready_seconds = 0;
    uint64_t bytes = 0;
  };
  std::vector<Tensor> tensors;  // by hash
  double last_ready_seconds = 0;
  std::vector<PlanReport::Beside> beside;
};

// One of the job's sets, and how it is merged now.
struct SetTraffic {
  uint64_t set = 0;
  std::vector<std::vector<uint64_t>> groups;  // hashes
  std::shared_ptr<const SetMeasured> measured;
};

// A node says in what share of its steps; the mean over the nodes' reports.
std::vector<PlanReport::Beside> merge_beside(std::span<const PlanReport> reports);

// What the job's other sets send in the steps of a set that has this id, `own` tensors and this
// workload. Where some of it begins before the workload does, the beginning of the workload's time
// axis is moved there: its iteration takes as long as before.
//
// A step of another set lies where the two begin as far apart as was measured: before this set's
// step or after it, where both have tensors that become ready at the same time. Where they have
// not, as for two models that are trained in turns, nothing is beside. Steps of several sets fall
// together: the steps of a rarer set are among those of a more frequent one.
std::vector<BesideSteps> beside_steps(uint64_t set, const SetMeasured& own,
                                      std::span<const SetTraffic> others, Workload& workload);

}  // namespace braid
