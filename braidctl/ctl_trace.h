// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "braidctl/ctl_live.h"
#include "braidctl/ctl_timeline.h"

namespace braid {

// `braidctl trace`: the timeline of a running job. `braidctl trace record`: what it measured, as a
// trace.
struct TraceCommand {
  TimelineCommand timeline;
  bool is_recorded = false;  // else the timeline
  LiveOptions live;
  std::string output_path;  // standard output if empty
};

CLI::App* add_trace_command(CLI::App& app, TraceCommand& command);
Result<CommandOutput> run_trace(const DaemonSource& daemon, const TraceCommand& command);

}  // namespace braid
