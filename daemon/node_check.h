// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace braid {

// What keeps a daemon with this configuration from starting on this machine, each as "key: what is
// wrong, what would be right". Also asks UCX. Not looked at: whether ports and the socket are free.
std::vector<std::string> find_node_troubles(const DaemonConfig& config);

}  // namespace braid
