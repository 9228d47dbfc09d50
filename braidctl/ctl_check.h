// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/socket_address.h"
#include "braidctl/command.h"
#include "braidctl/daemon_source.h"
#include "check/path_findings.h"

namespace braid {

struct CheckCommand {
  std::vector<std::string> peers;  // "NODE" or "NODE:PORT"
  bool as_json = false;
};
CLI::App* add_check_command(CLI::App& app, CheckCommand& command);
// Asks the daemon behind `socket` about each peer: all at the same time whether they can be
// reached, then one after the other what the ways to them carry. Takes a minute at most. A finding
// is exit code 1.
Result<CommandOutput> run_check(const DaemonSource& daemon, const CheckCommand& command);

struct CheckedPeer {
  std::string peer;  // as it was asked for
  PathFacts facts;
  std::vector<PathFinding> findings;
};
// What people read: the checks of each peer, and the verdict as the last line.
std::string check_text(const std::vector<CheckedPeer>& peers);
std::string check_json(const std::vector<CheckedPeer>& peers);

// parse_host_port(), with the text in the error.
Result<HostPort> parse_peer(const std::string& text);

}  // namespace braid
