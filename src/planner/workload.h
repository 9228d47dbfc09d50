// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "planner/trace.h"

namespace braid {

// What a planner sees of a step. Tensors stand in the order in which backward makes them: [0] is
// the last layer's gradient. Seconds count from the beginning of backward (the papers' τ_b(L) = 0).
struct Workload {
  struct Tensor {
    double ready_seconds = 0;  // never less than that of the tensor before it
    uint64_t bytes = 0;
    bool operator==(const Tensor&) const = default;
  };
  // What others send in this step over the same network; their groups are no part of the plan.
  struct Unit {
    double ready_seconds = 0;  // never negative, never less than that of the unit before it
    uint64_t bytes = 0;
    bool operator==(const Unit&) const = default;
  };
  std::vector<Tensor> tensors;
  double forward_seconds = 0;  // the iteration begins with it; no communication overlaps it
  std::vector<Unit> beside = {};

  double backward_seconds() const { return tensors.empty() ? 0 : tensors.back().ready_seconds; }
  uint64_t bytes() const;
};

// Times summed up from the last layer downwards, in this order (the paper's planner is compared to
// the last bit).
Workload workload_of(const Trace& trace);

}  // namespace braid
