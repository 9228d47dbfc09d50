// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "braidctl/command.h"
#include "braidctl/daemon_source.h"
#include "explain/pending.h"

namespace braid {

struct PendingCommand {
  std::string job;  // empty: the only one
  bool as_json = false;
};
CLI::App* add_pending_command(CLI::App& app, PendingCommand& command);
// Asks the daemon behind `socket`, and through it all nodes of the job.
Result<CommandOutput> run_pending(const DaemonSource& daemon, const PendingCommand& command);

// For people: what waits, for how long, and for whom.
std::string pending_table(const JobFacts& facts, const std::vector<PendingOperation>& operations);

}  // namespace braid
