// SPDX-License-Identifier: Apache-2.0
#include "braidctl/figure_file.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "planner/json_input.h"

namespace braid {
namespace {

using nlohmann::json;

constexpr uint64_t kColumnsMax = 16;
constexpr uint64_t kPanelPixelsMin = 80;
constexpr uint64_t kPanelPixelsMax = 4000;
constexpr size_t kPanelsMax = 256;
constexpr size_t kGroupsMax = 256;
constexpr size_t kSeriesMax = 64;
constexpr size_t kPointsMax = 1'000'000;  // of a line
constexpr size_t kSpansMax = 100'000;     // of one name
constexpr double kValueMax = 1e100;       // what is made of several stays finite

constexpr const char* kRightText = "a text that is not empty";
constexpr const char* kRightEnd = "a number from 0";
constexpr const char* kRightKind = "bars, stacked_bars, lines or spans";
constexpr std::array<std::pair<std::string_view, Figure::Kind>, 4> kKinds = {
    {{"bars", Figure::Kind::Bars},
     {"stacked_bars", Figure::Kind::StackedBars},
     {"lines", Figure::Kind::Lines},
     {"spans", Figure::Kind::Spans}}};

// An object of the document. What is read of it says what is wrong, and where.
class Fields {
 public:
  // `where` is empty for the document itself.
  Fields(const json& object, std::string_view file, std::string where)
      : object_(object), file_(file), where_(std::move(where)) {}

  Status check(std::initializer_list<std::string_view> known) const {
    if (!object_.is_object()) return self().error("is no object", "{…}");
    return check_keys(object_, file_, where_.empty() ? where_ : where_ + ": ", known);
  }
  bool has(const char* key) const { return object_.contains(key); }
  JsonEntry entry(const char* key) const { return {object_[key], file_, path(key)}; }
  JsonEntry entry(const char* key, size_t i) const {
    return {object_[key][i], file_, fmt::format("{}[{}]", path(key), i)};
  }

  // Those that may be missing keep what `into` holds.
  Status read(const char* key, std::string& into) const {
    if (!has(key)) return Status::ok();
    auto text = entry(key).text(kRightText);
    if (!text) return text.status();
    into = std::move(text).value();
    return Status::ok();
  }
  Status read(const char* key, bool& into) const {
    if (!has(key)) return Status::ok();
    if (!object_[key].is_boolean()) return entry(key).error("is neither", "true or false");
    into = object_[key].get<bool>();
    return Status::ok();
  }
  Status read_pixels(const char* key, double& into) const {
    if (!has(key)) return Status::ok();
    const auto pixels = entry(key).integer(
        kPanelPixelsMin, kPanelPixelsMax,
        fmt::format("a number of pixels from {} to {}", kPanelPixelsMin, kPanelPixelsMax));
    if (!pixels) return pixels.status();
    into = static_cast<double>(*pixels);
    return Status::ok();
  }
  Status read(const char* key, std::vector<std::string>& into, size_t most) const {
    if (!has(key)) return Status::ok();
    const auto count = length(key, most);
    if (!count) return count.status();
    for (size_t i = 0; i < *count; ++i) {
      auto text = entry(key, i).text(kRightText);
      if (!text) return text.status();
      into.push_back(std::move(text).value());
    }
    return Status::ok();
  }

  // Of a list that must be there, 1 to `most` long.
  Result<size_t> length(const char* key, size_t most) const {
    const std::string right = fmt::format("a list of 1 to {}", most);
    BRAID_RETURN_IF_ERROR(require(key, right));
    const json& list = object_[key];
    if (!list.is_array()) return entry(key).error("is no list", right);
    if (list.empty() || list.size() > most) return entry(key).error("has not the length", right);
    return list.size();
  }
  Status require(const char* key, std::string_view right) const {
    if (has(key)) return Status::ok();
    return make_status(StatusCode::InvalidArgument, "{}: {} is missing; right is {}", file_,
                       path(key), right);
  }

 private:
  JsonEntry self() const { return {object_, file_, where_}; }
  std::string path(std::string_view key) const {
    return where_.empty() ? std::string(key) : fmt::format("{}.{}", where_, key);
  }

  const json& object_;
  const std::string_view file_;
  const std::string where_;
};

Result<double> value_of(const JsonEntry& entry, std::string_view right) {
  auto number = entry.number(right);
  if (number && std::abs(*number) > kValueMax) return entry.error("is too large", right);
  return number;
}

class PanelReader {
 public:
  explicit PanelReader(const JsonEntry& entry)
      : file_(entry.file), where_(entry.where), fields_(entry.value, entry.file, entry.where) {}

