// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config_keys.h"

namespace braid {

// What names of environment variables that are meant for the daemon begin with.
inline constexpr std::string_view kEnvironmentPrefix = "BRAIDD_";

// The variable that sets the key: log.level is BRAIDD_LOG_LEVEL.
std::string environment_name(const ConfigKey& key);
// nullptr: the variable sets no key.
const ConfigKey* find_environment_key(std::string_view name);
// What to do about a variable that sets no key: "did you mean BRAIDD_LOG_LEVEL?".
std::string suggest_environment_name(std::string_view unknown);

// Those of an environment (NAME=VALUE, ended by nullptr) that are meant for the daemon, in its
// order. Left out are BRAIDD_PORT… and BRAIDD_SERVICE_…: Kubernetes gives them to the containers
// beside a Service that is called braidd.
std::vector<std::string> select_environment(const char* const* environment);

}  // namespace braid
