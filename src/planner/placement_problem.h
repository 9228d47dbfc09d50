// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace braid {

// What rules, bound and searches see of the items that place() is given, after it has checked them.
struct PlacementProblem {
  struct Item {
    double cost_seconds = 0;
    double spread_seconds = 0;  // on the link; 0 with one rank
    double rows = 1;
    double columns = 1;

    // What the link is spared for a second that all ranks compute. An item that takes no time at
    // all spares nothing.
    double spread_per_cost() const {
      if (cost_seconds > 0) return spread_seconds / cost_seconds;
      return spread_seconds > 0 ? std::numeric_limits<double>::infinity() : 0;
    }
  };
  uint32_t ranks = 1;
  std::vector<Item> items;
};

// Rounding must not pass for progress: sums of the same times in different orders differ by less.
inline constexpr double kPlacementTolerance = 1e-12;

}  // namespace braid
