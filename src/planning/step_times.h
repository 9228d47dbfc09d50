// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace braid {

// What the steps of one set have cost its trainers on this node: how long each took, how much of it
// they waited for the network alone, and which rank was late. A step that does not reduce all
// tensors of the set never ends. Nanoseconds. Control loop only.
class StepTimes {
 public:
  static constexpr size_t kStepsOpenMax = 16;  // the oldest is given up

  struct Ended {
    // From the end of the step that ended before; of the first one, from its first submission.
    uint64_t step_ns = 0;
    // From the last submission of this node to the last result.
    uint64_t exposed_ns = 0;
    // By local rank, from its own last submission: to the last result, and how much later it came
    // than that of the first rank.
    std::vector<uint64_t> wait_ns;
    std::vector<uint64_t> late_ns;
  };

  explicit StepTimes(size_t local_ranks) : local_ranks_(local_ranks) {}

  // A tensor of the step was submitted.
  void on_submit(uint32_t local_rank, uint64_t step, uint64_t now_ns);
  // The step's last result is there.
  std::optional<Ended> on_end(uint64_t step, uint64_t now_ns);

 private:
  struct OpenStep {
    uint64_t step = 0;
    uint64_t first_ns = 0;
    std::vector<uint64_t> last_ns;  // by local rank
  };
  OpenStep& open(uint64_t step, uint64_t now_ns);

  const size_t local_ranks_;
  std::deque<OpenStep> open_;
  std::optional<uint64_t> last_end_ns_;
};

}  // namespace braid
