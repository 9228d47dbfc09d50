// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "coordinator/plan_director_testing.h"

namespace braid::testing {

// Tunes the job: a step takes less time with more flows and streams.
class PlanDirectorTuningTest : public PlanDirectorTest {
 protected:
  static constexpr uint32_t kSteps = 72;
  static constexpr uint64_t kOtherSet = 6;

  void make_tuned(bool is_planned = true) {
    PlanningOptions options;
    if (is_planned) options.planner = *find_planner("exact");
    options.streams = 1;
    options.tuning.is_on = true;
    options.tuning.defaults = defaults();
    options.tuning.steps = kSteps;
    options.tuning.pinned = pinned_;
    options.tuning.knowledge = &knowledge_;
    options.tuning.counters = &counters_;
    start(options);
  }
  // The first plan of a set that all nodes have settles.
  void begin_tuning(uint64_t tensors_hash = 77) {
    register_all(tensors_hash);
    run_first();
    tell_all(report(1));
  }
  static TransferSettings defaults() {
    TransferSettings settings;
    settings.flows = 1;
    settings.streams = 1;
    settings.chunk_bytes = 64 << 10;
    settings.two_hops_bytes = 256 << 10;
    return settings;
  }
  // How long a step takes, the slowest flow count first: a cap on each flow, and some startup. The
  // other set's operations are small: all that counts is how they are cut.
  uint64_t step_ns(const TransferSettings& settings) const {
    if (set_ == kOtherSet) return 5'000'000 + settings.unit_bytes * 5;
    const double flows = std::min(settings.flows, 4u);
    return static_cast<uint64_t>(1e6 * (10 + 80 / flows + 10.0 / settings.streams));
  }
  // Steps until the tuning is over: nodes accept what is proposed, and say what steps take. How
  // many steps it took.
  uint64_t train(uint64_t steps_max = 500) {
    uint64_t step = step_;
    for (; step < step_ + steps_max && !is_over(); ++step) {
      if (!sent_.empty()) adopt();
      if (!in_force_) continue;
      tell_step(10, plan_, step, step_ns(*in_force_) / 2);
      tell_step(20, plan_, step, step_ns(*in_force_));
    }
    return step - step_;
  }
  void adopt() {
    const PlanProposal proposal = proposed();
    EXPECT_TRUE(proposal.settings.has_value());
    EXPECT_TRUE(proposal.groups.empty());
    plan_ = proposal.number;
    in_force_ = proposal.settings;
    reports_steps_ = proposal.reports_steps;
    flows_open_ = std::max(flows_open_, proposal.flows_open);
    EXPECT_GE(flows_open_, in_force_->flows);
    accept();
  }
  // What is said of the set's tuning; null: nothing.
  nlohmann::json tuning() const {
    const std::string id = fmt::format("{:016x}", set_);
    for (const auto& one : nlohmann::json::parse(director_->tuning_json())) {
      if (one.at("set") == id) return one;
    }
    return nullptr;
  }
  std::string state() const {
    const nlohmann::json one = tuning();
    return one.is_null() ? "" : one.at("state").get<std::string>();
  }
  bool is_over() const { return state() == "over"; }

  KnowledgeStore knowledge_{""};
  TuningCounters counters_;
  std::vector<std::string> pinned_;
  uint32_t plan_ = 0;
  std::optional<TransferSettings> in_force_;
  bool reports_steps_ = false;
  uint32_t flows_open_ = 0;
};

}  // namespace braid::testing
