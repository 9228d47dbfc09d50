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
// tensors of the set never ends. The latest steps are kept. Nanoseconds. Control loop only.
class StepTimes {
 public:
  static constexpr size_t kStepsOpenMax = 16;  // the oldest is given up

  static constexpr size_t kStepsKept = 64;

  struct Ended {
    uint64_t step = 0;
    uint64_t ended_ns = 0;
    // From the end of the step that ended before; of the first one, from its first submission.
    uint64_t step_ns = 0;
    // From the last submission of this node to the last result; where steps overlap, from the end
    // of the one before. wait_ns likewise.
    uint64_t exposed_ns = 0;
    // By local rank, from its own last submission: to the last result, and how much later it came
    // than that of the first rank.
    std::vector<uint64_t> wait_ns;
    std::vector<uint64_t> late_ns;
    // From the end of the step before to its own first submission; 0: there was none before.
    std::vector<uint64_t> before_ns;
    // From its own first submission to its last one.
    std::vector<uint64_t> backward_ns;
  };

  explicit StepTimes(size_t local_ranks) : local_ranks_(local_ranks) {}

  // A tensor of the step was submitted.
  void on_submit(uint32_t local_rank, uint64_t step, uint64_t now_ns);
  // The step's last result is there.
  std::optional<Ended> on_end(uint64_t step, uint64_t now_ns);
  // The latest kStepsKept, in the order in which they ended, without the first one.
  const std::deque<Ended>& kept() const { return kept_; }
  std::optional<uint64_t> last_end_ns() const { return last_end_ns_; }

 private:
  struct OpenStep {
    uint64_t step = 0;
    uint64_t opened_ns = 0;
    // By local rank.
    std::vector<uint64_t> first_ns;  // 0: nothing yet
    std::vector<uint64_t> last_ns;
  };
  OpenStep& open(uint64_t step, uint64_t now_ns);

  const size_t local_ranks_;
  std::deque<OpenStep> open_;
  std::optional<uint64_t> last_end_ns_;
  std::deque<Ended> kept_;
};

}  // namespace braid
