// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "bench/trainer.h"

namespace braid::bench {

// What the ranks tell each other after every iteration; the greatest counts.
struct Verdict {
  double seconds = 0;
  double is_wrong = 0;  // 1: a result of this rank was
  // Of the results, where they have no known sum: a whole number below 2^52, and its negative.
  // Their greatest ones add up to 0 where all ranks have the same.
  double digest = 0;
  double negative_digest = 0;
};

// Keeps the ranks of a benchmark together. One thread.
class Ranks {
 public:
  static Result<Ranks> create(Trainer& trainer);

  // Returns when all ranks have called it.
  Status barrier() { return trainer_->barrier(barrier_, barriers_++); }
  // Replaces this rank's verdict by that of all; an error where one of them is wrong, or digests
  // differ.
  Status agree(Verdict& verdict);
  // Replaces the value by the sum of all ranks' values.
  Status sum(double& value);
  // Replaces `bytes` bytes by those of rank 0.
  Status broadcast(void* data, size_t bytes);

 private:
  Ranks(Trainer& trainer, Trainer::ArenaMemory memory)
      : trainer_(&trainer), memory_(std::move(memory)) {}

  // Replaces what is at `value` by its reduction over all ranks.
  Status reduce(uint32_t tensor, uint64_t step, braid_reduction reduction, void* value,
                size_t bytes);

  Trainer* trainer_;
  Trainer::ArenaMemory memory_;  // of the verdict, or of a value to be summed
  uint32_t barrier_ = 0;
  uint32_t verdict_ = 0;
  uint32_t sum_ = 0;
  uint32_t stream_ = 0;  // of broadcasts
  uint64_t barriers_ = 0;
  uint64_t verdicts_ = 0;
  uint64_t sums_ = 0;
  uint64_t broadcasts_ = 0;
};

}  // namespace braid::bench
