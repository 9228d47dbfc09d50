// SPDX-License-Identifier: Apache-2.0
#include "config/environment.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/near_names.h"
#include "config/value.h"

namespace braid {
namespace {

// The part of the name behind the prefix may be so wrong for us to guess what was meant.
size_t guess_distance_max(std::string_view part) { return std::max<size_t>(2, part.size() / 4); }

bool is_of_kubernetes(std::string_view name) {
  return name == "BRAIDD_PORT" || name.starts_with("BRAIDD_PORT_") ||
         name.starts_with("BRAIDD_SERVICE_");
}

}  // namespace

std::string environment_name(const ConfigKey& key) {
  std::string name(kEnvironmentPrefix);
  for (const char letter : key.name) {
    name +=
        letter == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return name;
}

const ConfigKey* find_environment_key(std::string_view name) {
  const auto keys = config_keys();
  const auto found = std::ranges::find_if(
      keys, [&](const ConfigKey& key) { return environment_name(key) == name; });
  return found == keys.end() ? nullptr : &*found;
}

std::string suggest_environment_name(std::string_view unknown) {
  const std::string_view part = unknown.substr(kEnvironmentPrefix.size());
  std::string nearest;
  size_t nearest_distance = guess_distance_max(part) + 1;
  for (const ConfigKey& key : config_keys()) {
    std::string name = environment_name(key);
    const std::string_view own_part = std::string_view(name).substr(kEnvironmentPrefix.size());
    // The right key without its section is a near miss too.
    const size_t distance =
        own_part.ends_with(fmt::format("_{}", part)) ? 1 : edit_distance(part, own_part);
    if (distance >= nearest_distance) continue;
    nearest_distance = distance;
    nearest = std::move(name);
  }
  if (!nearest.empty()) return fmt::format("did you mean {}?", nearest);
  return "log.level is BRAIDD_LOG_LEVEL; braidd --print-config shows all keys";
}

std::vector<std::string> select_environment(const char* const* environment) {
  std::vector<std::string> selected;
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable(*environment);
    if (!variable.starts_with(kEnvironmentPrefix)) continue;
    if (!is_of_kubernetes(variable.substr(0, variable.find('=')))) selected.emplace_back(variable);
  }
  return selected;
}

}  // namespace braid
