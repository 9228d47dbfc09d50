// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/shared_number.h"
#include "operation/placed_work.h"
#include "proto/types.h"

namespace braid {

// What one job does on this node, for its metrics: each part of the job writes what it knows, on
// the control loop; any thread reads. What ends in _ns are nanoseconds.
struct JobNumbers {
  // One of the node's ranks, over all steps that have ended.
  struct Rank {
    uint32_t rank = 0;
    SharedNumber pid;      // of its trainer; 0: in a PID namespace that the daemon does not see
    SharedNumber late_ns;  // of its last gradient, after that of the node's first rank
    SharedNumber wait_ns;  // from its last gradient to the step's last result
  };

  // Ends of messages that ranks of this node have submitted: their sends, or their receives.
  struct MessageEnds {
    SharedNumber ended;  // well; it only grows, as the next one
    SharedNumber bytes;  // of these messages
    SharedNumber pending;
  };

  // `local_ranks`: ascending.
  explicit JobNumbers(std::string job_name = {}, const std::vector<uint32_t>& local_ranks = {})
      : name(std::move(job_name)), ranks(local_ranks.size()) {
    for (size_t i = 0; i < ranks.size(); ++i) ranks[i].rank = local_ranks[i];
  }

  const std::string name;

  // They only grow.
  SharedNumber operations;  // that ended well
  SharedNumber operation_bytes;
  SharedNumber
      submit_ns;          // of these operations, from the first local rank's submission to the last
  SharedNumber ready_ns;  // from there until the nodes that they are sent to were ready
  SharedNumber run_ns;    // from there until their results were there
  std::array<SharedNumber, kCollectiveCount> collectives;  // the operations, by Collective
  SharedNumber all_reduce_bytes;                           // of the results of all-reduces
  // In which at least one all-reduce was on its way: no other node was awaited any more, and its
  // result was not there yet.
  SharedNumber all_reduce_ns;
  SharedNumber steps;  // of all sets of planned tensors
  SharedNumber step_ns;
  SharedNumber exposed_ns;
  std::vector<Rank> ranks;  // by local rank

  MessageEnds sends;
  MessageEnds receives;

  SharedNumber operations_pending;
  SharedNumber result_memory_bytes;
  SharedNumber arena_memory_bytes;

  // These two: the largest set of planned tensors.
  SharedNumber planned_bytes;  // 0: there is none
  SharedNumber plan;           // its number
  SharedNumber plan_groups;
  SharedNumber predicted_ns;  // 0: not known, as the next one
  SharedNumber iteration_ns;
  SharedNumber is_tuning;  // 1: the times of its steps are measured for the tuner

  PlacedWork work;
};

}  // namespace braid
