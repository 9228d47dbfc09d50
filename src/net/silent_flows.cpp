// SPDX-License-Identifier: Apache-2.0
#include "net/silent_flows.h"

#include <algorithm>

namespace braid {

std::span<const size_t> SilentFlows::look(std::span<const FlowWait> flows, uint64_t now_ns) {
  const uint64_t before_ns = looked_at_ns_;
  looked_at_ns_ = now_ns;
  silent_.clear();
  looks_.resize(flows.size());
  const auto waits = [before_ns](const FlowWait& flow) {  // since the look before, or longer
    return flow.is_open && flow.waiting_since_ns != 0 && flow.waiting_since_ns <= before_ns;
  };
  wants_proof_ = std::any_of(flows.begin(), flows.end(), waits);
  const bool is_any_heard = std::any_of(
      flows.begin(), flows.end(),
      [before_ns](const FlowWait& flow) { return flow.is_open && flow.heard_at_ns > before_ns; });
  for (size_t at = 0; at < flows.size(); ++at) {
    if (!waits(flows[at])) {
      looks_[at] = 0;
    } else if (is_any_heard) {
      const uint64_t look_ns = kLookEveryMs * 1'000'000;
      const uint64_t limit =
          std::clamp(kRoundTrips * flows[at].round_trip_ns / look_ns, kLooksMin, kLooksMax);
      if (++looks_[at] >= limit) silent_.push_back(at);
    }
  }
  if (is_any_heard) was_one_given_up_ = false;
  if (is_any_heard || !wants_proof_) {
    looks_of_all_ = 0;
  } else if (++looks_of_all_ >= kLooksOfAll) {
    looks_of_all_ = 0;
    for (size_t at = 0; at < flows.size(); ++at) {
      if (waits(flows[at])) silent_.push_back(at);
    }
    if (!was_one_given_up_) {
      silent_.front() = *std::min_element(silent_.begin(), silent_.end(), [&](size_t a, size_t b) {
        return flows[a].waiting_since_ns < flows[b].waiting_since_ns;
      });
      silent_.resize(1);
    }
    was_one_given_up_ = true;
  }
  for (const size_t at : silent_) looks_[at] = 0;
  return silent_;
}

}  // namespace braid
