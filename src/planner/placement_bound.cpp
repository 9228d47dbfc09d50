// SPDX-License-Identifier: Apache-2.0
#include "planner/placement_bound.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

namespace braid {
namespace {

constexpr int kHalvings = 64;
// With more items per rank the volume says more.
constexpr size_t kItemsPerRankMax = 1000;

class VolumeBound {
 public:
  explicit VolumeBound(const PlacementProblem& problem) : ranks_(problem.ranks) {
    items_ = problem.items;
    std::ranges::stable_sort(items_, std::greater<>(), &PlacementProblem::Item::spread_per_cost);
    first_seconds_ = std::numeric_limits<double>::infinity();
    for (const PlacementProblem::Item& item : items_) {
      cost_seconds_ += item.cost_seconds;
      spread_seconds_ += item.spread_seconds;
      first_seconds_ = std::min(first_seconds_, item.cost_seconds);
      last_spreads_.push_back(item.spread_seconds);
    }
    const size_t owners = std::min<size_t>(ranks_, last_spreads_.size());
    std::ranges::sort(last_spreads_);
    last_spreads_.resize(owners);
    for (size_t i = 1; i < owners; ++i) last_spreads_[i] += last_spreads_[i - 1];
  }

  double seconds() const {
    double low = cost_seconds_ / ranks_;
    double high = cost_seconds_;  // everybody computes all
    if (fits(low)) return low;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = low + (high - low) / 2;
      (fits(middle) ? high : low) = middle;
    }
    return low;
  }

 private:
  // What everybody computes at least, so that the link can spread the rest.
  double everybody_seconds(double makespan) const {
    double everybody = 0;
    double excess = first_seconds_ + spread_seconds_ - makespan;
    for (const PlacementProblem::Item& item : items_) {
      if (excess <= 0) break;
      if (item.spread_seconds <= excess) {
        everybody += item.cost_seconds;
        excess -= item.spread_seconds;
      } else {
        everybody += item.cost_seconds * (excess / item.spread_seconds);
        excess = 0;
      }
    }
    return excess > 0 ? std::numeric_limits<double>::infinity() : everybody;
  }

  // With more for everybody than the shortest spreading takes, the ranks have less room, never
  // more.
  bool fits(double makespan) const {
    const double everybody = std::max(everybody_seconds(makespan), last_spreads_.front());
    if (everybody > makespan) return false;
    double room = everybody;
    for (const double spreads : last_spreads_) {
      if (spreads >= makespan) break;
      room += makespan - std::max(everybody, spreads);
    }
    return room >= cost_seconds_;
  }

  double ranks_;
  std::vector<PlacementProblem::Item> items_;  // most spreading per second of computing first
  std::vector<double> last_spreads_;           // sums of the shortest ones, at most one per rank
  double cost_seconds_ = 0;
  double spread_seconds_ = 0;
  double first_seconds_ = 0;
};

double item_bound(const PlacementProblem& problem) {
  double sum = 0;
  for (const PlacementProblem::Item& item : problem.items) sum += item.cost_seconds;
  double bound = 0;
  for (const PlacementProblem::Item& item : problem.items) {
    const double everybody = item.cost_seconds + (sum - item.cost_seconds) / problem.ranks;
    bound = std::max(bound, std::min(everybody, item.cost_seconds + item.spread_seconds));
  }
  return bound;
}

double count_bound(const PlacementProblem& problem) {
  std::vector<double> costs;
  for (const PlacementProblem::Item& item : problem.items) costs.push_back(item.cost_seconds);
  std::ranges::sort(costs, std::greater<>());
  double bound = 0;
  for (size_t more = 0; more <= kItemsPerRankMax; ++more) {
    const size_t last = more * problem.ranks;
    if (last >= costs.size()) break;
    double sum = 0;
    for (size_t i = 0; i <= more; ++i) sum += costs[last - i];
    bound = std::max(bound, sum);
  }
  return bound;
}

}  // namespace

double placement_bound(const PlacementProblem& problem) {
  return std::max({VolumeBound(problem).seconds(), item_bound(problem), count_bound(problem)});
}

}  // namespace braid
