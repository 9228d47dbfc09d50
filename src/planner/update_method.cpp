// SPDX-License-Identifier: Apache-2.0
#include "planner/update_method.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace braid {
namespace {

struct MethodName {
  UpdateKind kind;
  std::string_view name;
  std::string_view form;  // as users write it
  bool has_period;
};
constexpr std::array<MethodName, 7> kMethods = {{
    {UpdateKind::Sync, "sync", "sync", false},
    {UpdateKind::Sharded, "sharded", "sharded", false},
    {UpdateKind::OdSgd, "od-sgd", "od-sgd", false},
    {UpdateKind::SsdSgd, "ssd-sgd", "ssd-sgd:K", true},
    {UpdateKind::CdSgd, "cd-sgd", "cd-sgd:K", true},
    {UpdateKind::Acco, "acco", "acco", false},
    {UpdateKind::DiLoCo, "diloco", "diloco:H[,overlap=T][,fragments=F]", true},
}};

const MethodName& method_name(UpdateKind kind) {
  return *std::ranges::find(kMethods, kind, &MethodName::kind);
}

Status method_error(std::string_view method, std::string_view why) {
  return make_status(StatusCode::InvalidArgument,
                     "update method '{}': {}; right are {}, with K and H from 1 to {}", method, why,
                     update_method_forms(), kUpdatePeriodMax);
}

std::optional<uint32_t> parse_steps(std::string_view text, uint32_t low, uint32_t high) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < low || value > high) return std::nullopt;
  return value;
}

// "diloco:8,overlap=2": the first word names the method, the others are parameters.
class MethodParser {
 public:
  explicit MethodParser(std::string_view text) : text_(text) {}

  Result<UpdateMethod> parse() {
    size_t comma = std::min(text_.find(','), text_.size());
    BRAID_RETURN_IF_ERROR(parse_name(text_.substr(0, comma)));
    while (comma < text_.size()) {
      const size_t end = std::min(text_.find(',', comma + 1), text_.size());
      BRAID_RETURN_IF_ERROR(parse_parameter(text_.substr(comma + 1, end - comma - 1)));
      comma = end;
    }
    return method_;
  }

 private:
  Status wrong(std::string_view why) const { return method_error(text_, why); }

  Status parse_name(std::string_view word) {
    const size_t colon = word.find(':');
    const auto* const found = std::ranges::find(kMethods, word.substr(0, colon), &MethodName::name);
    if (found == kMethods.end()) return wrong("no method has this name");
    method_.kind = found->kind;
    const bool is_given = colon != std::string_view::npos;
    if (!found->has_period) {
      return is_given ? wrong(fmt::format("{} has no number of steps", found->name)) : Status::ok();
    }
    if (!is_given) return wrong("the number of steps is missing");
    const std::string_view number = word.substr(colon + 1);
    const auto steps = parse_steps(number, 1, kUpdatePeriodMax);
    if (!steps) return wrong(fmt::format("'{}' is no number of steps", number));
    method_.period = *steps;
    return Status::ok();
  }

  Status parse_parameter(std::string_view word) {
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    if (method_.kind != UpdateKind::DiLoCo) {
      return wrong(fmt::format("{} has no parameter", method_name(method_.kind).name));
    }
    if (name == "overlap") return set(name, value, 0, has_overlap_, method_.overlap);
    if (name == "fragments") return set(name, value, 1, has_fragments_, method_.fragments);
    return wrong(fmt::format("'{}' is no parameter", name));
  }

  // Neither is ever more than the steps of a period: of a fragment one exchange at a time is in
  // flight, and in a step begins that of one fragment.
  Status set(std::string_view name, std::string_view value, uint32_t low, bool& is_given,
             uint32_t& parameter) {
    if (is_given) return wrong(fmt::format("{} is given twice", name));
    is_given = true;
    const auto number = parse_steps(value, low, method_.period);
    if (!number) {
      return wrong(
          fmt::format("{}: '{}' is no number from {} to {}", name, value, low, method_.period));
    }
    parameter = *number;
    return Status::ok();
  }

  const std::string_view text_;
  UpdateMethod method_;
  bool has_overlap_ = false;
  bool has_fragments_ = false;
};

bool is_parameter(std::string_view word) { return word.find('=') < word.find(':'); }

// Each method with its parameters.
std::vector<std::string_view> split_methods(std::string_view text) {
  std::vector<std::string_view> methods;
  size_t method_begin = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (is_parameter(text.substr(begin, end - begin)) && !methods.empty()) {
      methods.back() = text.substr(method_begin, end - method_begin);
    } else {
      method_begin = begin;
      methods.push_back(text.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  return methods;
}

}  // namespace

Result<std::vector<UpdateMethod>> parse_update_methods(std::string_view text) {
  std::vector<UpdateMethod> methods;
  for (const std::string_view one : split_methods(text)) {
    const auto method = MethodParser(one).parse();
    if (!method) return method.status();
    if (std::ranges::count(methods, *method) > 0) {
      return make_status(StatusCode::InvalidArgument,
                         "update method '{}' stands twice; right is each of them once", one);
    }
    methods.push_back(*method);
  }
  return methods;
}

std::string to_string(const UpdateMethod& method) {
  const MethodName& row = method_name(method.kind);
  std::string text(row.name);
  if (row.has_period) text += fmt::format(":{}", method.period);
  if (method.overlap != 0) text += fmt::format(",overlap={}", method.overlap);
  if (method.fragments != 1) text += fmt::format(",fragments={}", method.fragments);
  return text;
}

std::string update_method_forms() {
  std::string forms;
  for (const MethodName& row : kMethods) {
    if (!forms.empty()) forms += ", ";
    forms += row.form;
  }
  return forms;
}

}  // namespace braid
