// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace braid {

// How many chunks of a link may be sent a second time: a share of those that were sent, and a few
// ahead (a token bucket). Not thread-safe.
class OverdueBudget {
 public:
  static constexpr double kAheadMax = 4;

  explicit OverdueBudget(uint32_t percent) : share_(percent / 100.0), left_(percent == 0 ? 0 : 1) {}

  void on_sent() { left_ = std::min(left_ + share_, kAheadMax); }
  bool has_any() const { return left_ >= 1; }
  void take() { left_ -= 1; }

 private:
  const double share_;
  double left_;
};

}  // namespace braid
