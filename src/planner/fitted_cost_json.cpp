// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "base/read_file.h"
#include "planner/fitted_cost.h"
#include "planner/json_input.h"

namespace braid {
namespace {

using nlohmann::json;

constexpr size_t kCostFileBytesMax = 1 << 20;
constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();

// The list `key` of the document, each entry an object; nothing where it is missing.
Result<std::vector<JsonEntry>> objects(const json& document, std::string_view file,
                                       const char* key) {
  std::vector<JsonEntry> entries;
  if (!document.contains(key)) return entries;
  const JsonEntry list{document[key], file, key};
  if (!list.value.is_array()) return list.error("is no list", "a list of objects");
  for (size_t i = 0; i < list.value.size(); ++i) {
    entries.push_back({list.value[i], file, fmt::format("{}[{}]", key, i)});
    if (!list.value[i].is_object()) return entries.back().error("is no object", "{…}");
  }
  return entries;
}

Result<JsonEntry> field(const JsonEntry& object, const char* key) {
  if (!object.value.contains(key)) {
    return make_status(StatusCode::InvalidArgument, "{}: {}.{} is missing; right is a number",
                       object.file, object.where, key);
  }
  return JsonEntry{object.value[key], object.file, fmt::format("{}.{}", object.where, key)};
}

Status read(const JsonEntry& object, const char* key, double& out) {
  const auto entry = field(object, key);
  if (!entry) return entry.status();
  const auto value = entry->number("a number");
  if (value) out = *value;
  return value.status();
}

Status read(const JsonEntry& object, const char* key, uint64_t max, uint64_t& out) {
  const auto entry = field(object, key);
  if (!entry) return entry.status();
  const auto value = entry->integer(0, max, "an integer");
  if (value) out = *value;
  return value.status();
}

Result<FittedCost::Band> parse_band(const JsonEntry& object) {
  BRAID_RETURN_IF_ERROR(check_keys(
      object.value, object.file, object.where + ".",
      {"bytes_min", "bytes_max", "startup_seconds", "seconds_per_byte", "sizes", "residual"}));
  FittedCost::Band band;
  uint64_t sizes = 0;
  BRAID_RETURN_IF_ERROR(read(object, "bytes_min", kAny, band.bytes_min));
  BRAID_RETURN_IF_ERROR(read(object, "bytes_max", kAny, band.bytes_max));
  BRAID_RETURN_IF_ERROR(read(object, "startup_seconds", band.cost.startup_seconds));
  BRAID_RETURN_IF_ERROR(read(object, "seconds_per_byte", band.cost.seconds_per_byte));
  if (object.value.contains("sizes")) {
    BRAID_RETURN_IF_ERROR(read(object, "sizes", std::numeric_limits<uint32_t>::max(), sizes));
  }
  if (object.value.contains("residual")) {
    BRAID_RETURN_IF_ERROR(read(object, "residual", band.residual));
  }
  band.sizes = static_cast<uint32_t>(sizes);
  return band;
}

Result<FittedCost::Slowdown> parse_slowdown(const JsonEntry& object) {
  BRAID_RETURN_IF_ERROR(
      check_keys(object.value, object.file, object.where + ".", {"transfers", "factor"}));
  FittedCost::Slowdown slowdown;
  uint64_t transfers = 0;
  BRAID_RETURN_IF_ERROR(read(object, "transfers", FittedCost::kTransfersMax, transfers));
  BRAID_RETURN_IF_ERROR(read(object, "factor", slowdown.factor));
  slowdown.transfers = static_cast<uint32_t>(transfers);
  return slowdown;
}

}  // namespace

Result<FittedCost> parse_cost(std::string_view text, std::string_view file) {
  const auto document = parse_json_object(text, file);
  if (!document) return document.status();
  BRAID_RETURN_IF_ERROR(check_keys(*document, file, "", {"bands", "slowdowns"}));
  std::vector<FittedCost::Band> bands;
  std::vector<FittedCost::Slowdown> slowdowns;
  const auto band_entries = objects(*document, file, "bands");
  if (!band_entries) return band_entries.status();
  for (const JsonEntry& entry : *band_entries) {
    const auto band = parse_band(entry);
    if (!band) return band.status();
    bands.push_back(*band);
  }
  const auto slowdown_entries = objects(*document, file, "slowdowns");
  if (!slowdown_entries) return slowdown_entries.status();
  for (const JsonEntry& entry : *slowdown_entries) {
    const auto slowdown = parse_slowdown(entry);
    if (!slowdown) return slowdown.status();
    slowdowns.push_back(*slowdown);
  }
  auto cost = FittedCost::create(std::move(bands), std::move(slowdowns));
  if (!cost) return cost.status().with_context(file);
  return cost;
}

Result<FittedCost> load_cost(const std::string& path) {
  const auto text = read_file(path, kCostFileBytesMax);
  if (!text) return text.status();
  return parse_cost(*text, path);
}

std::string to_json(const FittedCost& cost) {
  nlohmann::ordered_json document;
  document["bands"] = nlohmann::ordered_json::array();
  for (const FittedCost::Band& band : cost.bands()) {
    nlohmann::ordered_json entry;
    entry["bytes_min"] = band.bytes_min;
    entry["bytes_max"] = band.bytes_max;
    entry["startup_seconds"] = band.cost.startup_seconds;
    entry["seconds_per_byte"] = band.cost.seconds_per_byte;
    entry["sizes"] = band.sizes;
    entry["residual"] = band.residual;
    document["bands"].push_back(std::move(entry));
  }
  document["slowdowns"] = nlohmann::ordered_json::array();
  for (const FittedCost::Slowdown& slowdown : cost.slowdowns()) {
    nlohmann::ordered_json entry;
    entry["transfers"] = slowdown.transfers;
    entry["factor"] = slowdown.factor;
    document["slowdowns"].push_back(std::move(entry));
  }
  return document.dump(2);
}

}  // namespace braid
