// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "planner/algorithm_cost.h"
#include "planner/delayed_simulator.h"
#include "planner/planner.h"
#include "planner/simulator.h"
#include "planner/trace.h"

namespace braid {

inline constexpr uint32_t kSweepWorkersMax = 65'536;
inline constexpr size_t kSweepSizesMax = 64;

// "4,8,…,2048" (or "..."): the numbers, doubled from the one before the dots to the one after them.
// Errors say what would be right.
Result<std::vector<uint32_t>> parse_workers(std::string_view text);

// Iteration times over numbers of workers, planners and update methods: what `braidctl simulate`
// prints.
struct SweepOptions {
  std::string algorithm;
  LinkCost link;
  AlgorithmOptions algorithm_options;
  double slowdown_of_two = 2;
  std::vector<uint32_t> workers;
  std::vector<const Planner*> planners;
  std::vector<UpdateMethod> updates;  // none: Sync, and rows say nothing of updates
  SimulatorOptions simulator;         // its workers are those of the sweep
};

// What an update method makes of a step.
struct SweepUpdate {
  UpdateMethod method;
  UpdateTimes times;
  double wire_bytes = 0;         // that a node sends in a step, as the algorithm's model counts
  double speedup_over_sync = 1;  // iteration with Sync, the same planner and workers / iteration
};

struct SweepRow {
  uint32_t workers = 1;
  std::string_view planner;
  double iteration_seconds = 0;
  // workers · (iteration of one worker, which does not communicate) / iteration_seconds
  double speedup = 0;
  size_t groups = 0;
  std::optional<SweepUpdate> update = {};  // where the sweep has update methods
};

// Plans are made for the trace's times; jitter and stragglers come in the simulation. Rows by
// workers, then in the planners' order, then in that of the methods. CdSgd wants a trace of float32
// alone (check_codecs_fit). Errors: those of algorithm_cost() and simulate_update().
Result<std::vector<SweepRow>> run_sweep(const Trace& trace, const SweepOptions& options);

// The table of a sweep over `trace`.
std::string sweep_table(const Trace& trace, const SweepOptions& options,
                        const std::vector<SweepRow>& rows);
// [{"workers", "planner", "iteration_seconds", "speedup", "groups"}, …]; of update methods also
// "update", "compute_seconds", "communication_seconds", "exposed_seconds", "hidden_share",
// "wire_bytes", "wire_share", "speedup_over_sync".
std::string sweep_json(const std::vector<SweepRow>& rows);

// "ring, α 4.52e-05 s, …": what was simulated, for headings.
std::string describe(const SweepOptions& options);

}  // namespace braid
