// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace braid {

struct ConfigChange {
  std::string_view key;
  std::string before;
  std::string after;
  bool reloadable = false;  // else it takes a restart
};

// What SIGHUP has to deal with, in the table's order.
std::vector<ConfigChange> diff_config(const DaemonConfig& before, const DaemonConfig& after);

// `running` with the reloadable values of `loaded`: what the daemon runs with after SIGHUP.
DaemonConfig merge_reloadable(const DaemonConfig& running, const DaemonConfig& loaded);

}  // namespace braid
