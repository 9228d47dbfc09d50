// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "braidctl/command.h"
#include "braidctl/daemon_source.h"

namespace braid {

// `braidctl tune`: what the tuning of the jobs on this node has tried, and what it has found.
struct TuneCommand {
  std::string job;  // empty: all
  bool as_json = false;
};

CLI::App* add_tune_command(CLI::App& app, TuneCommand& command);
Result<CommandOutput> run_tune(const DaemonSource& daemon, const TuneCommand& command);

// From the daemon's answer to TuneQuery. Errors: it is no such answer.
Result<std::string> tune_tables(const std::string& answer);

}  // namespace braid
