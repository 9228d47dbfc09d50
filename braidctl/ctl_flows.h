// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "braidctl/command.h"
#include "braidctl/daemon_source.h"
#include "metrics/status.h"

namespace braid {

struct FlowsCommand {
  std::string peer;  // empty: all
  bool as_json = false;
};
CLI::App* add_flows_command(CLI::App& app, FlowsCommand& command);
Result<CommandOutput> run_flows(const DaemonSource& daemon, const FlowsCommand& command);

// One line a flow; of each link and rail the slowest first. What failed last stands below.
std::string flows_table(std::vector<DaemonStatus::Flow> flows);

}  // namespace braid
