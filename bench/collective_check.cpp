// SPDX-License-Identifier: Apache-2.0
#include "bench/collective_check.h"

namespace braid::bench {

std::vector<ResultBlock> blocks_of(const CollectiveSetup& setup, uint64_t count) {
  const uint64_t own = setup.rank * count;  // where this rank's part begins in an input
  std::vector<ResultBlock> blocks;
  switch (setup.kind.collective) {
    case Collective::AllReduce:
      return {{0, count, std::nullopt, 0}};
    case Collective::ReduceScatter:
      return {{0, count, std::nullopt, own}};
    case Collective::Broadcast:
      return {{0, count, setup.root, 0}};
    case Collective::Scatter:
      return {{0, count, setup.root, own}};
    case Collective::Gather:
      if (setup.rank != setup.root) return {};
      [[fallthrough]];
    case Collective::AllGather:
    case Collective::AllToAll: {
      const uint64_t first = setup.kind.collective == Collective::AllToAll ? own : 0;
      for (uint32_t rank = 0; rank < setup.world_size; ++rank)
        blocks.push_back({rank * count, count, rank, first});
      return blocks;
    }
    case Collective::Barrier:
      break;
  }
  return blocks;
}

std::optional<Pattern::Mismatch> verify(const Pattern& pattern, uint64_t iteration,
                                        const ResultBlock& block, const void* data) {
  if (block.rank)
    return pattern.verify_input_of(*block.rank, iteration, data, block.count, block.first);
  return pattern.verify(iteration, data, block.count, block.first);
}

}  // namespace braid::bench
