// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/config.h"

namespace braid {

// What the daemon was started with: read again by SIGHUP.
struct DaemonInvocation {
  std::optional<std::string> config_file;
  std::vector<std::string> settings;     // --set KEY=VALUE
  std::vector<std::string> environment;  // BRAIDD_…=VALUE: see select_environment
  DaemonConfig defaults;                 // beneath all that
  // --personal, see config/personal.h. Empty: a daemon for all users.
  std::string personal_folder;
  std::string personal_folder_above;  // see PersonalLife
};

// Reads the configuration again, and logs what has changed and what of that needs a restart.
// Returns `running` with the values that hold from now on; nothing: the new configuration is wrong,
// and nothing is to be changed.
std::optional<DaemonConfig> reload_config(const DaemonInvocation& invocation,
                                          const DaemonConfig& running);

}  // namespace braid
