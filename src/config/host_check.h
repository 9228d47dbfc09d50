// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "config/network.h"

namespace braid {

// What this machine lacks for a daemon with this configuration to start: the files that it names,
// its group, interfaces and addresses. Each as "key: what is wrong, what would be right". Not
// looked at: whether ports are free, for a daemon may be running, and what UCX can use.
std::vector<std::string> find_host_troubles(const DaemonConfig& config, const Network& network);

}  // namespace braid
