// SPDX-License-Identifier: Apache-2.0
#include "base/memory_limit.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string_view>

namespace braid {
namespace {

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest == text.data()) return std::nullopt;  // "max" is no limit
  return number;
}

uint64_t machine_bytes(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view kName = "MemTotal:";
    if (!line.starts_with(kName)) continue;
    const std::string_view rest = std::string_view(line).substr(kName.size());
    const auto kib = parse_number(rest.substr(std::min(rest.find_first_not_of(' '), rest.size())));
    if (kib) return *kib << 10;
  }
  return UINT64_MAX;
}

// The least limit of a group and of those that it is in.
uint64_t group_bytes(const std::string& hierarchy, std::string group, const char* file_name) {
  uint64_t least = UINT64_MAX;
  while (true) {
    std::ifstream file(hierarchy + group + "/" + file_name);
    std::string text;
    if (file >> text) least = std::min(least, parse_number(text).value_or(UINT64_MAX));
    if (group.empty()) return least;
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

}  // namespace

uint64_t memory_limit(const std::string& root) {
  uint64_t least = machine_bytes(root);
  // Lines "0::/group" (version 2) and "4:memory:/group" (version 1).
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string group = line.substr(second + 1);
    if (group == "/") group.clear();
    if (controllers == ",,") {
      least = std::min(least, group_bytes(root + "/sys/fs/cgroup", group, "memory.max"));
    } else if (controllers.find(",memory,") != std::string::npos) {
      least = std::min(least,
                       group_bytes(root + "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
    }
  }
  return least;
}

}  // namespace braid
