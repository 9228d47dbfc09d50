// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "braidctl/ctl_live.h"

namespace braid {

// `braidctl plan`: what one planner makes of a trace, or the plan of a running job.
struct PlanCommand {
  LiveOptions live;  // without a job: what follows
  std::string trace_path;
  std::string planner;
  double startup_seconds = 0;
  double seconds_per_byte = 0;
  std::string cost_path;  // a fitted model instead of the two
  double slowdown_of_two = 2;
  uint32_t streams = 1;
  std::optional<double> forward_seconds;  // instead of the trace's
  bool as_json = false;
};

// `command` must outlive the parsing of `app`.
CLI::App* add_plan_command(CLI::App& app, PlanCommand& command);
Result<CommandOutput> run_plan(const DaemonSource& daemon, const PlanCommand& command);

}  // namespace braid
