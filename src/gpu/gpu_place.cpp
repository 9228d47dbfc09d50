// SPDX-License-Identifier: Apache-2.0
#include "gpu/gpu_place.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/read_file.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// "/sys/devices/pci0000:16/0000:16:01.0/0000:17:00.0"; empty: there is no such device.
fs::path device_path(const fs::path& link) {
  std::error_code error;
  fs::path path = fs::canonical(link, error);
  return error ? fs::path() : path;
}

int32_t numa_node_at(const fs::path& device) {
  const auto text = read_file(device / "numa_node", 16);
  if (!text) return -1;
  int32_t node = -1;
  for (const char c : *text) {
    if (c < '0' || c > '9') break;
    node = std::max(node, 0) * 10 + (c - '0');
  }
  return node;
}

// How many bridges below the same root both devices hang on, the root included; 0: none.
size_t common_bridges(const fs::path& one, const fs::path& other) {
  size_t bridges = 0;
  bool is_below_root = false;
  auto i = one.begin(), j = other.begin();
  for (; i != one.end() && j != other.end() && *i == *j; ++i, ++j) {
    is_below_root = is_below_root || i->native().starts_with("pci");
    bridges += is_below_root ? 1 : 0;
  }
  return bridges;
}

}  // namespace

int32_t numa_node_of(const std::string& sys, const std::string& pci) {
  return numa_node_at(fs::path(sys) / "bus/pci/devices" / pci);
}

std::vector<std::string> nearest_rails(const std::string& sys, const std::string& pci,
                                       const std::vector<std::string>& rails) {
  const fs::path gpu = device_path(fs::path(sys) / "bus/pci/devices" / pci);
  if (gpu.empty()) return {};
  const int32_t node = numa_node_at(gpu);
  std::vector<std::string> nearest;
  size_t best = 1;  // 0: another NUMA node's, or nobody knows; 1: the same one's; else by bridges
  for (const std::string& rail : rails) {
    const fs::path device = device_path(fs::path(sys) / "class/net" / rail / "device");
    if (device.empty()) continue;
    const size_t bridges = common_bridges(gpu, device);
    const bool is_of_node = node >= 0 && numa_node_at(device) == node;
    const size_t nearness = bridges != 0 ? 1 + bridges : is_of_node ? 1 : 0;
    if (nearness < best) continue;
    if (nearness > best) nearest.clear();
    best = nearness;
    nearest.push_back(rail);
  }
  return nearest;
}

}  // namespace braid
