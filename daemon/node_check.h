// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/load.h"

namespace braid {

struct NodeCheck {
  // What this machine lacks for a daemon with this configuration to start, as this user: each
  // "where the key was set: what is wrong, what would be right".
  std::vector<std::string> troubles;
  bool is_served = false;  // see ListenCheck
};

// Tries what a daemon does when it starts. With mistakes in the configuration only the keys that
// were set, and are right, are looked at.
NodeCheck check_node(const LoadedConfig& loaded);

}  // namespace braid
