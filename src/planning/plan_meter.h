// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace braid {

// When the tensors of one set become ready on this node, step by step: what planning needs of
// backward. Costs the trainer nothing; here, a subtraction for each submission. Nanoseconds.
// Control loop only.
class PlanMeter {
 public:
  // The quantile is taken over this many steps.
  static constexpr size_t kStepsKept = 16;
  // The first steps are not kept: allocators and caches settle, and PyTorch's DDP finds its order.
  static constexpr uint64_t kStepsIgnored = 2;
  // Ranks of one node may be so many steps apart before the oldest is given up.
  static constexpr size_t kStepsOpenMax = 4;

  PlanMeter(uint32_t tensors, uint32_t local_ranks)
      : tensors_(tensors), local_ranks_(local_ranks) {}

  // True: this was the step's last one, and there is a new row.
  bool on_submit(uint32_t local_rank, uint32_t tensor, uint64_t step, uint64_t now_ns);
  // A result of the set was published.
  void on_published(uint64_t now_ns) { last_published_ns_ = now_ns; }

  uint64_t steps() const { return steps_; }  // complete ones, in all
  std::optional<uint64_t> last_step() const { return last_step_; }

  // By tensor: how long after the step's first submission of the same rank it was ready, of the
  // slowest local rank. The quantile `q` (0 … 1) over the steps kept; 0 while there are none.
  std::vector<uint64_t> ready_ns(double q) const { return kept_rows().ready_ns(q); }
  // What this is computed from, for other threads.
  struct Rows {
    uint32_t tensors = 0;
    std::vector<std::shared_ptr<const std::vector<uint64_t>>> rows;
    std::vector<uint64_t> ready_ns(double q) const;
  };
  Rows kept_rows() const { return {tensors_, {rows_.begin(), rows_.end()}}; }
  // From the last result of the step before to the first submission: optimizer, forward pass and
  // the head of backward. Median.
  uint64_t forward_ns() const;
  // From one step's first submission to the next one's. Median of those since begin_window(), or of
  // the window before while there are none.
  uint64_t iteration_ns() const;
  void begin_window();

 private:
  struct OpenStep {
    uint64_t step = 0;
    uint64_t first_ns = 0;                // of any rank
    std::vector<uint64_t> rank_first_ns;  // 0: nothing yet
    std::vector<uint64_t> ready_ns;
    uint64_t submissions = 0;
    std::optional<uint64_t> forward_ns;
  };
  OpenStep& open(uint64_t step, uint64_t now_ns);
  void close(OpenStep step);

  const uint32_t tensors_;
  const uint32_t local_ranks_;
  std::deque<OpenStep> open_;
  std::deque<std::shared_ptr<const std::vector<uint64_t>>> rows_;
  std::deque<uint64_t> forwards_;
  std::deque<uint64_t> iterations_;
  std::optional<uint64_t> last_step_;
  uint64_t last_first_ns_ = 0;
  uint64_t last_published_ns_ = 0;
  uint64_t last_window_ns_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace braid
