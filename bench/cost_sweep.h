// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "bench/ranks.h"
#include "planner/fit_cost.h"
#include "proto/types.h"

namespace braid::bench {

// All-reduces over sizes, and some side by side: what a cost model is fitted to. One thread.
class CostSweep {
 public:
  // `memory` holds `bytes_max` bytes of `dtype` in the arena; contents are only read.
  static Result<CostSweep> create(Trainer& trainer, Ranks& ranks, DataType dtype,
                                  const void* memory, uint64_t bytes_max);

  // Goes over all sizes; adds what it measured, the same on all ranks.
  Status run(std::vector<CostMeasurement>& measurements);

  // 1 KiB, 2 KiB, … and `bytes_max` itself.
  static std::vector<uint64_t> sizes(uint64_t bytes_max, size_t element);

 private:
  static constexpr uint32_t kLanes = 4;
  CostSweep(Trainer& trainer, Ranks& ranks, DataType dtype, const void* memory, uint64_t bytes_max)
      : trainer_(&trainer), ranks_(&ranks), dtype_(dtype), memory_(memory), bytes_max_(bytes_max) {}
  // `concurrent` all-reduces of `bytes` at the same time, until the last one is done.
  Status measure(uint64_t bytes, uint32_t concurrent, std::vector<CostMeasurement>& measurements);

  Trainer* trainer_;
  Ranks* ranks_;
  DataType dtype_;
  const void* memory_;
  uint64_t bytes_max_;
  std::vector<uint32_t> lanes_;  // dynamic tensors: one for each that runs at the same time
  uint64_t step_ = 0;
};

}  // namespace braid::bench
