// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/placement_problem.h"

namespace braid {

// In which order the results of given owners are spread best, for few items: all orders, by dynamic
// programming. Let end(S) be the earliest end of spreading the items of S, where each owner
// computes those of S first. The last result on the link is the last one of its owner, too, so
//   end(S) = min over j of S: max(end(S - j), what j's owner computes of S) + spread(j).
//
// Keeps memory between calls; one thread at a time. The problem outlives it.
class PlacementOrder {
 public:
  static constexpr size_t kItemsMax = 16;  // 2^16 sets

  explicit PlacementOrder(const PlacementProblem& problem) : problem_(problem) {}

  // The items of these owners; the functions below are about them.
  void set_owners(std::span<const uint32_t> owners);
  size_t size() const { return items_.size(); }

  // No order ends earlier. The largest of these:
  // - As its owner's i-th, no item is ready before the owner's i cheapest ones could be. When the
  // k-th
  //   item of all could be ready, the link still has all but k - 1 of them to spread.
  // - One owner's items alone, in Johnson's order.
  // - The owners' last results: after the k-th longest own work, k owners still spread one each.
  double bound_seconds() const;
  // At most kItemsMax items. The order and its end; bounded by steps().
  std::vector<uint32_t> search(double& end_seconds);
  uint64_t steps() const { return (uint64_t{1} << items_.size()) * (items_.size() + 1); }

 private:
  struct OwnedItem {
    uint32_t owner = 0;
    uint32_t item = 0;
    double cost_seconds = 0;
    double spread_seconds = 0;
  };

  double ready_bound() const;
  double owner_bound() const;
  double last_bound() const;

  const PlacementProblem& problem_;
  std::vector<OwnedItem> items_;  // by owner, the cheapest first
  std::vector<double> ends_;      // of each set, an item a bit
  std::vector<uint8_t> last_;     // the item that is spread last of each set
};

}  // namespace braid
