// SPDX-License-Identifier: Apache-2.0
#include "planner/placement_branches.h"

#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "planner/placement.h"

namespace braid {

PlacementBranches::PlacementBranches(const PlacementProblem& problem, PlayedPlacement best,
                                     double bound_seconds, uint64_t steps)
    : problem_(problem),
      bound_seconds_(bound_seconds),
      player_(problem),
      order_(problem),
      best_(std::move(best)),
      steps_left_(steps),
      first_seconds_(std::numeric_limits<double>::infinity()),
      last_spread_(std::numeric_limits<double>::infinity()),
      sequence_(problem.items.size()),
      by_spread_(problem.items.size()),
      rest_costs_(problem.items.size() + 1),
      rest_spreads_(problem.items.size() + 1),
      owners_(problem.items.size(), Placement::kEverybody),
      loads_(std::min<size_t>(problem.ranks, problem.items.size())),
      counts_(loads_.size()) {
  const auto& items = problem.items;
  std::iota(sequence_.begin(), sequence_.end(), 0u);
  std::iota(by_spread_.begin(), by_spread_.end(), size_t{0});
  std::ranges::stable_sort(sequence_, std::greater<>(),
                           [&](uint32_t i) { return items[i].cost_seconds; });
  std::ranges::stable_sort(by_spread_, std::greater<>(),
                           [&](size_t place) { return items[sequence_[place]].spread_per_cost(); });
  for (size_t place = items.size(); place-- > 0;) {
    const PlacementProblem::Item& item = items[sequence_[place]];
    rest_costs_[place] = rest_costs_[place + 1] + item.cost_seconds;
    rest_spreads_[place] = rest_spreads_[place + 1] + item.spread_seconds;
    first_seconds_ = std::min(first_seconds_, item.cost_seconds);
    last_spread_ = std::min(last_spread_, item.spread_seconds);
  }
  has_link_ = rest_spreads_.front() > 0;
}

bool PlacementBranches::run() {
  is_over_ = is_worse(bound_seconds_);
  branch(0);
  return is_complete_;
}

bool PlacementBranches::is_worse(double seconds) const {
  return seconds >= best_.makespan_seconds * (1 - kPlacementTolerance);
}

void PlacementBranches::spend(uint64_t steps) {
  if (steps > steps_left_) {
    is_over_ = true;
    is_complete_ = false;
    return;
  }
  steps_left_ -= steps;
}

void PlacementBranches::branch(size_t depth) {
  if (is_over_) return;
  spend(loads_.size() + (has_link_ ? sequence_.size() : 0));
  if (is_over_ || is_worse(bound(depth))) return;
  if (depth == sequence_.size()) {
    finish();
    return;
  }
  std::vector<uint32_t> ranks;
  bool has_empty = false;
  for (uint32_t rank = 0; rank < loads_.size() && !has_empty; ++rank) {
    has_empty = counts_[rank] == 0;  // the other empty ones are its twins
    const auto is_twin = [&](uint32_t other) { return loads_[other] == loads_[rank]; };
    if (has_link_ || std::ranges::none_of(ranks, is_twin)) ranks.push_back(rank);
  }
  std::ranges::stable_sort(ranks, {}, [&](uint32_t rank) { return loads_[rank]; });
  for (const uint32_t rank : ranks) take(depth, rank);
  // Where nothing needs time to spread, an owner is never worse.
  if (has_link_) take(depth, Placement::kEverybody);
}

// The rest of the search with one more owner. Sums are put back as they were, not subtracted.
void PlacementBranches::take(size_t depth, uint32_t owner) {
  const uint32_t index = sequence_[depth];
  const PlacementProblem::Item& item = problem_.items[index];
  owners_[index] = owner;
  if (owner == Placement::kEverybody) {
    const double before = std::exchange(everybody_seconds_, everybody_seconds_ + item.cost_seconds);
    branch(depth + 1);
    everybody_seconds_ = before;
    return;
  }
  const double load = loads_[owner];
  const double owned = owned_seconds_;
  const double spread = spread_seconds_;
  loads_[owner] += item.cost_seconds;
  ++counts_[owner];
  owned_seconds_ += item.cost_seconds;
  spread_seconds_ += item.spread_seconds;
  branch(depth + 1);
  loads_[owner] = load;
  --counts_[owner];
  owned_seconds_ = owned;
  spread_seconds_ = spread;
  owners_[index] = Placement::kEverybody;
}

// What no placement can be below that has the owners up to `depth`.
double PlacementBranches::bound(size_t depth) const {
  const double rest = rest_costs_[depth];
  const bool is_owned = owned_seconds_ > 0 || spread_seconds_ > 0;
  // Everybody may compute all.
  if (!is_owned && !is_worse(everybody_seconds_ + rest)) return everybody_seconds_;
  const double work = owned_seconds_ + rest;
  const double most = *std::ranges::max_element(loads_);
  // More for everybody makes the ranks' time longer, and the time with the last spreading shorter.
  const double further = std::clamp(last_spread_ - everybody_seconds_, 0.0, rest);
  const double everybody = everybody_seconds_ + further;
  const double shared = (work - further) / owners_max() + std::max(everybody, last_spread_);
  const double alone = most + std::max(everybody_seconds_, most > 0 ? last_spread_ : 0);
  return std::max({shared, alone, has_link_ ? link_bound(depth) : 0.0});
}

// The same where everybody computes what spares the link most, until link and ranks are equally
// busy.
double PlacementBranches::link_bound(size_t depth) const {
  double link = first_seconds_ + spread_seconds_ + rest_spreads_[depth];
  double ranks = (owned_seconds_ + rest_costs_[depth]) / owners_max() + everybody_seconds_;
  for (const size_t place : by_spread_) {
    if (link <= ranks) break;
    if (place < depth) continue;
    const PlacementProblem::Item& item = problem_.items[sequence_[place]];
    const double more = item.cost_seconds * (1 - 1 / owners_max());
    const double part = std::min(1.0, (link - ranks) / (item.spread_seconds + more));
    link -= part * item.spread_seconds;
    ranks += part * more;
    if (part < 1) break;
  }
  return std::max(link, ranks);
}

void PlacementBranches::finish() {
  spend(10 * sequence_.size());
  const double makespan = player_.play(owners_);
  if (makespan < best_.makespan_seconds) best_ = player_.played(owners_);
  order_.set_owners(owners_);
  if (has_link_ && order_.size() > 1 && !is_worse(order_.bound_seconds())) {
    if (order_.size() > PlacementOrder::kItemsMax) {
      is_complete_ = false;
    } else if (spend(order_.steps()); !is_over_) {
      double end_seconds = 0;
      const std::vector<uint32_t> order = order_.search(end_seconds);
      const double played = player_.play_in_order(owners_, order);
      if (played < best_.makespan_seconds) best_ = {owners_, order, played};
    }
  }
  if (is_worse(bound_seconds_)) is_over_ = true;
}

}  // namespace braid
