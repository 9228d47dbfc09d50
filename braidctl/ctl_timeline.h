// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braidctl/command.h"
#include "braidctl/daemon_source.h"
#include "timeline/node_timeline.h"

namespace braid {

// `braidctl trace` without a subcommand: what all nodes did in a job's latest steps.
struct TimelineCommand {
  std::string job;  // empty: the only one
  uint32_t steps = 5;
  std::string output_path;  // standard output if empty
};
void add_timeline_options(CLI::App& trace, TimelineCommand& command);

Result<CommandOutput> run_timeline(const DaemonSource& daemon, const TimelineCommand& command);

// The only one of what the daemon told, which was asked for the job of this name.
Result<JobTimeline> only_timeline(std::vector<JobTimeline> told, const std::string& job);
// What a reader must know: nodes that are missing, spans that are.
std::vector<std::string> timeline_warnings(const JobTimeline& timeline);
// "4 nodes, 1234 spans, clocks aligned to 0.1 ms"
std::string timeline_summary(const JobTimeline& timeline);

}  // namespace braid
