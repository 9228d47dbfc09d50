// SPDX-License-Identifier: Apache-2.0
#include "coordinator/racks.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace braid {

void order_by_racks(std::vector<MemberNode>& nodes) {
  std::unordered_map<std::string, size_t> order;
  for (const MemberNode& node : nodes) {
    if (node.rack.empty()) return;
    order.try_emplace(node.rack, order.size());
  }
  std::stable_sort(nodes.begin(), nodes.end(), [&](const MemberNode& a, const MemberNode& b) {
    return order.at(a.rack) < order.at(b.rack);
  });
}

std::optional<uint32_t> nodes_per_rack(std::span<const MemberNode> nodes) {
  std::vector<uint32_t> sizes;
  std::unordered_set<std::string> seen;
  for (size_t place = 0; place < nodes.size(); ++place) {
    const std::string& rack = nodes[place].rack;
    if (rack.empty()) return std::nullopt;
    if (place == 0 || rack != nodes[place - 1].rack) {
      if (!seen.insert(rack).second) return std::nullopt;
      sizes.push_back(0);
    }
    ++sizes.back();
  }
  const bool is_hierarchy =
      sizes.size() >= 2 && sizes[0] >= 2 &&
      std::all_of(sizes.begin(), sizes.end(), [&](uint32_t size) { return size == sizes[0]; });
  return is_hierarchy ? std::optional(sizes[0]) : std::nullopt;
}

}  // namespace braid
