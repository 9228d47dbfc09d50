// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "braidctl/ctl_live.h"
#include "planner/timing_log.h"

namespace braid {

// `braidctl fit`: a cost model from timings of all-reduces, or that of a running job's plan.
struct FitCommand {
  LiveOptions live;  // without a job: the logs
  std::vector<std::string> logs;
  uint64_t bytes_from = 0;  // smaller sizes are left out
  uint64_t bytes_to = std::numeric_limits<uint64_t>::max();
  bool as_json = false;
};

CLI::App* add_fit_command(CLI::App& app, FitCommand& command);
Result<CommandOutput> run_fit(const DaemonSource& daemon, const FitCommand& command);

std::string fit_table(const FittedCost& cost, const TimingLog& log);

// Where the fitted time jumps by a tenth or more from one band to the next.
struct CostStep {
  uint64_t bytes = 0;  // the first size above it
  double below_seconds = 0;
  double above_seconds = 0;
};
std::vector<CostStep> find_steps(const FittedCost& cost);

}  // namespace braid
