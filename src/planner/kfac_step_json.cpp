// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <unordered_set>

#include "base/read_file.h"
#include "planner/json_input.h"
#include "planner/kfac_step.h"

namespace braid {
namespace {

constexpr size_t kKfacFileBytesMax = size_t{64} << 20;
// All sums over a step fit 63 bits.
constexpr uint64_t kLayerBytesMax = std::numeric_limits<int64_t>::max() / KfacStep::kLayersMax;
constexpr uint64_t kElementBytesMax = 8;

constexpr const char* kRightLayer =
    R"({"name", "forward", "backward", "gradient_bytes"}, and "a" and "g" if it has factors)";
constexpr const char* kRightFactor = R"({"dimension", "compute", "invert"})";

// An entry of `object`, which has it.
Result<JsonEntry> entry_of(const JsonEntry& object, const char* key, const std::string& right) {
  const std::string where =
      object.where.empty() ? std::string(key) : fmt::format("{}.{}", object.where, key);
  if (!object.value.contains(key)) {
    return make_status(StatusCode::InvalidArgument, "{}: {} is missing; right is {}", object.file,
                       where, right);
  }
  return JsonEntry{object.value[key], object.file, where};
}

Status read_time(const JsonEntry& object, const char* key, double& out) {
  constexpr const char* kRightTime = "a time in seconds, such as 0.0015";
  const auto entry = entry_of(object, key, kRightTime);
  if (!entry) return entry.status();
  const auto seconds = entry->non_negative(kRightTime);
  if (seconds) out = *seconds;
  return seconds.status();
}

Status read_count(const JsonEntry& object, const char* key, uint64_t min, uint64_t max,
                  uint64_t& out) {
  const std::string right = fmt::format("an integer from {} to {}", min, max);
  const auto entry = entry_of(object, key, right);
  if (!entry) return entry.status();
  const auto count = entry->integer(min, max, right);
  if (count) out = *count;
  return count.status();
}

Status read_factor(const JsonEntry& layer, const char* key,
                   std::optional<KfacStep::Factor>& factor) {
  if (!layer.value.contains(key)) return Status::ok();
  const JsonEntry entry{layer.value[key], layer.file, fmt::format("{}.{}", layer.where, key)};
  if (!entry.value.is_object()) return entry.error("is no object", kRightFactor);
  BRAID_RETURN_IF_ERROR(
      check_keys(entry.value, entry.file, entry.where + ".", {"dimension", "compute", "invert"}));
  KfacStep::Factor read;
  BRAID_RETURN_IF_ERROR(read_count(entry, "dimension", 1, KfacStep::kDimensionMax, read.dimension));
  BRAID_RETURN_IF_ERROR(read_time(entry, "compute", read.compute_seconds));
  BRAID_RETURN_IF_ERROR(read_time(entry, "invert", read.invert_seconds));
  factor = read;
  return Status::ok();
}

Status read_layer(const JsonEntry& entry, KfacStep::Layer& layer) {
  if (!entry.value.is_object()) return entry.error("is no object", kRightLayer);
  BRAID_RETURN_IF_ERROR(check_keys(entry.value, entry.file, entry.where + ".",
                                   {"name", "forward", "backward", "gradient_bytes", "a", "g"}));
  constexpr const char* kRightName = "a name that no other layer has";
  const auto name = entry_of(entry, "name", kRightName);
  if (!name) return name.status();
  auto text = name->text(kRightName);
  if (!text) return text.status();
  layer.name = std::move(text).value();
  BRAID_RETURN_IF_ERROR(read_time(entry, "forward", layer.forward_seconds));
  BRAID_RETURN_IF_ERROR(read_time(entry, "backward", layer.backward_seconds));
  BRAID_RETURN_IF_ERROR(
      read_count(entry, "gradient_bytes", 0, kLayerBytesMax, layer.gradient_bytes));
  BRAID_RETURN_IF_ERROR(read_factor(entry, "a", layer.a));
  BRAID_RETURN_IF_ERROR(read_factor(entry, "g", layer.g));
  if (layer.a.has_value() != layer.g.has_value()) {
    return entry.error(layer.a ? "has a, but no g" : "has g, but no a", "both factors, or none");
  }
  return Status::ok();
}

Status read_layers(const JsonEntry& document, KfacStep& step) {
  const std::string right = fmt::format("a list of {}", kRightLayer);
  const auto layers = entry_of(document, "layers", right);
  if (!layers) return layers.status();
  if (!layers->value.is_array()) return layers->error("is no list", right);
  if (layers->value.size() > KfacStep::kLayersMax) {
    return layers->error("is too long", fmt::format("{} layers at most", KfacStep::kLayersMax));
  }
  std::unordered_set<std::string> names;
  bool has_factors = false;
  for (size_t i = 0; i < layers->value.size(); ++i) {
    const JsonEntry entry{layers->value[i], layers->file, fmt::format("layers[{}]", i)};
    KfacStep::Layer& layer = step.layers.emplace_back();
    BRAID_RETURN_IF_ERROR(read_layer(entry, layer));
    if (!names.insert(layer.name).second) {
      const JsonEntry name{entry.value["name"], entry.file, entry.where + ".name"};
      return name.error("stands twice", "a name that no other layer has");
    }
    has_factors = has_factors || layer.a.has_value();
  }
  if (!has_factors) return layers->error("has no factors", R"(a layer with "a" and "g")");
  if (!std::isfinite(step.passes_seconds() + step.factors_seconds())) {
    return layers->error("has times without a finite sum", "times in seconds, such as 0.0015");
  }
  return Status::ok();
}

}  // namespace

Result<KfacStep> parse_kfac_step(std::string_view text, std::string_view file) {
  const auto parsed = parse_json_object(text, file);
  if (!parsed) return parsed.status();
  const JsonEntry document{*parsed, file, ""};
  BRAID_RETURN_IF_ERROR(check_keys(*parsed, file, "", {"model", "layers", "element_bytes"}));
  KfacStep step;
  if (parsed->contains("model")) {
    auto model = JsonEntry{(*parsed)["model"], file, "model"}.text("the model's name");
    if (!model) return model.status();
    step.model = std::move(model).value();
  }
  if (parsed->contains("element_bytes")) {
    BRAID_RETURN_IF_ERROR(
        read_count(document, "element_bytes", 1, kElementBytesMax, step.element_bytes));
  }
  BRAID_RETURN_IF_ERROR(read_layers(document, step));
  if (const Status status = check_placed_items(inverses_of(step), {}); !status) {
    return status.with_context(file);
  }
  return step;
}

Result<KfacStep> load_kfac_step(const std::string& path) {
  const auto text = read_file(path, kKfacFileBytesMax);
  if (!text) return text.status();
  return parse_kfac_step(*text, path);
}

}  // namespace braid
