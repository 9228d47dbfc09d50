// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "config/config.h"

namespace braid {

enum class ConfigKind : uint8_t { Text, Integer, IntegerOrAuto, Bytes, BytesOrAuto, List };

// The section of what tests set: it is checked and printed, and in no document.
inline constexpr std::string_view kDebugSection = "debug";

// Where a key's value lives in a DaemonConfig.
using ConfigField = std::variant<std::string*, uint32_t*, uint64_t*, std::optional<uint16_t>*,
                                 std::optional<uint64_t>*, std::vector<std::string>*>;

// One key: parsing, checking, --set, --print-config, reloading and the documentation are all driven
// by these entries.
struct ConfigKey {
  std::string_view name = {};  // dotted: "transport.flows_per_link"
  ConfigKind kind = ConfigKind::Text;
  ConfigField (*field)(DaemonConfig&) = nullptr;
  uint64_t min = 0;  // of numbers and sizes
  uint64_t max = 0;
  std::string_view allowed = {};                  // Text and List: what fits, in words
  Status (*check)(const std::string&) = nullptr;  // Text: the value; List: each element
  bool reloadable = false;                        // SIGHUP applies it; else it needs a restart
  std::string_view help = {};

  std::string_view section() const { return name.substr(0, name.find('.')); }
  bool is_debug() const { return section() == kDebugSection; }
  std::string_view leaf() const { return name.substr(name.find('.') + 1); }
};

struct ConfigSection {
  std::string_view name;
  std::string_view help = {};
};

// In the order of the documentation.
std::span<const ConfigKey> config_keys();
std::span<const ConfigSection> config_sections();

const ConfigKey* find_config_key(std::string_view name);  // nullptr: there is none

// "level, format": the names of its keys, without its own.
std::string keys_of_section(std::string_view section);
// What to do about an unknown key: "did you mean 'transport.rails'?", or the keys there are.
std::string suggest_config_key(std::string_view unknown);

// Sets the key from text: a scalar of the file or the right side of --set; lists are "a, b" or "[a,
// b]". On an error `config` is unchanged, and the message says what is wrong and what would be
// right, without naming the key.
Status set_config_value(const ConfigKey& key, std::string_view text, DaemonConfig& config);
Status set_config_list(const ConfigKey& key, std::vector<std::string> elements,
                       DaemonConfig& config);

// The value as set_config_value takes it.
std::string format_config_value(const ConfigKey& key, const DaemonConfig& config);

// For documents: "1 to 65535", "4KiB to 4MiB", or the key's own words.
std::string format_config_range(const ConfigKey& key);

}  // namespace braid
