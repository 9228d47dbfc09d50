// SPDX-License-Identifier: Apache-2.0
#include "config/load.h"

#include <map>

#include <fmt/ranges.h>
#include <unistd.h>

#include "base/read_file.h"
#include "config/checks.h"
#include "config/config_keys.h"
#include "config/value.h"
#include "config/yaml_reader.h"

namespace braid {
namespace {

constexpr size_t kConfigFileBytesMax = 1u << 20;

void apply_setting(std::string_view setting, ConfigOrigins& origins, LoadedConfig& loaded) {
  const size_t equals = setting.find('=');
  const std::string_view name = trim(setting.substr(0, equals));
  if (equals == std::string_view::npos || name.empty()) {
    loaded.errors.push_back(fmt::format(
        "--set {}: is no setting; use --set KEY=VALUE, such as log.level=debug", setting));
    return;
  }
  const std::string origin = fmt::format("--set {}", name);
  const ConfigKey* key = find_config_key(name);
  if (key == nullptr) {
    loaded.errors.push_back(fmt::format("{}: unknown key; {}", origin, suggest_config_key(name)));
    return;
  }
  const Status status = set_config_value(*key, trim(setting.substr(equals + 1)), loaded.config);
  if (!status) {
    loaded.errors.push_back(fmt::format("{}: {}", origin, status.message()));
    return;
  }
  origins[key->name] = origin;
}

void report_conflicts(const ConfigOrigins& origins, LoadedConfig& loaded) {
  for (const ConfigConflict& conflict : find_conflicts(loaded.config)) {
    auto origin = origins.find(conflict.key);
    if (origin == origins.end()) origin = origins.find(conflict.other);
    if (origin == origins.end()) {
      loaded.errors.push_back(fmt::format("{}: {}", conflict.key, conflict.message));
    } else if (origin->first == conflict.key) {
      loaded.errors.push_back(fmt::format("{}: {}", origin->second, conflict.message));
    } else {
      loaded.errors.push_back(
          fmt::format("{}: {}: {}", origin->second, conflict.key, conflict.message));
    }
  }
}

void finish(const std::vector<std::string>& settings, ConfigOrigins& origins,
            LoadedConfig& loaded) {
  for (const std::string& setting : settings) apply_setting(setting, origins, loaded);
  // What is wrong by itself may look like a conflict with the default that stands in for it.
  if (loaded.errors.empty()) report_conflicts(origins, loaded);
}

}  // namespace

std::string LoadedConfig::error_text() const { return fmt::format("{}", fmt::join(errors, "\n")); }

LoadedConfig parse_config(std::string_view yaml, const std::string& name,
                          const std::vector<std::string>& settings) {
  LoadedConfig loaded;
  ConfigOrigins origins;
  read_config_yaml(yaml, name, loaded.config, origins, loaded.errors);
  finish(settings, origins, loaded);
  return loaded;
}

LoadedConfig load_config(const std::optional<std::string>& file,
                         const std::vector<std::string>& settings) {
  if (!file) return parse_config("", "", settings);
  const auto text = read_file(*file, kConfigFileBytesMax);
  if (text) return parse_config(*text, *file, settings);
  LoadedConfig loaded;
  loaded.errors.push_back(text.status().message());
  ConfigOrigins origins;
  finish(settings, origins, loaded);
  return loaded;
}

std::optional<std::string> find_default_config_file() {
  // A file that is there but unreadable is an error of load_config, not a reason to run on
  // defaults.
  if (::access(kDefaultConfigFile, F_OK) != 0) return std::nullopt;
  return kDefaultConfigFile;
}

}  // namespace braid
