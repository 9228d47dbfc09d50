// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "planner/cost_model.h"
#include "planner/plan.h"
#include "planner/workload.h"

namespace braid {

struct SimulatorOptions {
  uint32_t streams = 1;  // units in flight at once
  // Several workers, of which the slowest makes each gradient ready: every worker's backward times
  // are multiplied by its own factor, uniform in [1, 1 + straggle], and each tensor's by
  // one in [1 − jitter, 1 + jitter]. With both 0 the workers are alike.
  uint32_t workers = 1;
  double straggle = 0;
  double jitter = 0;  // less than 1
  uint64_t seed = 1;
};

// What happened, in seconds from the beginning of backward.
struct Timeline {
  struct Unit {
    uint32_t group = 0;
    uint32_t piece = 0;
    double start_seconds = 0;
    double end_seconds = 0;
  };
  std::vector<Unit> units;            // in order of their start
  std::vector<double> ready_seconds;  // of each tensor, of the slowest worker
  double backward_seconds = 0;
  double iteration_seconds = 0;  // forward + until the last of backward and communication
  double exposed_seconds = 0;    // communication that backward did not hide
};

// When the slowest worker has made each tensor of the workload.
std::vector<double> slowest_ready_seconds(const Workload& workload,
                                          const SimulatorOptions& options);

// Runs one step event by event. A group's units become ready with its last tensor and start in the
// plan's order as soon as one of `streams` channels is free. A unit goes through its startup, then
// its transfer; transfers that run side by side all slow down by CostModel::slowdown. With one
// stream this is the papers' recurrence, to the last bit. The units of others (Workload::beside)
// take their turns by when they are ready, and the iteration goes on until they are through, too;
// the timeline does not show them.
Timeline simulate(const Workload& workload, const Plan& plan, const CostModel& cost,
                  const SimulatorOptions& options = {});

}  // namespace braid
