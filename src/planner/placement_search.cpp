// SPDX-License-Identifier: Apache-2.0
#include "planner/placement_search.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "planner/placement.h"
#include "planner/placement_rules.h"

namespace braid {
namespace {

constexpr uint64_t kBalanceSteps = 4'000'000;
constexpr uint64_t kPlayedItems = 150'000;
// Numbers of items for everybody, on both sides of the best one by prediction.
constexpr std::array<size_t, 9> kCountsAround = {0, 1, 2, 3, 5, 8, 13, 34, 89};

}  // namespace

PlacementSearch::PlacementSearch(const PlacementProblem& problem, double bound_seconds)
    : problem_(problem),
      bound_seconds_(bound_seconds),
      player_(problem),
      by_cost_(problem.items.size()),
      steps_left_(kBalanceSteps),
      plays_left_(kPlayedItems) {
  std::iota(by_cost_.begin(), by_cost_.end(), 0u);
  by_spread_ = by_cost_;
  for (const PlacementProblem::Item& item : problem.items) costs_.push_back(item.cost_seconds);
  std::ranges::stable_sort(by_cost_, std::greater<>(), [&](uint32_t i) { return costs_[i]; });
  std::ranges::stable_sort(by_spread_, std::greater<>(),
                           [&](uint32_t i) { return problem.items[i].spread_per_cost(); });
  best_.makespan_seconds = std::numeric_limits<double>::infinity();
}

PlayedPlacement PlacementSearch::run() {
  try_rules();
  if (is_done()) return best_;
  const std::vector<uint32_t> cheapest(by_cost_.rbegin(), by_cost_.rend());
  try_everybody(by_spread_);
  try_everybody(cheapest);
  balance(best_.owners);
  while (!is_done() && change_once()) {
  }
  return best_;
}

bool PlacementSearch::is_done() const {
  return best_.makespan_seconds <= bound_seconds_ * (1 + kPlacementTolerance);
}

void PlacementSearch::consider(const Owners& owners) {
  if (player_.play(owners) < best_.makespan_seconds) best_ = player_.played(owners);
}

void PlacementSearch::try_rules() {
  for (const PlacementRule& rule : PlacementRule::all(problem_.ranks)) {
    consider(rule.owners(problem_));
  }
}

// With the first k items of `sequence` for everybody, for k around where the link, which spreads
// the others, takes as long as the ranks.
void PlacementSearch::try_everybody(const std::vector<uint32_t>& sequence) {
  double computing = std::accumulate(costs_.begin(), costs_.end(), 0.0) / problem_.ranks;
  double spreading = costs_[by_cost_.back()];
  for (const PlacementProblem::Item& item : problem_.items) spreading += item.spread_seconds;
  size_t middle = 0;
  for (; middle < sequence.size() && spreading > computing; ++middle) {
    const PlacementProblem::Item& item = problem_.items[sequence[middle]];
    computing += item.cost_seconds * (1 - 1.0 / problem_.ranks);
    spreading -= item.spread_seconds;
  }
  std::set<size_t> counts = {0, sequence.size()};
  for (const size_t distance : kCountsAround) {
    counts.insert(middle - std::min(middle, distance));
    counts.insert(std::min(middle + distance, sequence.size()));
  }
  for (const size_t count : counts) consider(with_everybody(sequence, count));
}

PlacementSearch::Owners PlacementSearch::with_everybody(const std::vector<uint32_t>& sequence,
                                                        size_t count) const {
  Owners owners(sequence.size(), 0);
  for (size_t i = 0; i < count; ++i) owners[sequence[i]] = Placement::kEverybody;
  std::vector<uint32_t> owned = by_cost_;
  std::erase_if(owned, [&](uint32_t item) { return owners[item] == Placement::kEverybody; });
  place_greedily(owners, owned, costs_, problem_.ranks);
  return owners;
}

void PlacementSearch::balance(Owners owners) {
  std::vector<double> loads(problem_.ranks);
  for (size_t i = 0; i < owners.size(); ++i) {
    if (owners[i] != Placement::kEverybody) loads[owners[i]] += costs_[i];
  }
  while (relieve(owners, loads)) {
  }
  consider(owners);
}

// Takes work from the rank with most: the move, or the swap, after which the larger one of the two
// ranks' loads is smallest. The loads, sorted, become smaller each time, so this ends.
bool PlacementSearch::relieve(Owners& owners, std::vector<double>& loads) {
  const auto from = static_cast<uint32_t>(std::ranges::max_element(loads) - loads.begin());
  const auto least = static_cast<uint32_t>(std::ranges::min_element(loads) - loads.begin());
  const double limit = loads[from] * (1 - kPlacementTolerance);
  double best = limit;
  size_t given = owners.size();
  size_t taken = owners.size();  // nothing: it is a move to `least`
  const auto offer = [&](size_t i, size_t other, uint32_t to, double difference) {
    const double larger = std::max(loads[from] - difference, loads[to] + difference);
    if (difference <= 0 || larger >= best) return;
    best = larger;
    given = i;
    taken = other;
  };
  for (size_t i = 0; i < owners.size(); ++i) {
    if (owners[i] != from) continue;
    if (steps_left_ < owners.size()) break;
    steps_left_ -= owners.size();
    offer(i, owners.size(), least, costs_[i]);
    for (size_t j = 0; j < owners.size(); ++j) {
      if (owners[j] == from || owners[j] == Placement::kEverybody) continue;
      offer(i, j, owners[j], costs_[i] - costs_[j]);
    }
  }
  if (given == owners.size()) return false;
  const uint32_t to = taken == owners.size() ? least : owners[taken];
  const double difference = costs_[given] - (taken == owners.size() ? 0 : costs_[taken]);
  owners[given] = to;
  if (taken != owners.size()) owners[taken] = from;
  loads[from] -= difference;
  loads[to] += difference;
  return true;
}

// True: a change has made the best placement better.
bool PlacementSearch::change_once() {
  player_.play(best_.owners);
  const std::vector<double> loads = player_.own_seconds();
  const double most = player_.computing_seconds();
  const auto least = static_cast<uint32_t>(std::ranges::min_element(loads) - loads.begin());
  if (most < best_.makespan_seconds * (1 - kPlacementTolerance)) {
    const double slack = best_.makespan_seconds - most;
    for (const uint32_t item : blocking_items()) {
      const bool has_room =
          costs_[item] < slack || loads[best_.owners[item]] >= most - costs_[item];
      if (has_room && try_owner(item, Placement::kEverybody)) return true;
      if (try_owner(item, least)) return true;
    }
    return false;
  }
  // What spares the link least comes back first.
  for (auto item = by_spread_.rbegin(); item != by_spread_.rend(); ++item) {
    const bool is_everybodys = best_.owners[*item] == Placement::kEverybody;
    const bool is_critical = !is_everybodys && loads[best_.owners[*item]] >= loads[least];
    if ((is_everybodys || is_critical) && try_owner(*item, least)) return true;
  }
  return false;
}

// Those that the link spreads without a pause up to the end. What spares the link most comes first.
std::vector<uint32_t> PlacementSearch::blocking_items() const {
  std::vector<uint32_t> items(
      player_.order().begin() + static_cast<std::ptrdiff_t>(player_.last_block()),
      player_.order().end());
  std::ranges::stable_sort(items, std::greater<>(),
                           [&](uint32_t i) { return problem_.items[i].spread_per_cost(); });
  return items;
}

bool PlacementSearch::try_owner(uint32_t item, uint32_t owner) {
  if (best_.owners[item] == owner || plays_left_ < problem_.items.size()) return false;
  plays_left_ -= problem_.items.size();
  Owners changed = best_.owners;
  changed[item] = owner;
  const double before = best_.makespan_seconds;
  consider(changed);
  return best_.makespan_seconds < before;
}

}  // namespace braid
