// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "collective/reduce_kernels.h"
#include "collective/unit.h"

namespace braid {

// What one node does with the bytes of one extent: reads the inputs of its local ranks, perhaps
// what came over the wire, and writes the same extent of the result. Whole elements only.
class LocalStep {
 public:
  explicit LocalStep(const Operation& operation);

  // result = input[0] op input[1] op … op wire, in this order; without `wire` (nullptr) the local
  // inputs alone. Where inputs lie in pieces, it goes from one border to the next.
  void reduce(const Extent& extent, const uint8_t* wire);
  // The owner's step: what remains to be done once all ranks' inputs are in.
  void finish(const Extent& extent);
  // Both at once, where all inputs are local.
  void reduce_and_finish(const Extent& extent);
  // All-gather: the local ranks' blocks to their places. Broadcast on the root's node: the root's
  // input.
  void copy_inputs(const Extent& extent);

 private:
  void reduce(const Extent& extent, const uint8_t* wire, Store store);

  const Operation& operation_;
  std::vector<const uint8_t*> operands_;  // kept, so that a chunk allocates nothing
  uint64_t first_block_ = 0;  // all-gather: where the local ranks' blocks start in the result
};

}  // namespace braid
