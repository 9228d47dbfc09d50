// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "planner/placement.h"
#include "tests/unit/planner/instances.h"

namespace braid {

struct PlacementInstance {
  std::vector<PlacedItem> items;
  uint32_t ranks = 1;
  LinearCost link;

  Placement placed(std::string_view rule) const { return place(items, ranks, rule, link).value(); }
};

inline PlacedItem placed_item(size_t index, uint64_t dimension, double cost, uint64_t bytes) {
  return {"item" + std::to_string(index), {dimension, dimension}, cost, bytes};
}

// Items of one kind or of several, links from none to one that decides everything.
inline PlacementInstance random_placement(Instances& instances, size_t items_max,
                                          uint32_t ranks_max, bool is_whole) {
  PlacementInstance instance;
  instance.ranks = static_cast<uint32_t>(1 + instances.below(ranks_max));
  const uint64_t cost_max = 1 + instances.below(12);
  const uint64_t bytes_max = 1 + instances.below(12);
  const bool is_cubic = instances.below(2) == 0;  // as inverses are
  const double slowness = std::vector<double>{0, 0.1, 1, 10}[instances.below(4)];
  for (size_t i = 1 + instances.below(items_max); i > 0; --i) {
    const uint64_t dimension = 1 + instances.below(3000);
    const auto size = static_cast<double>(dimension) / 1000;
    if (is_whole) {
      instance.items.push_back(placed_item(i, dimension,
                                           static_cast<double>(instances.below(cost_max + 1)),
                                           instances.below(bytes_max + 1)));
    } else if (is_cubic) {
      instance.items.push_back(placed_item(
          i, dimension, size * size * size * instances.real(0.9, 1.1), dimension * dimension));
    } else {
      instance.items.push_back(
          placed_item(i, dimension, instances.real(0, 1), instances.below(1'000'000)));
    }
  }
  if (is_whole) {
    instance.link = {static_cast<double>(instances.below(4)),
                     static_cast<double>(instances.below(3))};
  } else {
    instance.link = {instances.real(0, 0.1) * slowness, instances.real(0, 1e-6) * slowness};
  }
  return instance;
}

// The smallest makespan of all owners and all orders.
//
// A partial placement has owners for some items; its end is the earliest one of the link. The last
// item that the link spreads is its owner's last one, so the items before it are a smaller partial
// placement. Each is a number with a digit per item: 0, or the owner plus 1. At the end everybody
// computes the items without an owner.
inline double brute_force_makespan(const PlacementInstance& instance) {
  const size_t count = instance.items.size();
  const uint32_t base = instance.ranks + 1;
  std::vector<size_t> powers = {1};
  std::vector<double> spreads;
  for (const PlacedItem& item : instance.items) {
    powers.push_back(powers.back() * base);
    spreads.push_back(instance.ranks == 1 ? 0
                                          : instance.link.seconds(static_cast<double>(item.bytes)));
  }
  std::vector<double> ends(powers.back());
  std::vector<uint32_t> digits(count);
  std::vector<double> loads(base);  // [0]: everybody's
  double best = std::numeric_limits<double>::infinity();
  for (size_t placed = 0; placed < ends.size(); ++placed) {
    std::ranges::fill(loads, 0.0);
    size_t rest = placed;
    for (size_t i = 0; i < count; ++i, rest /= base) {
      digits[i] = static_cast<uint32_t>(rest % base);
      loads[digits[i]] += instance.items[i].cost_seconds;
    }
    double end = placed == 0 ? 0 : std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < count; ++i) {
      if (digits[i] == 0) continue;
      const double start = std::max(ends[placed - digits[i] * powers[i]], loads[digits[i]]);
      end = std::min(end, start + spreads[i]);
    }
    ends[placed] = end;
    const double own = *std::max_element(loads.begin() + 1, loads.end());
    best = std::min(best, std::max(end, own + loads[0]));
  }
  return best;
}

}  // namespace braid
