// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "braidctl/command.h"
#include "braidctl/daemon_source.h"

namespace braid {

struct ReportCommand {
  std::string config_file;  // empty: what the daemon was started with, else the default one
  std::string log_file;     // empty: the journal, or what the daemon's standard error is
  uint32_t log_lines = 100;
  bool as_json = false;
};
CLI::App* add_report_command(CLI::App& app, ReportCommand& command);
// What a bug report needs of this node, as far as this user may see it. Where no daemon answers the
// report says why, and has the rest.
Result<CommandOutput> run_report(const DaemonSource& daemon, const ReportCommand& command);

// A line without what looks like a secret: values of variables and headers whose names say so, and
// long runs of hexadecimal digits, as keys and tokens are.
std::string without_secrets(const std::string& line);

}  // namespace braid
