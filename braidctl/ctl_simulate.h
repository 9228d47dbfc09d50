// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braidctl/command.h"
#include "braidctl/sweep.h"

namespace braid {

// `braidctl simulate`: planners, and update methods, against each other over numbers of workers.
struct SimulateCommand {
  std::string trace_path;
  std::string workers;                // "4,8,…,2048"
  std::vector<std::string> planners;  // all of them if empty
  std::vector<std::string> updates;   // lists of methods
  std::optional<double> forward_seconds;
  double inside_alpha = 0;
  double inside_beta = 0;
  SweepOptions sweep;  // its workers, planners and updates come from the texts above
  bool as_json = false;
};

CLI::App* add_simulate_command(CLI::App& app, SimulateCommand& command);
Result<CommandOutput> run_simulate(const SimulateCommand& command);

}  // namespace braid
