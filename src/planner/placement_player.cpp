// SPDX-License-Identifier: Apache-2.0
#include "planner/placement_player.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "planner/placement.h"

namespace braid {
namespace {

// Johnson's order where a rank computes `speed` times as fast.
std::vector<uint32_t> johnson_order(const PlacementProblem& problem, double speed) {
  std::vector<uint32_t> sequence(problem.items.size());
  std::iota(sequence.begin(), sequence.end(), 0u);
  const auto is_first = [&](const PlacementProblem::Item& item) {
    return item.cost_seconds < item.spread_seconds * speed;
  };
  std::stable_sort(sequence.begin(), sequence.end(), [&](uint32_t a, uint32_t b) {
    const PlacementProblem::Item& left = problem.items[a];
    const PlacementProblem::Item& right = problem.items[b];
    if (is_first(left) != is_first(right)) return is_first(left);
    if (is_first(left)) return left.cost_seconds < right.cost_seconds;
    return left.spread_seconds > right.spread_seconds;
  });
  return sequence;
}

}  // namespace

PlacementPlayer::PlacementPlayer(const PlacementProblem& problem)
    : problem_(problem),
      own_seconds_(problem.ranks),
      computed_seconds_(problem.ranks),
      ready_seconds_(problem.items.size()) {
  sequences_.push_back(johnson_order(problem, 1));
  const auto owners = std::min<double>(problem.ranks, static_cast<double>(problem.items.size()));
  auto shared = johnson_order(problem, owners);
  if (shared != sequences_.front()) sequences_.push_back(std::move(shared));
}

double PlacementPlayer::play(std::span<const uint32_t> owners) {
  add_loads(owners);
  double best = std::numeric_limits<double>::infinity();
  size_t best_block = 0;
  for (const auto& sequence : sequences_) {
    merge(owners, sequence);
    const double end = spread(merged_);
    if (end >= best) continue;
    best = end;
    best_block = last_block_;
    order_.swap(merged_);
  }
  last_block_ = best_block;
  return std::max(best, computing_seconds_);
}

double PlacementPlayer::play_in_order(std::span<const uint32_t> owners,
                                      std::span<const uint32_t> order) {
  add_loads(owners);
  std::ranges::fill(computed_seconds_, 0.0);
  for (const uint32_t item : order) {
    ready_seconds_[item] = computed_seconds_[owners[item]] += problem_.items[item].cost_seconds;
  }
  order_.assign(order.begin(), order.end());
  return std::max(spread(order_), computing_seconds_);
}

PlayedPlacement PlacementPlayer::played(std::span<const uint32_t> owners) {
  PlayedPlacement result;
  result.makespan_seconds = play(owners);
  result.owners.assign(owners.begin(), owners.end());
  result.order = order_;
  return result;
}

void PlacementPlayer::add_loads(std::span<const uint32_t> owners) {
  std::ranges::fill(own_seconds_, 0.0);
  everybody_seconds_ = 0;
  for (size_t i = 0; i < owners.size(); ++i) {
    double& seconds =
        owners[i] == Placement::kEverybody ? everybody_seconds_ : own_seconds_[owners[i]];
    seconds += problem_.items[i].cost_seconds;
  }
  computing_seconds_ = *std::ranges::max_element(own_seconds_) + everybody_seconds_;
}

// All owners compute their items in the order of `sequence`; what is ready first is spread first.
void PlacementPlayer::merge(std::span<const uint32_t> owners,
                            const std::vector<uint32_t>& sequence) {
  std::ranges::fill(computed_seconds_, 0.0);
  ready_.clear();
  for (uint32_t place = 0; place < sequence.size(); ++place) {
    const uint32_t item = sequence[place];
    if (owners[item] == Placement::kEverybody) continue;
    ready_seconds_[item] = computed_seconds_[owners[item]] += problem_.items[item].cost_seconds;
    ready_.emplace_back(ready_seconds_[item], place);
  }
  std::ranges::sort(ready_);
  merged_.clear();
  for (const auto& [seconds, place] : ready_) merged_.push_back(sequence[place]);
}

// When the link has spread all.
double PlacementPlayer::spread(std::span<const uint32_t> order) {
  double end = 0;
  last_block_ = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const double ready = ready_seconds_[order[i]];
    if (ready > end) {
      end = ready;
      last_block_ = i;
    }
    end += problem_.items[order[i]].spread_seconds;
  }
  return end;
}

}  // namespace braid
