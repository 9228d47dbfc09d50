// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "planner/cost_model.h"

// Placement: which rank does which piece of a step's work that does not depend on the batch, such
// as the inverse of a Kronecker factor (K-FAC) or a matrix's Newton-Schulz iteration (Muon). All
// ranks need all results. So each item either has an owner, which computes it and spreads the
// result to the others, or everybody computes it, and nothing travels.
//
// The makespan, which place() minimizes:
// - A rank first computes the items that it owns, then those that everybody computes.
// - All ranks share one link. It spreads one result at a time, and a result's time there is
//   startup + bytes * seconds_per_byte. A result can go out when its owner has it. With one rank
//   nothing is spread.
// - The makespan is when the last computation and the last spreading end.
// The link serves first what was finished first. No other order of spreading ends earlier. In which
// order an owner computes its items is part of the placement.
//
// Already the order of given owners' items is hard: Lin, "The strong NP-hardness of two-stage
// flowshop scheduling with a common second-stage machine" (Computers & Operations Research, 1999).
namespace braid {

struct PlacedItem {
  static constexpr size_t kItemsMax = 100'000;
  static constexpr size_t kDimensionsMax = 8;

  std::string id;
  std::vector<uint64_t> shape;  // of the result; a matrix has shape[0] rows, the rest are columns
  double cost_seconds = 0;      // to compute it, on any rank
  uint64_t bytes = 0;           // of the result, as it is spread

  bool operator==(const PlacedItem&) const = default;
};

struct Placement {
  static constexpr uint32_t kEverybody = UINT32_MAX;
  static constexpr uint32_t kRanksMax = 65'536;

  std::vector<uint32_t> owners;  // one per item: a rank, or kEverybody
  std::vector<uint32_t> order;   // the owned items as their results are spread. An owner computes
                                 // its own ones in this order
  std::vector<double> loads;     // seconds that each rank computes
  double makespan_seconds = 0;
  double bound_seconds = 0;  // no placement has a smaller makespan; see placement_bound.h
  bool is_optimal = false;   // no placement is better: the search came to its end, or to the bound
};

// INVALID_ARGUMENT, naming the item: none or too many items, an id that is empty or stands twice,
// no shape, a dimension of 0, a size or a time that is negative or not finite, or not so in sum.
Status check_placed_items(std::span<const PlacedItem> items, const LinearCost& link);

// Where each item goes. Pure: the same input gives the same placement on every rank. Any thread.
// The rules' names and sources are in placement_rules.h; an unknown rule's error lists them.
//
// "best" is never worse than any other rule but "exact". Both are optimal for up to ten items on
// four ranks, and say where more is optimal; "exact" searches longer. What they take is bounded by
// counts, never by a clock: "best" takes some tens of milliseconds for 1,000 items on 256 ranks,
// "exact" less than a few seconds for any.
Result<Placement> place(std::span<const PlacedItem> items, uint32_t ranks, std::string_view rule,
                        const LinearCost& link);

}  // namespace braid
