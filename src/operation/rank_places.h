// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "operation/job_on_node.h"

namespace braid {

// On which nodes a job's ranks are.
class RankPlaces {
 public:
  // `job` outlives it.
  explicit RankPlaces(const JobOnNode& job) : job_(job) {
    for (const uint32_t ranks : job.ring->ranks_of_node)
      first_blocks_.push_back(first_blocks_.back() + ranks);
  }

  // The place in the ring of the rank's node.
  uint32_t place_of(uint32_t rank) const {
    const auto next = std::ranges::upper_bound(first_blocks_, job_.ring->block_of_rank[rank]);
    return static_cast<uint32_t>(std::distance(first_blocks_.begin(), next) - 1);
  }
  // Nothing: the rank is on another node.
  std::optional<uint32_t> local_rank_of(uint32_t rank) const {
    const auto found = std::ranges::lower_bound(job_.local_ranks, rank);
    if (found == job_.local_ranks.end() || *found != rank) return std::nullopt;
    return static_cast<uint32_t>(std::distance(job_.local_ranks.begin(), found));
  }

 private:
  const JobOnNode& job_;
  std::vector<uint32_t> first_blocks_ = {0};  // by place, and the end
};

}  // namespace braid
