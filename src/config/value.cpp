// SPDX-License-Identifier: Apache-2.0
#include "config/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <optional>

#include <fmt/ranges.h>

#include "base/checked.h"

namespace braid {
namespace {

struct ByteUnit {
  std::string_view name;
  uint64_t bytes;
};
// Largest first.
constexpr std::array<ByteUnit, 4> kByteUnits = {
    {{"TiB", 1ull << 40}, {"GiB", 1ull << 30}, {"MiB", 1ull << 20}, {"KiB", 1ull << 10}}};

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Nothing if the digits do not fit in 64 bits.
std::optional<uint64_t> to_number(std::string_view digits) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

Result<uint64_t> parse_integer(std::string_view text, uint64_t min, uint64_t max) {
  if (!is_number(text)) {
    return make_status(StatusCode::InvalidArgument,
                       "'{}' is not a whole number; use one from {} to {}", text, min, max);
  }
  const auto value = to_number(text);
  if (!value || *value < min || *value > max) {
    return make_status(StatusCode::InvalidArgument, "{} is out of range; use {} to {}", text, min,
                       max);
  }
  return *value;
}

Result<uint64_t> parse_bytes(std::string_view text, uint64_t min, uint64_t max) {
  const std::string range = fmt::format("{} to {}", format_bytes(min), format_bytes(max));
  uint64_t unit = 1;
  std::string_view digits = text;
  for (const ByteUnit& candidate : kByteUnits) {
    if (!text.ends_with(candidate.name)) continue;
    unit = candidate.bytes;
    digits.remove_suffix(candidate.name.size());
    if (digits.ends_with(' ')) digits.remove_suffix(1);
    break;
  }
  if (!is_number(digits)) {
    return make_status(StatusCode::InvalidArgument,
                       "'{}' is not a size; use a whole number of bytes, or one with KiB, MiB or "
                       "GiB, from {}",
                       text, range);
  }
  const auto number = to_number(digits);
  const auto bytes = number ? (CheckedNumber(*number) * unit).value() : std::nullopt;
  if (!bytes || *bytes < min || *bytes > max) {
    return make_status(StatusCode::InvalidArgument, "{} is out of range; use {}", text, range);
  }
  return *bytes;
}

std::string format_bytes(uint64_t bytes) {
  for (const ByteUnit& unit : kByteUnits) {
    if (bytes >= unit.bytes && bytes % unit.bytes == 0) {
      return fmt::format("{}{}", bytes / unit.bytes, unit.name);
    }
  }
  return std::to_string(bytes);
}

std::vector<std::string> split_list(std::string_view text) {
  text = trim(text);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = trim(text.substr(1, text.size() - 2));
  }
  std::vector<std::string> elements;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    elements.emplace_back(trim(text.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) elements.emplace_back();  // "a," has an empty last element
  }
  return elements;
}

std::string format_list(const std::vector<std::string>& elements) {
  return fmt::format("[{}]", fmt::join(elements, ", "));
}

}  // namespace braid
