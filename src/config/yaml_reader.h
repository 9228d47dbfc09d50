// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace braid {

// Which keys the user has set, and where: "file:line: key", "environment NAME" or "--set key".
using ConfigOrigins = std::map<std::string_view, std::string>;

// Sets in `config` what `yaml` says and appends everything that is wrong with it to `errors`.
// Throws nothing.
void read_config_yaml(std::string_view yaml, const std::string& file, DaemonConfig& config,
                      ConfigOrigins& origins, std::vector<std::string>& errors);

}  // namespace braid
