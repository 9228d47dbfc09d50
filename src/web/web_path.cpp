// SPDX-License-Identifier: Apache-2.0
#include "web/web_path.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <arpa/inet.h>

namespace braid {
namespace {

constexpr std::string_view kNamePart = "NAME";

std::optional<std::string> decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const std::string_view digits = text.substr(i + 1, 2);
    uint8_t byte = 0;
    const auto parsed = std::from_chars(digits.begin(), digits.end(), byte, 16);
    if (digits.size() != 2 || parsed.ec != std::errc() || parsed.ptr != digits.end())
      return std::nullopt;
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

}  // namespace

std::optional<std::vector<std::string>> split_path(std::string_view path) {
  if (!path.starts_with('/')) return std::nullopt;
  path.remove_prefix(1);
  std::vector<std::string> parts;
  if (path.empty()) return parts;
  while (true) {
    const size_t end = path.find('/');
    auto part = decode(path.substr(0, end));
    if (!part) return std::nullopt;
    parts.push_back(std::move(*part));
    if (end == std::string_view::npos) return parts;
    path.remove_prefix(end + 1);
  }
}

std::optional<std::vector<std::string>> match_path(std::string_view pattern,
                                                   const std::vector<std::string>& path) {
  const auto wanted = split_path(pattern);
  if (!wanted || wanted->size() != path.size()) return std::nullopt;
  std::vector<std::string> names;
  for (size_t i = 0; i < path.size(); ++i) {
    if ((*wanted)[i] == kNamePart && !path[i].empty())
      names.push_back(path[i]);
    else if ((*wanted)[i] != path[i])
      return std::nullopt;
  }
  return names;
}

uint32_t query_number(std::string_view query, std::string_view name, uint32_t usual, uint32_t min,
                      uint32_t max) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos || pair.substr(0, equals) != name) continue;
    const std::string_view digits = pair.substr(equals + 1);
    uint32_t number = 0;
    const auto parsed = std::from_chars(digits.begin(), digits.end(), number);
    if (parsed.ec == std::errc() && parsed.ptr == digits.end()) return std::clamp(number, min, max);
  }
  return usual;
}

std::string host_name(std::string_view header) {
  if (header.starts_with('[')) {
    header = header.substr(1, header.find(']') - 1);
  } else {
    header = header.substr(0, header.find(':'));
  }
  std::string name(header);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return name;
}

bool is_numeric_address(const std::string& host) {
  std::array<uint8_t, sizeof(in6_addr)> parsed{};
  return ::inet_pton(AF_INET, host.c_str(), parsed.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), parsed.data()) == 1;
}

}  // namespace braid
