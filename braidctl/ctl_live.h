// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braidctl/command.h"
#include "braidctl/daemon_source.h"
#include "planner/live_plan.h"

namespace braid {

// Which job's plans a subcommand asks the daemon of this node for.
struct LiveOptions {
  std::string job;
  std::optional<uint32_t> set;  // from 1; which one is not asked where there is but one
};
// --job and --set, which needs it.
CLI::Option* add_live_options(CLI::App& command, LiveOptions& live);

// The plans of the job called `name` among `jobs`, those that run on the daemon's node. Errors list
// what is there.
Result<LiveJob> find_live_job(std::vector<LiveJob> jobs, const std::string& name);
// The set that the options mean.
Result<LiveSet> find_live_set(LiveJob job, const LiveOptions& live);
// An error as long as `set` has no times.
Status check_measured(const LiveSet& set, const std::string& job);

// Asks the daemon behind `socket`.
Result<LiveSet> ask_for_set(const DaemonSource& daemon, const LiveOptions& live);

// "plan --job": what holds and how it fares, of all sets or the one that the options mean.
Result<CommandOutput> run_live_plan(const DaemonSource& daemon, const LiveOptions& live,
                                    bool as_json);
// "fit --job"
Result<CommandOutput> run_live_fit(const DaemonSource& daemon, const LiveOptions& live,
                                   bool as_json);

std::string live_table(const LiveJob& job);
std::string live_cost_table(const FittedCost& cost);
// At most so many characters, of which the middle is left out.
std::string abbreviated(const std::string& name, size_t characters);

}  // namespace braid
