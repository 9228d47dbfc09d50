// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "braidctl/ctl_live.h"

namespace braid {

// `braidctl trace record`: what a running job measured, as a trace.
struct TraceCommand {
  LiveOptions live;
  std::string output_path;  // standard output if empty
};

CLI::App* add_trace_command(CLI::App& app, TraceCommand& command);
Result<CommandOutput> run_trace(const std::string& socket, const TraceCommand& command);

}  // namespace braid
