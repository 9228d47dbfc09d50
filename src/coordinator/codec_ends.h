// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "coordinator/set_plans.h"
#include "planning/codec_guard.h"

namespace braid {

// Ends the codecs of a job that lose too much. What loses too much goes plain at one step on all
// nodes, by a plan that changes nothing else; that plan is proposed until it holds. Control loop
// only; it lives as long as the job.
class CodecEnds {
 public:
  // Readings of many groups come together, and metrics are looked at much more seldom.
  static constexpr uint32_t kBoardDelayMs = 100;

  CodecEnds(const PlannedJob& job, const GuardOptions& options);
  ~CodecEnds();
  CodecEnds(const CodecEnds&) = delete;
  CodecEnds& operator=(const CodecEnds&) = delete;

  void on_sample(NodeId from, const CodecSample& sample);
  // What is to be proposed for a set; nothing: no codec of it is to end.
  std::optional<PlanProposal> next(uint64_t set, const SetPlans& plans) const;
  // The end of such a proposal.
  void on_end(const PlanProposal& proposal, bool holds);
  // The groups without codec apart.
  std::vector<std::vector<uint64_t>> part(uint64_t set,
                                          const std::vector<std::vector<uint64_t>>& groups) const;
  // All nodes have unregistered the set.
  void forget(uint64_t set);

  const CodecGuard& guard() const { return guard_; }

 private:
  struct Set {
    std::vector<PlainGroup> leaving;  // whose codec is to end
    std::set<uint64_t> plain;         // tensors whose codec has ended
    uint64_t notice_steps = kNoticeStepsMin;
  };
  void show_readings();

  const PlannedJob& job_;
  CodecGuard guard_;
  std::map<uint64_t, Set> sets_;
  Timer board_timer_;  // active while the board has not all readings
};

}  // namespace braid
