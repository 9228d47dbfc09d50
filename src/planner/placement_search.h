// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "planner/placement_player.h"
#include "planner/placement_problem.h"

namespace braid {

// Makes a good placement of any number of items, in steps that are all bounded by counts:
// 1. Every rule of placement_rules.h: the result is never worse than any of them.
// 2. What everybody computes: the items with most spreading per second of computing, or the
// cheapest
//    ones, for several numbers of them around the one where link and ranks are equally busy. The
//    others go by longest processing time.
// 3. The ranks of the best of these are balanced: moves and swaps that take work from the rank with
//    most, as long as there are such.
// 4. Single changes to what bounds the makespan, each of them played: an item of the link's last
//    block goes to everybody or to another owner, or an item comes back from everybody.
class PlacementSearch {
 public:
  // `bound_seconds`: the search ends when it is reached. The problem outlives the search.
  PlacementSearch(const PlacementProblem& problem, double bound_seconds);

  PlayedPlacement run();

 private:
  using Owners = std::vector<uint32_t>;

  void try_rules();
  void try_everybody(const std::vector<uint32_t>& sequence);
  Owners with_everybody(const std::vector<uint32_t>& sequence, size_t count) const;
  void consider(const Owners& owners);
  bool is_done() const;

  void balance(Owners owners);
  bool relieve(Owners& owners, std::vector<double>& loads);

  bool change_once();
  bool try_owner(uint32_t item, uint32_t owner);
  std::vector<uint32_t> blocking_items() const;

  const PlacementProblem& problem_;
  const double bound_seconds_;
  PlacementPlayer player_;
  std::vector<uint32_t> by_cost_;    // the most expensive item first
  std::vector<uint32_t> by_spread_;  // the item that spares the link most first
  std::vector<double> costs_;
  PlayedPlacement best_;
  uint64_t steps_left_;  // of balancing, in items looked at
  uint64_t plays_left_;  // of single changes, in items played
};

}  // namespace braid
