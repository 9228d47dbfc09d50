// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace braid {

// How long the steps of one set take, from the end of one to the end of the next: optimizer,
// forward and backward pass, and all that the last reduction lets the trainers wait for. Known when
// the last result is there, before the next step begins. Nanoseconds. Control loop only.
class StepClock {
 public:
  static constexpr size_t kStepsOpenMax = 16;  // the oldest is given up

  struct End {
    std::optional<uint64_t> step_ns;  // nothing: the step before has not ended
  };

  // One of the `operations` of a step has ended. Nothing, as long as it was not the last one.
  std::optional<End> on_done(uint64_t step, size_t operations, uint64_t now_ns) {
    if (++done_[step] < operations) {
      if (done_.size() > kStepsOpenMax) done_.erase(done_.begin());
      return std::nullopt;
    }
    done_.erase(step);
    const bool follows = last_step_ && *last_step_ + 1 == step;
    const uint64_t step_ns = now_ns - last_end_ns_;
    last_step_ = step;
    last_end_ns_ = now_ns;
    return End{follows ? std::optional(step_ns) : std::nullopt};
  }

 private:
  std::map<uint64_t, size_t> done_;  // operations, by step
  std::optional<uint64_t> last_step_;
  uint64_t last_end_ns_ = 0;
};

}  // namespace braid
