// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "net/flow_choice.h"

namespace braid {

// Which flow of a link should be opened again, because it stays slow: another source port may take
// another path through the network. Not thread-safe.
class SlowFlows {
 public:
  static constexpr uint64_t kLookEveryNs = 1'000'000'000;
  static constexpr uint32_t kSlowLooks = 4;  // in a row
  // Until the same flow may be opened again: doubles each time, so that a flow which finds nothing
  // better is left in peace.
  static constexpr uint64_t kPauseNsMin = 10'000'000'000;
  static constexpr uint64_t kPauseNsMax = 640'000'000'000;

  // `slow_percent` of the median rate of the link's flows: what stays below is slow; 0: nothing is.
  explicit SlowFlows(uint32_t slow_percent) : slow_percent_(slow_percent) {}

  // Is it time to look again?
  bool is_due(uint64_t now_ns) const { return slow_percent_ != 0 && now_ns >= next_look_ns_; }
  // One look at all flows with their measured rates; flows may be added. Returns the flow to open
  // again, or kNoFlow.
  size_t look(std::span<const FlowLoad> flows, uint64_t now_ns);

 private:
  struct History {
    uint32_t slow_looks = 0;
    uint64_t pause_ns = kPauseNsMin;
    uint64_t not_before_ns = 0;
  };

  std::vector<History> histories_;
  const uint32_t slow_percent_;
  uint64_t next_look_ns_ = 0;
};

}  // namespace braid
