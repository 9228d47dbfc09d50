// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "config/config.h"

namespace braid {

struct ListenCheck {
  // Somebody answers at client.socket, most likely a daemon with this configuration: neither ports
  // nor the socket were tried.
  bool is_served = false;
  // What keeps a daemon from listening. Each as "key: what is wrong, what would be right".
  std::vector<std::string> troubles;
  // The ports that could be opened, as a daemon has them open while it opens others.
  std::vector<Fd> held;
};

// Tries what a daemon with this configuration listens on: client.socket and its folder, and the TCP
// ports at those of their addresses that are this machine's. `node_address` as resolved; empty: not
// known. Leaves nothing behind, but for what is held.
ListenCheck check_listening(const DaemonConfig& config, const std::string& node_address);

}  // namespace braid
