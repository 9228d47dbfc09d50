// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "config/config.h"

namespace braid {

// All keys with their values and, as comments, their help: a configuration file that load_config
// reads back.
std::string print_config(const DaemonConfig& config);

// The example of the packages: the defaults, each key commented out.
std::string print_example_config();

// The tables of docs/configuration.md.
std::string print_config_markdown();

}  // namespace braid
