// SPDX-License-Identifier: Apache-2.0
#include "planner/placement_table.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "planner/placement.h"

namespace braid {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// A partial placement is a number with a digit per item, the last item's highest: 0, or the owner
// plus 1. Ranks are alike, so of placements that differ by ranks' names the smallest number stands
// for all: from the last item down, each owner that is new is the next rank. A placement with an
// item less has a smaller number, so its end is known before.
class PartialPlacements {
 public:
  explicit PartialPlacements(const PlacementProblem& problem)
      : problem_(problem),
        base_(owners_max(problem) + 1),
        digits_(problem.items.size()),
        names_(base_),
        loads_(base_) {
    size_t power = 1;
    for (size_t i = 0; i < digits_.size(); ++i, power *= base_) powers_.push_back(power);
    ends_ = std::make_unique_for_overwrite<double[]>(power);  // most numbers stand for nothing
    best_.makespan_seconds = kNever;
  }

  static size_t owners_max(const PlacementProblem& problem) {
    return std::min<size_t>(problem.ranks, problem.items.size());
  }

  PlayedPlacement optimal() {
    choose(digits_.size(), 0, 0);
    best_.order = order_of(best_number_);
    return std::move(best_);
  }

 private:
  // All owners of the first `count` items, by number; the others have `used` owners.
  void choose(size_t count, size_t used, size_t number) {
    if (count == 0) {
      finish(number);
      return;
    }
    const size_t item = count - 1;
    for (size_t digit = 0; digit <= std::min(used + 1, base_ - 1); ++digit) {
      digits_[item] = digit;
      const double load = loads_[digit];
      loads_[digit] += problem_.items[item].cost_seconds;
      choose(item, std::max(used, digit), number + digit * powers_[item]);
      loads_[digit] = load;
    }
  }

  void finish(size_t number) {
    double end = number == 0 ? 0 : kNever;
    for (size_t i = 0; i < digits_.size(); ++i) {
      if (digits_[i] != 0) end = std::min(end, end_with_last(i));
    }
    ends_[number] = end;
    const double own = *std::max_element(loads_.begin() + 1, loads_.end());
    const double makespan = std::max(end, own + loads_[0]);
    if (makespan >= best_.makespan_seconds) return;
    best_.makespan_seconds = makespan;
    best_number_ = number;
    best_.owners.clear();
    for (const size_t digit : digits_) {
      best_.owners.push_back(digit == 0 ? Placement::kEverybody : static_cast<uint32_t>(digit - 1));
    }
  }

  double end_with_last(size_t item) {
    const double before = ends_[number_without(item)];
    return std::max(before, loads_[digits_[item]]) + problem_.items[item].spread_seconds;
  }

  // The number that stands for the placement without an owner for `item`.
  size_t number_without(size_t item) {
    std::ranges::fill(names_, size_t{0});
    size_t next = 1;
    size_t number = 0;
    for (size_t i = digits_.size(); i-- > 0;) {
      if (i == item || digits_[i] == 0) continue;
      size_t& name = names_[digits_[i]];
      if (name == 0) name = next++;
      number += name * powers_[i];
    }
    return number;
  }

  std::vector<uint32_t> order_of(size_t number) {
    std::vector<uint32_t> order;
    while (number != 0) {
      std::ranges::fill(loads_, 0.0);
      size_t rest = number;
      for (size_t i = 0; i < digits_.size(); ++i, rest /= base_) digits_[i] = rest % base_;
      for (size_t i = digits_.size(); i-- > 0;) {  // as they were added before
        loads_[digits_[i]] += problem_.items[i].cost_seconds;
      }
      uint32_t last = 0;
      while (digits_[last] == 0 || end_with_last(last) != ends_[number]) ++last;
      order.push_back(last);
      number = number_without(last);
    }
    std::ranges::reverse(order);
    return order;
  }

  const PlacementProblem& problem_;
  const size_t base_;
  std::vector<size_t> powers_;
  std::vector<size_t> digits_;
  std::vector<size_t> names_;  // of each owner, while a number is made
  std::vector<double> loads_;  // [0]: everybody's
  std::unique_ptr<double[]> ends_;
  PlayedPlacement best_;
  size_t best_number_ = 0;
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
