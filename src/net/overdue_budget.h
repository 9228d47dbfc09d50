// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace braid {

// How many chunks of a link may be sent a second time: a share of those that were sent, and some
// ahead (a token bucket). A flow that is stuck holds several chunks, and while an operation waits
// for them nothing is sent that would earn more: so there must be enough for a few such flows.
// Not thread-safe.
class OverdueBudget {
 public:
  static constexpr double kAheadMax = 64;
  static constexpr double kAheadAtFirst = 16;
  static constexpr double kPatienceMax = 8;

  explicit OverdueBudget(uint32_t percent)
      : share_(percent / 100.0), left_(percent == 0 ? 0 : kAheadAtFirst) {}

  void on_sent() { left_ = std::min(left_ + share_, kAheadMax); }
  bool has_any() const { return left_ >= 1; }
  void take() { left_ -= 1; }
  // How much longer than usual a chunk must wait before it is overdue: 1 while much is left, more
  // as it runs out. So what there is goes to those that are stuck for longest.
  double patience() const { return std::min(kAheadMax / std::max(left_, 1.0), kPatienceMax); }

 private:
  const double share_;
  double left_;
};

}  // namespace braid
