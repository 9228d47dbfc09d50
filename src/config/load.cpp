// SPDX-License-Identifier: Apache-2.0
#include "config/load.h"

#include <map>

#include <fmt/ranges.h>
#include <unistd.h>

#include "base/read_file.h"
#include "config/checks.h"
#include "config/config_keys.h"
#include "config/environment.h"
#include "config/value.h"

namespace braid {
namespace {

constexpr size_t kConfigFileBytesMax = 1u << 20;

void apply_value(const ConfigKey& key, std::string_view value, const std::string& origin,
                 LoadedConfig& loaded) {
  const Status status = set_config_value(key, trim(value), loaded.config);
  if (status) {
    loaded.origins[key.name] = origin;
  } else {
    loaded.errors.push_back(fmt::format("{}: {}", origin, status.message()));
  }
}

void apply_variable(std::string_view variable, LoadedConfig& loaded) {
  const size_t equals = variable.find('=');
  const std::string_view name = variable.substr(0, equals);
  const std::string origin = fmt::format("environment {}", name);
  const ConfigKey* key = find_environment_key(name);
  if (key == nullptr) {
    loaded.errors.push_back(
        fmt::format("{}: sets no key; {}", origin, suggest_environment_name(name)));
    return;
  }
  apply_value(*key, variable.substr(equals + 1), origin, loaded);
}

void apply_setting(std::string_view setting, LoadedConfig& loaded) {
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
  apply_value(*key, setting.substr(equals + 1), origin, loaded);
}

void report_conflicts(LoadedConfig& loaded) {
  const ConfigOrigins& origins = loaded.origins;
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

void finish(const std::vector<std::string>& settings, const std::vector<std::string>& environment,
            LoadedConfig& loaded) {
  for (const std::string& variable : environment) apply_variable(variable, loaded);
  for (const std::string& setting : settings) apply_setting(setting, loaded);
  // What is wrong by itself may look like a conflict with the default that stands in for it.
  if (loaded.errors.empty()) report_conflicts(loaded);
}

}  // namespace

std::string LoadedConfig::error_text() const { return fmt::format("{}", fmt::join(errors, "\n")); }

std::string tell_origin(const std::string& message, const ConfigOrigins& origins) {
  const size_t colon = message.find(':');
  const std::string key = message.substr(0, colon);
  if (colon == std::string::npos || find_config_key(key) == nullptr) return message;
  const auto origin = origins.find(key);
  if (origin == origins.end()) return key + " (its default)" + message.substr(colon);
  return origin->second + message.substr(colon);
}

LoadedConfig parse_config(std::string_view yaml, const std::string& name,
                          const std::vector<std::string>& settings,
                          const std::vector<std::string>& environment,
                          const DaemonConfig& defaults) {
  LoadedConfig loaded;
  loaded.config = defaults;
  read_config_yaml(yaml, name, loaded.config, loaded.origins, loaded.errors);
  finish(settings, environment, loaded);
  return loaded;
}

LoadedConfig load_config(const std::optional<std::string>& file,
                         const std::vector<std::string>& settings,
                         const std::vector<std::string>& environment,
                         const DaemonConfig& defaults) {
  if (!file) return parse_config("", "", settings, environment, defaults);
  const auto text = read_file(*file, kConfigFileBytesMax);
  if (text) return parse_config(*text, *file, settings, environment, defaults);
  LoadedConfig loaded;
  loaded.config = defaults;
  loaded.errors.push_back(text.status().message());
  finish(settings, environment, loaded);
  return loaded;
}

std::optional<std::string> find_default_config_file() {
  // A file that is there but unreadable is an error of load_config, not a reason to run on
  // defaults.
  if (::access(kDefaultConfigFile, F_OK) != 0) return std::nullopt;
  return kDefaultConfigFile;
}

}  // namespace braid
