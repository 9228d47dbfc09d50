// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planner/placement_order.h"
#include "planner/placement_player.h"
#include "planner/placement_problem.h"

namespace braid {

// Branch and bound over owners: the most expensive item first, to every rank that differs from the
// others and to everybody. A branch is left where its bound, made as in placement_bound.h, is not
// below the best makespan. Where all items have owners, the player's order is tried. If the bound
// of all orders is lower, they are searched, too.
class PlacementBranches {
 public:
  static constexpr size_t kItemsMax = 256;  // it calls itself once per item

  // Starts with `best`. The search ends when it reaches `bound_seconds`, or after `steps` steps, of
  // some nanoseconds each. The problem outlives it.
  PlacementBranches(const PlacementProblem& problem, PlayedPlacement best, double bound_seconds,
                    uint64_t steps);

  // True: best() is optimal.
  bool run();
  const PlayedPlacement& best() const { return best_; }

 private:
  void branch(size_t depth);
  void take(size_t depth, uint32_t owner);
  double bound(size_t depth) const;
  double link_bound(size_t depth) const;
  void finish();
  void spend(uint64_t steps);
  bool is_worse(double seconds) const;
  double owners_max() const { return static_cast<double>(loads_.size()); }

  const PlacementProblem& problem_;
  const double bound_seconds_;
  PlacementPlayer player_;
  PlacementOrder order_;
  PlayedPlacement best_;
  uint64_t steps_left_;
  bool is_over_ = false;      // the bound is reached, or no steps are left
  bool is_complete_ = true;   // branches were left for their bounds alone
  bool has_link_ = false;     // some item takes time to spread
  double first_seconds_ = 0;  // the cheapest item's
  double last_spread_ = 0;    // the shortest spreading

  std::vector<uint32_t> sequence_;    // the most expensive item first
  std::vector<size_t> by_spread_;     // places in it, the item that spares the link most first
  std::vector<double> rest_costs_;    // of the items from each place on
  std::vector<double> rest_spreads_;  // the same

  std::vector<uint32_t> owners_;
  std::vector<double> loads_;     // of what ranks own, as many ranks as could own something
  std::vector<uint32_t> counts_;  // of the items that ranks own
  double owned_seconds_ = 0;
  double everybody_seconds_ = 0;
  double spread_seconds_ = 0;  // of owned items
};

}  // namespace braid
