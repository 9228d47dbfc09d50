// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "planner/exact_windows.h"
#include "planner/workload.h"

namespace braid {

// A plan with the fewest groups among those that are through at the optimum. The optimum's
// recurrence does not find it: it sends every group as early as possible, but an early group may
// end later if nobody has to wait for it, and may then be larger.
//
// So the prefixes are reached with one group, then with two, and so on, until all tensors are
// through at the optimum. A prefix goes into the next round only if it ends earlier than with fewer
// groups, and early enough.
template <typename Window>
class FewestGroups {
 public:
  // `bytes[i]`: of the first i tensors. `optimum`: when all can be through. `rest_seconds[i]`: what
  // it takes at least to send all but the first i.
  FewestGroups(const Workload& workload, const std::vector<uint64_t>& bytes, const Window& window,
               double optimum, const std::vector<double>& rest_seconds)
      : workload_(workload),
        bytes_(bytes),
        window_(window),
        optimum_(optimum),
        rest_seconds_(rest_seconds) {}

  // The groups' ends, the last one first; none if the search did not find less than `groups_max`
  // groups, or gave up: it is bounded.
  std::vector<uint32_t> find(uint32_t groups_max) {
    earliest_.assign(bytes_.size(), std::numeric_limits<double>::infinity());
    rounds_ = {{Prefix{}}};
    while (rounds_.size() < groups_max && !rounds_.back().empty() && steps_ < steps_max()) {
      rounds_.push_back(next_round());
      const std::vector<Prefix>& reached = rounds_.back();
      if (!reached.empty() && reached.back().tensors + 1 == bytes_.size()) return ends();
    }
    return {};
  }

 private:
  // Complete for any 120 tensors, for 360 where the cost consists of lines, and for most plans of
  // hundreds of groups.
  static constexpr uint64_t kStepsMaxPerTensor = 32;
  // Rounding must not throw away what is just early enough.
  static constexpr double kRoom = 1 + 1e-9;

  uint64_t steps_max() const {
    return std::max<uint64_t>(Window::kStepsMax, kStepsMaxPerTensor * bytes_.size());
  }

  std::vector<Prefix> next_round() {
    const std::vector<Prefix>& from = rounds_.back();
    std::vector<Prefix> reached;
    window_.look_at(from);
    for (uint32_t tensors = from.front().tensors + 1; tensors < bytes_.size(); ++tensors) {
      while (window_.visible() < from.size() && from[window_.visible()].tensors < tensors) {
        window_.show_next();
      }
      steps_ += window_.steps();
      const double ready = workload_.tensors[tensors - 1].ready_seconds;
      const Continuation best = window_.best(ready, bytes_[tensors]);
      // Nor will longer groups end by then.
      if (best.end_seconds > optimum_ && window_.visible() == from.size()) break;
      if (best.end_seconds >= earliest_[tensors] || !is_early_enough(tensors, best)) continue;
      earliest_[tensors] = best.end_seconds;
      const uint32_t groups = from[best.place].groups + 1;
      reached.push_back({tensors, groups, bytes_[tensors], best.end_seconds, best.place});
    }
    return reached;
  }

  bool is_early_enough(uint32_t tensors, const Continuation& last) const {
    if (tensors + 1 == bytes_.size()) return last.end_seconds <= optimum_;
    return last.end_seconds + rest_seconds_[tensors] <= optimum_ * kRoom;
  }

  std::vector<uint32_t> ends() const {
    std::vector<uint32_t> ends;
    auto place = static_cast<uint32_t>(rounds_.back().size() - 1);
    for (size_t round = rounds_.size() - 1; round > 0; --round) {
      ends.push_back(rounds_[round][place].tensors);
      place = rounds_[round][place].before;
    }
    return ends;
  }

  const Workload& workload_;
  const std::vector<uint64_t>& bytes_;
  Window window_;
  const double optimum_;
  const std::vector<double>& rest_seconds_;
  std::vector<double> earliest_;             // end of each prefix with the groups so far
  std::vector<std::vector<Prefix>> rounds_;  // [n]: reached with n groups
  uint64_t steps_ = 0;
};

}  // namespace braid
