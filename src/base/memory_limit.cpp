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

// The number behind `name` in a file of lines "name number".
std::optional<uint64_t> find_number(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    std::string number;
    if (word == name && file >> number) return parse_number(number);
  }
  return std::nullopt;
}

uint64_t machine_bytes(const std::string& root, std::string_view name) {
  const auto kib = find_number(root + "/proc/meminfo", name);
  return kib ? *kib << 10 : UINT64_MAX;
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

// This process's groups that count its memory: `found` gets the folder of the hierarchy, the group
// in it, and whether it is of version 2.
template <typename Found>
void find_groups(const std::string& root, const Found& found) {
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
      found(root + "/sys/fs/cgroup", group, true);
    } else if (controllers.find(",memory,") != std::string::npos) {
      found(root + "/sys/fs/cgroup/memory", group, false);
    }
  }
}

}  // namespace

uint64_t memory_limit(const std::string& root) {
  uint64_t least = machine_bytes(root, "MemTotal:");
  find_groups(root, [&least](const std::string& hierarchy, const std::string& group, bool is_new) {
    least = std::min(
        least, group_bytes(hierarchy, group, is_new ? "memory.max" : "memory.limit_in_bytes"));
  });
  return least;
}

uint64_t shared_memory_used(const std::string& root) {
  std::optional<uint64_t> used;
  find_groups(root, [&used](const std::string& hierarchy, const std::string& group, bool is_new) {
    const auto here =
        find_number(hierarchy + group + "/memory.stat", is_new ? "shmem" : "total_shmem");
    if (here) used = *here;
  });
  return used ? *used : machine_bytes(root, "Shmem:");
}

}  // namespace braid
