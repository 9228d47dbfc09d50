// SPDX-License-Identifier: Apache-2.0
#include "planner/placement_input.h"

#include <limits>

#include "base/read_file.h"
#include "planner/json_input.h"

namespace braid {
namespace {

using nlohmann::json;

constexpr size_t kPlacementFileBytesMax = size_t{64} << 20;
constexpr uint64_t kPlacedBytesMax = std::numeric_limits<int64_t>::max();

constexpr const char* kRightItem = R"({"id", "shape", "cost", "bytes"})";
constexpr const char* kRightShape = "a list of 1 to 8 integers from 1, such as [512, 512]";

Result<JsonEntry> member(const JsonEntry& object, const char* key, const char* right) {
  const std::string where =
      object.where.empty() ? std::string(key) : fmt::format("{}.{}", object.where, key);
  if (!object.value.contains(key)) {
    return make_status(StatusCode::InvalidArgument, "{}: {} is missing; right is {}", object.file,
                       where, right);
  }
  return JsonEntry{object.value[key], object.file, where};
}

Status read_seconds(const JsonEntry& object, const char* key, const char* right, double& out) {
  const auto entry = member(object, key, right);
  if (!entry) return entry.status();
  const auto seconds = entry->non_negative(right);
  if (seconds) out = *seconds;
  return seconds.status();
}

Status read_shape(const JsonEntry& object, std::vector<uint64_t>& shape) {
  const auto entry = member(object, "shape", kRightShape);
  if (!entry) return entry.status();
  if (!entry->value.is_array()) return entry->error("is no list", kRightShape);
  if (entry->value.empty() || entry->value.size() > PlacedItem::kDimensionsMax) {
    return entry->error("has another length", kRightShape);
  }
  for (size_t i = 0; i < entry->value.size(); ++i) {
    const JsonEntry one{entry->value[i], entry->file, fmt::format("{}[{}]", entry->where, i)};
    const auto size = one.integer(1, kPlacedBytesMax, "an integer from 1");
    if (!size) return size.status();
    shape.push_back(*size);
  }
  return Status::ok();
}

Status read_item(const JsonEntry& entry, PlacedItem& item) {
  if (!entry.value.is_object()) return entry.error("is no object", kRightItem);
  BRAID_RETURN_IF_ERROR(
      check_keys(entry.value, entry.file, entry.where + ".", {"id", "shape", "cost", "bytes"}));
  const auto id = member(entry, "id", "the item's name");
  if (!id) return id.status();
  auto name = id->text("a name that no other item has");
  if (!name) return name.status();
  item.id = std::move(name).value();
  BRAID_RETURN_IF_ERROR(read_shape(entry, item.shape));
  BRAID_RETURN_IF_ERROR(
      read_seconds(entry, "cost", "a time in seconds, such as 0.0015", item.cost_seconds));
  constexpr const char* kRightBytes = "the bytes of the result, an integer from 0";
  const auto bytes = member(entry, "bytes", kRightBytes);
  if (!bytes) return bytes.status();
  const auto count = bytes->integer(0, kPlacedBytesMax, kRightBytes);
  if (count) item.bytes = *count;
  return count.status();
}

Status read_link(const JsonEntry& document, LinearCost& link) {
  if (!document.value.contains("link")) return Status::ok();
  const JsonEntry entry{document.value["link"], document.file, "link"};
  if (!entry.value.is_object()) {
    return entry.error("is no object",
                       R"({"startup_seconds", "seconds_per_byte"}, or no such entry)");
  }
  BRAID_RETURN_IF_ERROR(
      check_keys(entry.value, entry.file, "link.", {"startup_seconds", "seconds_per_byte"}));
  BRAID_RETURN_IF_ERROR(read_seconds(entry, "startup_seconds",
                                     "seconds that each result takes whatever its size",
                                     link.startup_seconds));
  return read_seconds(entry, "seconds_per_byte", "seconds that each byte takes",
                      link.seconds_per_byte);
}

}  // namespace

Result<PlacementInput> parse_placement_input(std::string_view text, std::string_view file) {
  const auto parsed = parse_json_object(text, file);
  if (!parsed) return parsed.status();
  const JsonEntry document{*parsed, file, ""};
  BRAID_RETURN_IF_ERROR(check_keys(*parsed, file, "", {"items", "link"}));
  PlacementInput input;
  BRAID_RETURN_IF_ERROR(read_link(document, input.link));
  const std::string right = fmt::format("a list of {}", kRightItem);
  const auto items = member(document, "items", right.c_str());
  if (!items) return items.status();
  if (!items->value.is_array()) return items->error("is no list", right);
  if (items->value.size() > PlacedItem::kItemsMax) {
    return items->error("is too long", fmt::format("{} items at most", PlacedItem::kItemsMax));
  }
  for (size_t i = 0; i < items->value.size(); ++i) {
    BRAID_RETURN_IF_ERROR(read_item({items->value[i], file, fmt::format("items[{}]", i)},
                                    input.items.emplace_back()));
  }
  if (const Status status = check_placed_items(input.items, input.link); !status) {
    return status.with_context(file);
  }
  return input;
}

Result<PlacementInput> load_placement_input(const std::string& path) {
  const auto text = read_file(path, kPlacementFileBytesMax);
  if (!text) return text.status();
  return parse_placement_input(*text, path);
}

}  // namespace braid
