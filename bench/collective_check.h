// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/collective_kinds.h"
#include "bench/pattern.h"

namespace braid::bench {

// A part of a rank's result that comes from one place. In elements.
struct ResultBlock {
  uint64_t at = 0;  // in the result
  uint64_t count = 0;
  std::optional<uint32_t> rank;  // whose input it is; none: the reduction of all ranks' inputs
  uint64_t first = 0;            // where it begins in the input
};

// This rank's whole result.
std::vector<ResultBlock> blocks_of(const CollectiveSetup& setup, uint64_t count);

// Nothing: `data` is what this part of the result must be.
std::optional<Pattern::Mismatch> verify(const Pattern& pattern, uint64_t iteration,
                                        const ResultBlock& block, const void* data);

}  // namespace braid::bench
