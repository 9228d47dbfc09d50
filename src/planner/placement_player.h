// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "planner/placement_problem.h"

namespace braid {

// Owners of all items, and the order in which results are spread; see Placement.
struct PlayedPlacement {
  std::vector<uint32_t> owners;
  std::vector<uint32_t> order;
  double makespan_seconds = 0;
};

// Plays placements by the rules of placement.h, and chooses the order in which owners compute.
//
// The order is Johnson's (1954), which is optimal where one rank owns everything: first the items
// that compute for less time than they are spread, the shortest first; then the others, the one
// that is spread the shortest last. With several owners the link has the results of all of them, so
// a second order compares with the time per owner. The better one of the two counts.
//
// Keeps memory between plays; one thread at a time. The problem outlives it.
class PlacementPlayer {
 public:
  explicit PlacementPlayer(const PlacementProblem& problem);

  // The makespan. The functions below tell of the last play.
  double play(std::span<const uint32_t> owners);
  double play_in_order(std::span<const uint32_t> owners, std::span<const uint32_t> order);

  const std::vector<uint32_t>& order() const { return order_; }
  // Without what everybody computes.
  const std::vector<double>& own_seconds() const { return own_seconds_; }
  double everybody_seconds() const { return everybody_seconds_; }
  // When the last rank has computed all.
  double computing_seconds() const { return computing_seconds_; }
  // The link never waits from the spreading of order()[last_block()] to the end.
  size_t last_block() const { return last_block_; }

  PlayedPlacement played(std::span<const uint32_t> owners);

 private:
  void add_loads(std::span<const uint32_t> owners);
  void merge(std::span<const uint32_t> owners, const std::vector<uint32_t>& sequence);
  double spread(std::span<const uint32_t> order);

  const PlacementProblem& problem_;
  std::vector<std::vector<uint32_t>> sequences_;  // all items, as owners compute theirs
  std::vector<double> own_seconds_;
  std::vector<double> computed_seconds_;            // of each rank so far
  std::vector<double> ready_seconds_;               // of each item
  std::vector<std::pair<double, uint32_t>> ready_;  // with the place in the sequence
  std::vector<uint32_t> merged_;
  std::vector<uint32_t> order_;
  double everybody_seconds_ = 0;
  double computing_seconds_ = 0;
  size_t last_block_ = 0;
};

}  // namespace braid
