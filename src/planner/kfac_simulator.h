// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "planner/cost_model.h"
#include "planner/kfac_step.h"
#include "planner/plan.h"

namespace braid {

// The link that all ranks share. It carries one message at a time.
struct KfacLink {
  uint32_t ranks = 1;
  LinearCost all_reduce;
  LinearCost spread;  // of an inverse, from its owner to all others

  // To spread is the second half of an all-reduce. One rank sends nothing.
  static KfacLink of(uint32_t ranks, LinearCost all_reduce);
};

// Who sends what together, and who inverts what.
struct KfacSchedule {
  std::array<Plan, KfacStreams::kKinds> plans;
  bool is_pipelined = true;       // factors go out while the passes go on; else after them
  bool waits_for_factors = true;  // inverses begin when all factors are averaged; else one by one
  std::vector<uint32_t> owners;   // of inverses_of(): a rank, or Placement::kEverybody
  std::vector<uint32_t> order;    // the owned ones, as their owners compute them
};

// Where the time of a step goes. What follows the passes is counted once: as inverse computing
// while any rank computes an inverse, else as what the link carries. So the parts add up to the
// total.
struct KfacTimes {
  double passes_seconds = 0;  // forward and backward
  double factors_seconds = 0;
  double exposed_factors_seconds = 0;    // communication of factors that nothing hides
  double exposed_gradients_seconds = 0;  // and of gradients
  double inverses_seconds = 0;
  double exposed_inverses_seconds = 0;  // spreading that nothing hides
  double total_seconds = 0;
};

// Runs one step event by event, all ranks alike:
// - Each rank's device runs the passes, and makes the factors in them (streams_of).
// - The link sends a group when its last tensor is ready; of several the one that was ready first.
// - After the passes each rank inverts the factors that it owns, then those that everybody inverts.
//   Each waits until its factor is averaged, or all are. An inverse is spread when it is there.
// - The step ends when everything is done: gradients, inverses, and their spreading.
//
// The schedule's plans cover the step's streams, and its owners the inverses.
KfacTimes simulate_kfac(const KfacStep& step, const KfacSchedule& schedule, const KfacLink& link);

}  // namespace braid
