// SPDX-License-Identifier: Apache-2.0
#include "planner/placement_table.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/assert.h"
#include "planner/placement.h"

namespace braid {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// A partial placement is a number with a digit per item, the first item's lowest: 0, or the owner
// plus 1. Item i without its owner is the number less digit(i) * power(i), so it comes earlier.
class PartialPlacements {
 public:
  explicit PartialPlacements(const PlacementProblem& problem)
      : problem_(problem),
        base_(owners_max(problem) + 1),
        digits_(problem.items.size()),
        loads_(base_) {
    size_t power = 1;
    for (size_t i = 0; i < digits_.size(); ++i, power *= base_) powers_.push_back(power);
    ends_.resize(power);
  }

  static size_t owners_max(const PlacementProblem& problem) {
    return std::min<size_t>(problem.ranks, problem.items.size());
  }

  PlayedPlacement optimal() {
    PlayedPlacement best;
    best.makespan_seconds = kNever;
    size_t best_number = 0;
    for (size_t number = 0; number < ends_.size(); ++number) {
      set(number);
      ends_[number] = number == 0 ? 0 : kNever;
      for (size_t i = 0; i < digits_.size(); ++i) {
        ends_[number] = std::min(ends_[number], end_with_last(number, i));
      }
      const double own = *std::max_element(loads_.begin() + 1, loads_.end());
      const double makespan = std::max(ends_[number], own + loads_[0]);
      if (makespan >= best.makespan_seconds) continue;
      best.makespan_seconds = makespan;
      best_number = number;
    }
    set(best_number);
    for (const size_t digit : digits_) {
      best.owners.push_back(digit == 0 ? Placement::kEverybody : static_cast<uint32_t>(digit - 1));
    }
    best.order = order_of(best_number);
    return best;
  }

 private:
  void set(size_t number) {
    std::ranges::fill(loads_, 0.0);
    for (size_t i = 0; i < digits_.size(); ++i, number /= base_) {
      digits_[i] = number % base_;
      loads_[digits_[i]] += problem_.items[i].cost_seconds;
    }
  }

  // Of the number that is set.
  double end_with_last(size_t number, size_t item) const {
    if (digits_[item] == 0) return kNever;
    const double before = ends_[number - digits_[item] * powers_[item]];
    return std::max(before, loads_[digits_[item]]) + problem_.items[item].spread_seconds;
  }

  std::vector<uint32_t> order_of(size_t number) {
    std::vector<uint32_t> order;
    while (number != 0) {
      set(number);
      uint32_t last = 0;
      while (end_with_last(number, last) != ends_[number]) ++last;
      order.push_back(last);
      number -= digits_[last] * powers_[last];
    }
    std::ranges::reverse(order);
    return order;
  }

  const PlacementProblem& problem_;
  const size_t base_;
  std::vector<size_t> powers_;
  std::vector<size_t> digits_;
  std::vector<double> loads_;  // [0]: everybody's
  std::vector<double> ends_;
};

}  // namespace

bool PlacementTable::fits(const PlacementProblem& problem) {
  const size_t base = PartialPlacements::owners_max(problem) + 1;
  size_t entries = 1;
  for (size_t i = 0; i < problem.items.size(); ++i) {
    if (entries > kEntriesMax / base) return false;
    entries *= base;
  }
  return true;
}

PlayedPlacement PlacementTable::optimal(const PlacementProblem& problem) {
  BRAID_ASSERT(fits(problem), "the caller has asked");
  return PartialPlacements(problem).optimal();
}

}  // namespace braid
