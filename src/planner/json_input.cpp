// SPDX-License-Identifier: Apache-2.0
#include "planner/json_input.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include <fmt/ranges.h>

namespace braid {
namespace {

using nlohmann::json;

constexpr int kDepthMax = 8;  // ours need 7

// Sees every key before the parser forgets the first of two equal ones.
class KeyWatch {
 public:
  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    if (event == json::parse_event_t::key && !keys_.back().insert(parsed).second &&
        duplicate.empty()) {
      duplicate = parsed.get<std::string>();
    }
    if (depth > kDepthMax) too_deep = true;
    return !too_deep;
  }

  std::string duplicate;
  bool too_deep = false;

 private:
  std::vector<std::set<std::string>> keys_;
};

// "[json.exception.parse_error.101] parse error at line 1, column 2: …" without its number.
std::string grammar_error(const json::exception& error) {
  std::string message = error.what();
  if (const size_t end = message.find("] "); message.starts_with('[') && end != std::string::npos) {
    message.erase(0, end + 2);
  }
  if (message.find("invalid literal") != std::string::npos) {
    message += " (JSON has numbers, strings, true, false and null; no NaN, no Infinity)";
  }
  if (message.find("number overflow") != std::string::npos) {
    message += ": larger than any double";
  }
  return message;
}

}  // namespace

Result<json> parse_json_object(std::string_view text, std::string_view file) {
  KeyWatch watch;
  json document;
  try {
    document = json::parse(text, std::ref(watch));
  } catch (const json::exception& error) {
    return make_status(StatusCode::InvalidArgument, "{}: {}", file, grammar_error(error));
  }
  if (watch.too_deep) {
    return make_status(StatusCode::InvalidArgument, "{}: nested deeper than {} levels", file,
                       kDepthMax);
  }
  if (!watch.duplicate.empty()) {
    return make_status(StatusCode::InvalidArgument, "{}: {} stands twice in one object", file,
                       shown(watch.duplicate));
  }
  if (!document.is_object()) {
    return make_status(StatusCode::InvalidArgument, "{}: {} is no object; {{…}} is right", file,
                       shown(document));
  }
  return document;
}

std::string shown(const json& value) {
  constexpr size_t kLengthMax = 40;
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  if (value.is_object()) return "an object";
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kLengthMax) text = text.substr(0, kLengthMax) + "…";
  return text;
}

Status JsonEntry::error(std::string_view what, std::string_view right) const {
  return make_status(StatusCode::InvalidArgument, "{}: {}: {} {}; right is {}", file, where,
                     shown(value), what, right);
}

Result<double> JsonEntry::number(std::string_view right) const {
  if (!value.is_number()) return error("is no number", right);
  const auto number = value.get<double>();
  if (!std::isfinite(number)) return error("is not finite", right);
  return number;
}

Result<double> JsonEntry::non_negative(std::string_view right) const {
  auto parsed = number(right);
  if (parsed && *parsed < 0) return error("is negative", right);
  return parsed;
}

Result<uint64_t> JsonEntry::integer(uint64_t min, uint64_t max, std::string_view right) const {
  if (value.is_number_float()) return error("is no integer, or too large for one", right);
  if (!value.is_number()) return error("is no number", right);
  if (!value.is_number_unsigned()) return error("is negative", right);
  const auto number = value.get<uint64_t>();
  if (number < min) return error("is too small", right);
  if (number > max) return error("is too large", right);
  return number;
}

Result<std::string> JsonEntry::text(std::string_view right) const {
  if (!value.is_string()) return error("is no string", right);
  auto text = value.get<std::string>();
  if (text.empty()) return error("is empty", right);
  return text;
}

Status check_keys(const json& object, std::string_view file, std::string_view where,
                  std::initializer_list<std::string_view> known) {
  for (const auto& entry : object.items()) {
    const std::string& key = entry.key();
    if (key.starts_with('_') || std::find(known.begin(), known.end(), key) != known.end()) continue;
    return make_status(StatusCode::InvalidArgument,
                       "{}: {}{} is not known; right are {}, and anything that begins with _", file,
                       where, shown(key), fmt::join(known, ", "));
  }
  return Status::ok();
}

}  // namespace braid
