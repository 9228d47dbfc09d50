// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/placement_player.h"
#include "planner/placement_problem.h"

namespace braid {

// All placements of few items, by dynamic programming: for what branch and bound does not prove in
// its steps. A partial placement has owners for some items, and its end is the earliest one of the
// link. The last result on the link is the last one of its owner, too. So before it there is a
// smaller partial placement:
//   end(S) = min over the items j of S: max(end(S without j), what j's owner computes in S) +
//   spread(j)
// In the end everybody computes what has no owner.
class PlacementTable {
 public:
  // As many partial placements, of 8 bytes each: ten items on four ranks have 5^10.
  static constexpr size_t kEntriesMax = 10'000'000;

  static bool fits(const PlacementProblem& problem);
  // An optimal placement; its problem fits. Takes some tens of milliseconds for ten
  // items on four ranks.
  static PlayedPlacement optimal(const PlacementProblem& problem);
};

}  // namespace braid
