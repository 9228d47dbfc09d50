// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braidctl/command.h"
#include "planner/live_plan.h"

namespace braid {

// Which job's plans a subcommand asks the daemon of this node for.
struct LiveOptions {
  std::string job;              // as find_job takes it, until find_live has asked
  std::optional<uint32_t> set;  // from 1; which one is not asked where there is but one
};
// --job and --set, of which neither goes with the options `instead`: they ask for something else.
void add_live_options(CLI::App& command, LiveOptions& live,
                      const std::vector<CLI::Option*>& instead);
// The same with the job's whole name. What follows needs it.
Result<LiveOptions> find_live(const std::string& socket, LiveOptions live);

// The set that the options mean.
Result<LiveSet> find_live_set(LiveJob job, const LiveOptions& live);
// An error as long as `set` has no times.
Status check_measured(const LiveSet& set, const std::string& job);

// Asks the daemon behind `socket`.
Result<LiveSet> ask_for_set(const std::string& socket, const LiveOptions& live);

// "plan" of a job: what holds and how it fares, of all sets or the one that the options mean.
Result<CommandOutput> run_live_plan(const std::string& socket, const LiveOptions& live,
                                    bool as_json);
// "fit" of a job
Result<CommandOutput> run_live_fit(const std::string& socket, const LiveOptions& live,
                                   bool as_json);

std::string live_table(const LiveJob& job);
std::string live_cost_table(const FittedCost& cost);
// At most so many characters, of which the middle is left out.
std::string abbreviated(const std::string& name, size_t characters);

}  // namespace braid