  Result<Figure::Panel> read() {
    BRAID_RETURN_IF_ERROR(
        fields_.check({"title", "note", "kind", "groups", "x_title", "x_is_logarithmic",
                       "y_is_logarithmic", "x_end", "series", "limit"}));
    BRAID_RETURN_IF_ERROR(fields_.require("title", kRightText));
    BRAID_RETURN_IF_ERROR(fields_.read("title", panel_.title));
    BRAID_RETURN_IF_ERROR(fields_.read("note", panel_.note));
    BRAID_RETURN_IF_ERROR(fields_.read("x_title", panel_.x_title));
    BRAID_RETURN_IF_ERROR(read_kind());
    BRAID_RETURN_IF_ERROR(fields_.read("x_is_logarithmic", panel_.x_is_logarithmic));
    BRAID_RETURN_IF_ERROR(fields_.read("y_is_logarithmic", panel_.y_is_logarithmic));
    const auto count = fields_.length("series", kSeriesMax);
    if (!count) return count.status();
    for (size_t i = 0; i < *count; ++i) BRAID_RETURN_IF_ERROR(read_series(i));
    BRAID_RETURN_IF_ERROR(read_limit());
    return std::move(panel_);
  }

 private:
  bool has_lines() const { return panel_.kind == Figure::Kind::Lines; }
  bool has_spans() const { return panel_.kind == Figure::Kind::Spans; }

  Status read_kind() {
    BRAID_RETURN_IF_ERROR(fields_.require("kind", kRightKind));
    const auto name = fields_.entry("kind").text(kRightKind);
    if (!name) return name.status();
    const auto kind = std::find_if(kKinds.begin(), kKinds.end(),
                                   [&](const auto& one) { return one.first == *name; });
    if (kind == kKinds.end()) return fields_.entry("kind").error("is not known", kRightKind);
    panel_.kind = kind->second;
    if (has_lines()) {
      if (fields_.has("groups")) return fields_.entry("groups").error("is not for lines", "none");
    } else {
      BRAID_RETURN_IF_ERROR(fields_.require(
          "groups", has_spans() ? "the names of the lanes" : "the names below the bars"));
      for (const char* key : {"x_is_logarithmic", "y_is_logarithmic"}) {
        if (fields_.has(key)) return fields_.entry(key).error("is for lines only", "none");
      }
    }
    BRAID_RETURN_IF_ERROR(read_end());
    return fields_.read("groups", panel_.groups, kGroupsMax);
  }

  Status read_series(size_t i) {
    const JsonEntry entry = fields_.entry("series", i);
    const Fields fields(entry.value, file_, entry.where);
    const char* points = has_lines() ? "points" : has_spans() ? "spans" : "values";
    BRAID_RETURN_IF_ERROR(fields.check({"name", points}));
    Figure::Series series;
    BRAID_RETURN_IF_ERROR(fields.require("name", kRightText));
    BRAID_RETURN_IF_ERROR(fields.read("name", series.name));
    for (const Figure::Series& other : panel_.series) {
      if (other.name == series.name)
        return fields.entry("name").error("stands twice", "a name that no other series has");
    }
    BRAID_RETURN_IF_ERROR(has_lines()   ? read_points(fields, series)
                          : has_spans() ? read_spans(fields, series)
                                        : read_values(fields, series));
    panel_.series.push_back(std::move(series));
    return Status::ok();
  }

  Status read_values(const Fields& fields, Figure::Series& series) const {
    const auto count = fields.length("values", kGroupsMax);
    if (!count) return count.status();
    if (*count != panel_.groups.size()) {
      return fields.entry("values").error(
          "does not fit",
          fmt::format("one value, or null, for each of the {} groups", panel_.groups.size()));
    }
    for (size_t i = 0; i < *count; ++i) {
      const JsonEntry entry = fields.entry("values", i);
      if (entry.value.is_null()) continue;
      constexpr const char* kRightValue = "a number from 0, or null for no bar";
      const auto value = value_of(entry, kRightValue);
      if (!value) return value.status();
      if (*value < 0) return entry.error("is negative", kRightValue);
      series.points.push_back({static_cast<double>(i), *value});
    }
    return Status::ok();
  }

