// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "bench/gradients.h"
#include "bench/ranks.h"

namespace braid::bench {

// What one planner's steps submit, and when.
struct Schedule {
  Plan plan;                      // what is submitted as one; single tensors for kLivePlanner
  std::vector<uint32_t> handles;  // of the groups, each registered as one tensor
};

// Plays training steps: sleeps where a trainer computes, submits what would be ready, waits for all
// results and checks them: against the exact sums, or, where sums are not known, that all ranks
// have the same bits. One thread.
class Player {
 public:
  static Result<Player> create(Trainer& trainer, Ranks& ranks, Workload workload,
                               Gradients gradients, uint32_t rank);

  // One step, on all ranks; the steps of a tensor grow. `seconds`: from the beginning of the
  // forward pass until the last result was there, on the slowest rank.
  Status play(const Schedule& schedule, uint64_t step, double& seconds);

  uint64_t began_ns() const { return began_ns_; }  // the last step
  const Gradients& gradients() const { return gradients_; }
  const uint8_t* memory() const { return static_cast<const uint8_t*>(memory_.get()); }

 private:
  Player(Trainer& trainer, Ranks& ranks, Workload workload, Gradients gradients, uint32_t rank,
         Trainer::ArenaMemory memory)
      : trainer_(&trainer),
        ranks_(&ranks),
        workload_(std::move(workload)),
        gradients_(std::move(gradients)),
        rank_(rank),
        memory_(std::move(memory)) {}

  Status submit_all(const Schedule& schedule, uint64_t step, uint64_t begin_ns);
  // Takes the result of the group that `ticket` is of and gives it back.
  Status check(const Plan::Group& group, uint64_t step, braid_ticket ticket, Verdict& verdict);

  Trainer* trainer_;
  Ranks* ranks_;
  Workload workload_;
  Gradients gradients_;
  uint32_t rank_;
  Trainer::ArenaMemory memory_;
  SystemClock clock_;
  std::vector<braid_ticket> tickets_;
  uint64_t began_ns_ = 0;
  uint64_t digest_ = 0;  // of a step's results, where their sums are not known
};

}  // namespace braid::bench
