// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "plan/algorithm_cost.h"
#include "plan/planner.h"
#include "plan/simulator.h"
#include "plan/trace.h"

namespace braid {

inline constexpr uint32_t kSweepWorkersMax = 65'536;
inline constexpr size_t kSweepSizesMax = 64;

// "4,8,…,2048" (or "..."): the numbers, doubled from the one before the dots to the one after them.
// Errors say what would be right.
Result<std::vector<uint32_t>> parse_workers(std::string_view text);

// Iteration times over numbers of workers and planners: what `braidctl simulate` prints.
struct SweepOptions {
  std::string algorithm;
  LinkCost link;
  AlgorithmOptions algorithm_options;
  double slowdown_of_two = 2;
  std::vector<uint32_t> workers;
  std::vector<const Planner*> planners;
  SimulatorOptions simulator;  // its workers are those of the sweep
};

struct SweepRow {
  uint32_t workers = 1;
  std::string_view planner;
  double iteration_seconds = 0;
  // workers · (iteration of one worker, which does not communicate) / iteration_seconds
  double speedup = 0;
  size_t groups = 0;
};

// Plans are made for the trace's times; jitter and stragglers come in the simulation. Rows by
// workers, then in the planners' order.
Result<std::vector<SweepRow>> run_sweep(const Trace& trace, const SweepOptions& options);

// Of a sweep over `trace`.
std::string sweep_table(const Trace& trace, const SweepOptions& options,
                        const std::vector<SweepRow>& rows);
// [{"workers", "planner", "iteration_seconds", "speedup", "groups"}, …]
std::string sweep_json(const std::vector<SweepRow>& rows);
// Iteration time and speed-up over workers, a line per planner.
std::string sweep_svg(const Trace& trace, const SweepOptions& options,
                      const std::vector<SweepRow>& rows);

// "ring, α 4.52e-05 s, …": what was simulated, for headings.
std::string describe(const SweepOptions& options);

}  // namespace braid
