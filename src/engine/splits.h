// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace braid {

// How many elements a rank gives to each rank, or gets from each one, itself among them. They lie
// one after the other in the order of ranks.
class SplitCounts {
 public:
  // By rank, as many as the world has; their sum fits into 64 bits.
  explicit SplitCounts(std::span<const uint64_t> counts) {
    ends_.reserve(counts.size());
    for (const uint64_t count : counts) ends_.push_back(sum() + count);
  }

  size_t world_size() const { return ends_.size(); }
  uint64_t operator[](uint32_t rank) const { return ends_[rank] - first(rank); }
  // Where the elements of this rank begin.
  uint64_t first(uint32_t rank) const { return rank == 0 ? 0 : ends_[rank - 1]; }
  uint64_t sum() const { return ends_.empty() ? 0 : ends_.back(); }

 private:
  std::vector<uint64_t> ends_;  // of each rank's elements
};

// What a rank gives and gets in a gather, a scatter or an all-to-all.
struct Splits {
  SplitCounts to;
  SplitCounts from;
};

}  // namespace braid
