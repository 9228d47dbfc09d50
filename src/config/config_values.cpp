// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/ranges.h>

#include "base/near_names.h"
#include "config/config_keys.h"
#include "config/value.h"

namespace braid {
namespace {

// How wrong a name may be for us to guess what was meant.
size_t distance_max(std::string_view name) { return std::max<size_t>(2, name.size() / 3); }

std::string all_sections() {
  std::vector<std::string_view> names;
  for (const ConfigSection& section : config_sections()) names.push_back(section.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

bool is_section(std::string_view name) {
  const auto sections = config_sections();
  return std::any_of(sections.begin(), sections.end(),
                     [&](const ConfigSection& section) { return section.name == name; });
}

void store_number(const ConfigKey& key, uint64_t value, DaemonConfig& config) {
  std::visit(
      [&](auto* field) {
        using Value = std::remove_pointer_t<decltype(field)>;
        if constexpr (std::is_integral_v<Value>) {
          *field = static_cast<Value>(value);
          BRAID_ASSERT(*field == value, "the table's range does not fit the field");
        } else {
          BRAID_ASSERT(false, "the table calls a text a number");
        }
      },
      key.field(config));
}

uint64_t load_number(const ConfigField& field) {
  return std::visit(
      [](auto* value) -> uint64_t {
        if constexpr (std::is_integral_v<std::remove_pointer_t<decltype(value)>>) return *value;
        BRAID_ASSERT(false, "the table calls a text a number");
        return 0;
      },
      field);
}

Status set_number(const ConfigKey& key, Result<uint64_t> value, DaemonConfig& config) {
  if (!value) return value.status();
  store_number(key, *value, config);
  return Status::ok();
}

// `value`: of a text that is not "auto".
template <typename Number>
Status set_number_or_auto(const ConfigKey& key, std::string_view text, Result<uint64_t> value,
                          DaemonConfig& config) {
  std::optional<Number>& field = *std::get<std::optional<Number>*>(key.field(config));
  if (text == kAuto) {
    field.reset();
    return Status::ok();
  }
  if (!value)
    return make_status(StatusCode::InvalidArgument, "{}; or auto", value.status().message());
  field = static_cast<Number>(*value);
  BRAID_ASSERT(*field == *value, "the table's range does not fit the field");
  return Status::ok();
}

}  // namespace

std::string keys_of_section(std::string_view section) {
  std::vector<std::string_view> leaves;
  for (const ConfigKey& key : config_keys()) {
    if (key.section() == section) leaves.push_back(key.leaf());
  }
  return fmt::format("{}", fmt::join(leaves, ", "));
}

Status set_config_list(const ConfigKey& key, std::vector<std::string> elements,
                       DaemonConfig& config) {
  BRAID_ASSERT(key.kind == ConfigKind::List, "only a list takes elements");
  if (elements.empty()) {
    return make_status(StatusCode::InvalidArgument, "is an empty list; use {}", key.allowed);
  }
  for (size_t i = 0; i < elements.size(); ++i) {
    BRAID_RETURN_IF_ERROR(key.check(elements[i]));
    if (std::find(elements.begin(), elements.begin() + static_cast<ptrdiff_t>(i), elements[i]) !=
        elements.begin() + static_cast<ptrdiff_t>(i)) {
      return make_status(StatusCode::InvalidArgument, "has '{}' twice; name it once", elements[i]);
    }
  }
  if (elements.size() > 1 && std::find(elements.begin(), elements.end(), kAuto) != elements.end()) {
    return make_status(StatusCode::InvalidArgument,
                       "has auto among others; use auto alone, or name all of them");
  }
  *std::get<std::vector<std::string>*>(key.field(config)) = std::move(elements);
  return Status::ok();
}

Status set_config_value(const ConfigKey& key, std::string_view text, DaemonConfig& config) {
  switch (key.kind) {
    case ConfigKind::Text: {
      std::string value(text);
      BRAID_RETURN_IF_ERROR(key.check(value));
      *std::get<std::string*>(key.field(config)) = std::move(value);
      return Status::ok();
    }
    case ConfigKind::Integer:
      return set_number(key, parse_integer(text, key.min, key.max), config);
    case ConfigKind::Bytes:
      return set_number(key, parse_bytes(text, key.min, key.max), config);
    case ConfigKind::IntegerOrAuto:
      return set_number_or_auto<uint16_t>(key, text, parse_integer(text, key.min, key.max), config);
    case ConfigKind::BytesOrAuto:
      return set_number_or_auto<uint64_t>(key, text, parse_bytes(text, key.min, key.max), config);
    case ConfigKind::List:
      return set_config_list(key, split_list(text), config);
  }
  return Status::ok();
}

std::string format_config_value(const ConfigKey& key, const DaemonConfig& config) {
  // The table's accessors serve reading and writing; nothing is written here.
  const ConfigField field = key.field(const_cast<DaemonConfig&>(config));
  switch (key.kind) {
    case ConfigKind::Text:
      return *std::get<std::string*>(field);
    case ConfigKind::Integer:
      return std::to_string(load_number(field));
    case ConfigKind::IntegerOrAuto: {
      const std::optional<uint16_t>& number = *std::get<std::optional<uint16_t>*>(field);
      return number ? std::to_string(*number) : kAuto;
    }
    case ConfigKind::Bytes:
      return format_bytes(load_number(field));
    case ConfigKind::BytesOrAuto: {
      const std::optional<uint64_t>& bytes = *std::get<std::optional<uint64_t>*>(field);
      return bytes ? format_bytes(*bytes) : kAuto;
    }
    case ConfigKind::List:
      return format_list(*std::get<std::vector<std::string>*>(field));
  }
  return {};
}

std::string format_config_range(const ConfigKey& key) {
  switch (key.kind) {
    case ConfigKind::Integer:
      return fmt::format("{} to {}", key.min, key.max);
    case ConfigKind::IntegerOrAuto:
      return fmt::format("{} to {}, or auto", key.min, key.max);
    case ConfigKind::Bytes:
      return fmt::format("{} to {}", format_bytes(key.min), format_bytes(key.max));
    case ConfigKind::BytesOrAuto:
      return fmt::format("{} to {}, or auto", format_bytes(key.min), format_bytes(key.max));
    case ConfigKind::Text:
    case ConfigKind::List:
      return std::string(key.allowed);
  }
  return {};
}

std::string suggest_config_key(std::string_view unknown) {
  const std::string_view leaf = unknown.substr(unknown.rfind('.') + 1);
  const ConfigKey* nearest = nullptr;
  size_t nearest_distance = 0;
  for (const ConfigKey& key : config_keys()) {
    // The right name in the wrong section, or in none, is a near miss too.
    size_t distance = key.leaf() == leaf ? 1 : edit_distance(unknown, key.name);
    if (leaf == unknown && !is_section(leaf))
      distance = std::min(distance, 1 + edit_distance(leaf, key.leaf()));
    if (nearest == nullptr || distance < nearest_distance) {
      nearest = &key;
      nearest_distance = distance;
    }
  }
  if (nearest_distance <= distance_max(unknown)) {
    return fmt::format("did you mean '{}'?", nearest->name);
  }
  const std::string_view section = unknown.substr(0, unknown.find('.'));
  if (is_section(section)) {
    return fmt::format("the keys of '{}' are {}", section, keys_of_section(section));
  }
  for (const ConfigSection& candidate : config_sections()) {
    if (edit_distance(section, candidate.name) <= std::max<size_t>(1, section.size() / 3)) {
      return fmt::format("did you mean '{}'?", candidate.name);
    }
  }
  return fmt::format("the sections are {}; braidd --print-config shows all keys", all_sections());
}

}  // namespace braid
