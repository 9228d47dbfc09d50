// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/yaml_reader.h"

namespace braid {

struct LoadedConfig {
  DaemonConfig config;    // what was right; the defaults for the rest
  ConfigOrigins origins;  // of what was right
  // All that is wrong, each "file:line: key: what is wrong, what would be right", "environment
  // NAME: …" or "--set key: …". Empty: usable.
  std::vector<std::string> errors;

  bool is_ok() const { return errors.empty(); }
  std::string error_text() const;  // one line each
};

// What is said of a key, "key: …", with the place where the key was set instead of its name alone:
// "file:line: key: …". A key that nobody has set: "key (its default): …".
std::string tell_origin(const std::string& message, const ConfigOrigins& origins);

// `defaults`, over them `file` (nothing: no file), over that the variables of `environment`
// ("NAME=VALUE": select_environment), and over those each "KEY=VALUE" of `settings`, the last one
// winning.
LoadedConfig load_config(const std::optional<std::string>& file,
                         const std::vector<std::string>& settings,
                         const std::vector<std::string>& environment = {},
                         const DaemonConfig& defaults = {});

// The same for text that is at hand; `name` stands for the file in errors.
LoadedConfig parse_config(std::string_view yaml, const std::string& name,
                          const std::vector<std::string>& settings,
                          const std::vector<std::string>& environment = {},
                          const DaemonConfig& defaults = {});

// The file to read when the command line names none: the default one if it exists.
std::optional<std::string> find_default_config_file();

}  // namespace braid
