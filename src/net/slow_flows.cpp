// SPDX-License-Identifier: Apache-2.0
#include "net/slow_flows.h"

#include <algorithm>

namespace braid {

size_t SlowFlows::look(std::span<const FlowLoad> flows, uint64_t now_ns) {
  next_look_ns_ = now_ns + kLookEveryNs;
  const double slow = median_rate(flows) * slow_percent_ / 100;
  size_t chosen = kNoFlow;
  histories_.resize(flows.size());
  for (size_t at = 0; at < flows.size(); ++at) {
    History& history = histories_[at];
    const double rate = flows[at].bytes_per_second;
    if (!flows[at].is_open || rate <= 0) continue;  // nothing new is known
    if (rate >= slow) {
      history = History{};
      continue;
    }
    ++history.slow_looks;
    if (history.slow_looks < kSlowLooks || now_ns < history.not_before_ns) continue;
    if (chosen == kNoFlow || rate < flows[chosen].bytes_per_second) chosen = at;
  }
  if (chosen != kNoFlow) {  // one at a time: the others carry its share meanwhile
    History& history = histories_[chosen];
    history.slow_looks = 0;
    history.not_before_ns = now_ns + history.pause_ns;
    history.pause_ns = std::min(2 * history.pause_ns, kPauseNsMax);
  }
  return chosen;
}

}  // namespace braid
