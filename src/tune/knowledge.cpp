// SPDX-License-Identifier: Apache-2.0
#include "tune/knowledge.h"

#include <algorithm>
#include <cmath>

namespace braid {
namespace {

double octaves(uint64_t a, uint64_t b) {
  const auto at_least_one = [](uint64_t x) {
    return static_cast<double>(std::max<uint64_t>(x, 1));
  };
  return std::abs(std::log2(at_least_one(a)) - std::log2(at_least_one(b)));
}

}  // namespace

double distance_of(const KnowledgeKey& a, const KnowledgeKey& b) {
  return octaves(a.bytes, b.bytes) + octaves(a.nodes, b.nodes) + octaves(a.rails, b.rails) +
         octaves(a.ranks_per_node, b.ranks_per_node) / 2 + octaves(a.cores, b.cores) / 2 +
         octaves(a.tensors, b.tensors) / 4;
}

void Knowledge::add(KnowledgeEntry entry) {
  std::erase_if(entries_, [&](const KnowledgeEntry& other) { return other.key == entry.key; });
  const auto place = std::upper_bound(entries_.begin(), entries_.end(), entry,
                                      [](const KnowledgeEntry& a, const KnowledgeEntry& b) {
                                        return a.unix_seconds < b.unix_seconds;
                                      });
  entries_.insert(place, std::move(entry));
  if (entries_.size() > kEntriesMax) entries_.erase(entries_.begin());
}

std::optional<Knowledge::Found> Knowledge::find(const KnowledgeKey& key) const {
  const KnowledgeEntry* nearest = nullptr;
  double least = kDistanceMax;
  for (const KnowledgeEntry& entry : entries_) {
    if (entry.key == key) return Found{entry, 0, true};
    const double distance = distance_of(entry.key, key);
    if (distance > least) continue;
    nearest = &entry;
    least = distance;
  }
  if (nearest == nullptr) return std::nullopt;
  return Found{*nearest, least, false};
}

}  // namespace braid
