// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "messages/plan_messages.h"
#include "planner/fit_cost.h"

namespace braid {

// The reports of all nodes, under one plan.
struct PlanRound {
  std::vector<PlanReport> reports;
  std::vector<CostMeasurement> measured;  // that came with them

  uint64_t step() const;          // the latest
  uint64_t iteration_ns() const;  // the longest; 0: not measured
};

// The rounds of reports of one set, and when they call for another plan. Each plan holds for twice
// as many rounds as the one before it, unless iterations have become longer or shorter than they
// were: then the network, or the model, is another.
//
// On a busy machine every other round differs, and says nothing. So a change counts only if it
// lasts: the first one for a round, and each that follows for twice as many as the one before it,
// until rounds have been alike for long. Whatever the times are, plans thus become rare. Control
// loop only.
class PlanRounds {
 public:
  // If iterations are now at least 25 % longer or shorter than just after the plan was made, the
  // plan no longer fits.
  static constexpr double kIterationChangeMin = 0.25;
  // So much slower or faster all-reduces than when the set was last looked at are those of another
  // network. More than for iterations, because plans differ in the sizes that they measure.
  static constexpr double kNetworkChangeMin = 0.5;
  static constexpr uint32_t kRoundsMax = 64;  // that a plan holds for, and that a change must last
  static constexpr uint32_t kAlikeRoundsMin = 256;  // then a change counts at once again

  // A node's report about the plan that holds. With the last node's the round is complete.
  std::optional<PlanRound> add(NodeId from, PlanReport report,
                               std::span<const CostMeasurement> measured, size_t nodes);
  // Counts the round. `slowness` of its all-reduces, 0: not known. True: this round, with those
  // before it, differs so much from what was that another plan may be better at once.
  bool has_changed(const PlanRound& round, double slowness);
  // What has_changed() compares with, if there is nothing yet.
  void note_slowness(double slowness);
  bool may_replace() const { return count_ >= rounds_to_hold_; }
  uint32_t count() const { return count_; }  // since the plan began

  void begin_plan();
  // The plan that holds may be replaced by the next round.
  void hold_no_longer() { rounds_to_hold_ = 0; }
  void drop_reports();
  // All that was measured.
  void forget();

 private:
  void take_change();

  std::map<NodeId, PlanReport> reports_;  // of the next round
  std::vector<CostMeasurement> measured_;
  uint32_t count_ = 0;
  uint32_t rounds_to_hold_ = 0;
  uint64_t iteration_ns_ = 0;  // in the plan's first round; 0: not measured
  double slowness_ = 0;
  // The latest rounds, as far as each of them differs from these two.
  struct Reading {
    uint64_t iteration_ns = 0;
    double slowness = 0;
  };
  std::vector<Reading> differing_;
  uint32_t rounds_to_change_ = 1;  // how many must differ, one after the other
  uint32_t rounds_alike_ = 0;      // since the last one that differed
};

}  // namespace braid
