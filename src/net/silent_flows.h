// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace braid {

// What a flow waits for, as its link sees it.
struct FlowWait {
  bool is_open = false;
  // Since when something (a chunk, a probe) has been on its way and nothing was acknowledged; 0:
  // nothing is on its way.
  uint64_t waiting_since_ns = 0;
  uint64_t heard_at_ns = 0;    // the last acknowledgement, also of a probe
  uint64_t round_trip_ns = 0;  // what few chunks exceed; 0: not known
};

// Which flows of a link have gone silent: what they carry is not acknowledged any more, and nothing
// says why. TCP itself would try for a quarter of an hour. Looks are counted, not time, and only
// those between which another flow of the link was heard: so a node that stands still, this one or
// the other, is not taken for a silent path. Where no flow is heard, heartbeats decide whether the
// node lives; if they do not, first one flow is given up, as a test, and then all. Not thread-safe.
class SilentFlows {
 public:
  static constexpr uint64_t kLookEveryMs = 100;
  // While others are heard: so many looks, or as many as eight round trips take.
  static constexpr uint64_t kLooksMin = 10;
  static constexpr uint64_t kLooksMax = 50;
  static constexpr uint64_t kRoundTrips = 8;
  // While none is heard, until the first is given up, and from then until the others are.
  static constexpr uint64_t kLooksOfAll = 50;

  // To be called every kLookEveryMs while anything is on its way, with an entry for each flow;
  // flows may be added.
  // Returns the flows to give up; valid until the next look.
  std::span<const size_t> look(std::span<const FlowWait> flows, uint64_t now_ns);
  // A flow has waited from one look to the next: a flow that does not wait should be asked
  // whether the other node answers.
  bool wants_proof() const { return wants_proof_; }

 private:
  std::vector<uint64_t> looks_;  // of each flow: at which it waited in vain while others were heard
  std::vector<size_t> silent_;
  uint64_t looks_of_all_ = 0;
  uint64_t looked_at_ns_ = 0;
  bool was_one_given_up_ = false;  // as a test: nothing was heard since
  bool wants_proof_ = false;
};

}  // namespace braid