  Status read_spans(const Fields& fields, Figure::Series& series) const {
    const auto count = fields.length("spans", kSpansMax);
    if (!count) return count.status();
    for (size_t i = 0; i < *count; ++i) {
      const JsonEntry entry = fields.entry("spans", i);
      const Fields span(entry.value, file_, entry.where);
      BRAID_RETURN_IF_ERROR(span.check({"lane", "begin", "end", "text"}));
      Figure::Span read;
      const std::string right_lane =
          fmt::format("0 to {}, one of groups", panel_.groups.size() - 1);
      BRAID_RETURN_IF_ERROR(span.require("lane", right_lane));
      const auto lane = span.entry("lane").integer(0, panel_.groups.size() - 1, right_lane);
      if (!lane) return lane.status();
      read.lane = *lane;
      for (const auto& [key, into] : {std::pair{"begin", &read.begin}, {"end", &read.end}}) {
        BRAID_RETURN_IF_ERROR(span.require(key, kRightEnd));
        const auto value = value_of(span.entry(key), kRightEnd);
        if (!value) return value.status();
        if (*value < 0) return span.entry(key).error("is negative", kRightEnd);
        *into = *value;
      }
      if (read.end < read.begin)
        return span.entry("end").error("is before the begin", "the begin or later");
      BRAID_RETURN_IF_ERROR(span.read("text", read.text));
      series.spans.push_back(std::move(read));
    }
    return Status::ok();
  }

  Status read_end() {
    if (!fields_.has("x_end")) return Status::ok();
    const JsonEntry entry = fields_.entry("x_end");
    if (!has_spans()) return entry.error("is for spans only", "none");
    const auto value = value_of(entry, kRightEnd);
    if (!value) return value.status();
    if (*value < 0) return entry.error("is negative", kRightEnd);
    panel_.x_end = *value;
    return Status::ok();
  }

  Status read_points(const Fields& fields, Figure::Series& series) const {
    const auto count = fields.length("points", kPointsMax);
    if (!count) return count.status();
    for (size_t i = 0; i < *count; ++i) {
      const JsonEntry pair = fields.entry("points", i);
      if (!pair.value.is_array() || pair.value.size() != 2)
        return pair.error("is no point", "[x, y]");
      const auto x = coordinate(pair, 0, panel_.x_is_logarithmic);
      if (!x) return x.status();
      const auto y = coordinate(pair, 1, panel_.y_is_logarithmic);
      if (!y) return y.status();
      series.points.push_back({*x, *y});
    }
    return Status::ok();
  }

  Result<double> coordinate(const JsonEntry& pair, size_t i, bool is_logarithmic) const {
    const JsonEntry entry = {pair.value[i], file_, fmt::format("{}[{}]", pair.where, i)};
    constexpr const char* kRightLogarithm = "a number above 0, for a logarithmic axis";
    auto number = value_of(entry, is_logarithmic ? kRightLogarithm : "a number");
    if (number && is_logarithmic && *number <= 0)
      return entry.error("has no logarithm", kRightLogarithm);
    return number;
  }

  Status read_limit() {
    if (!fields_.has("limit")) return Status::ok();
    const JsonEntry entry = fields_.entry("limit");
    if (has_spans()) return entry.error("is not for spans", "none");
    const Fields fields(entry.value, file_, entry.where);
    BRAID_RETURN_IF_ERROR(fields.check({"value", "text"}));
    BRAID_RETURN_IF_ERROR(fields.require("value", "a number above 0"));
    BRAID_RETURN_IF_ERROR(fields.require("text", kRightText));
    const auto value = value_of(fields.entry("value"), "a number above 0");
    if (!value) return value.status();
    if (*value <= 0) return fields.entry("value").error("is no limit", "a number above 0");
    Figure::Limit limit;
    limit.value = *value;
    BRAID_RETURN_IF_ERROR(fields.read("text", limit.text));
    panel_.limit = std::move(limit);
    return Status::ok();
  }

  const std::string_view file_;
  const std::string where_;
  const Fields fields_;
  Figure::Panel panel_;
};

}  // namespace

Result<Figure> parse_figure(std::string_view text, std::string_view file) {
  const auto document = parse_json_object(text, file);
  if (!document) return document.status();
  const Fields fields(*document, file, "");
  BRAID_RETURN_IF_ERROR(
      fields.check({"title", "notes", "columns", "panel_width", "panel_height", "panels"}));
  Figure figure;
  BRAID_RETURN_IF_ERROR(fields.read("title", figure.title));
  BRAID_RETURN_IF_ERROR(fields.read("notes", figure.notes, kPanelsMax));
  if (fields.has("columns")) {
    const auto columns = fields.entry("columns").integer(
        1, kColumnsMax, fmt::format("how many panels a row has, 1 to {}", kColumnsMax));
    if (!columns) return columns.status();
    figure.columns = static_cast<uint32_t>(*columns);
  }
  BRAID_RETURN_IF_ERROR(fields.read_pixels("panel_width", figure.panel_width));
  BRAID_RETURN_IF_ERROR(fields.read_pixels("panel_height", figure.panel_height));
  const auto count = fields.length("panels", kPanelsMax);
  if (!count) return count.status();
  for (size_t i = 0; i < *count; ++i) {
    auto panel = PanelReader(fields.entry("panels", i)).read();
    if (!panel) return panel.status();
    figure.panels.push_back(std::move(panel).value());
  }
  return figure;
}

}  // namespace braid
