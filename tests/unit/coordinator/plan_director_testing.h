// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "control/fake_control_plane.h"
#include "coordinator/plan_director.h"
#include "loop/loop_testing.h"

namespace braid::testing {

// Plans job 9 with nodes 10 and 20. Four tensors of a million bytes; two of them become ready at
// once and the others 20 ms later.
class PlanDirectorTest : public testing::LoopTest {
 protected:
  static constexpr NodeId kNodes[] = {10, 20};
  static constexpr uint64_t kSet = 5;
  static constexpr uint64_t kIterationNs = 100'000'000;  // three in the time for a notice
  static constexpr uint64_t kNotice = 3;
  enum class Early { FirstTwo, EvenOnes };

  void make(PlanningOptions options = {}) {
    if (options.planner == nullptr) options.planner = *find_planner("exact");
    options.streams = 1;
    start(options);
  }
  void start(PlanningOptions options) {
    director_ = std::make_unique<PlanDirector>(
        PlannedJob{
            *loop_,
            JobLabel{"train"},
            9,
            {std::begin(kNodes), std::end(kNodes)},
            [this](NodeId to, ControlBuffer message) { sent_.emplace_back(to, message.Release()); },
            options.answer_timeout_ms},
        options);
  }

  PlanReport report(uint32_t plan, Early early = Early::FirstTwo) {
    PlanReport result;
    result.job_key = 9;
    result.set = set_;
    result.plan = plan;
    result.step = step_;
    result.tensors = {100, 101, 102, 103};
    result.counts.assign(4, 250'000);
    result.dtypes.assign(4, DataType::Float32);
    result.ready_ns.assign(4, 0);
    result.ready_ns[early == Early::FirstTwo ? 2 : 1] = 20'000'000;
    result.ready_ns[3] = 20'000'000;
    result.forward_ns = 1'000'000;
    result.iteration_ns = kIterationNs;
    return result;
  }
  // 10 ms and a nanosecond for each byte.
  static void add_units(PlanReport& report, uint64_t startup_ns = 10'000'000) {
    for (uint64_t bytes = 1000; bytes <= 10'000'000; bytes *= 10)
      report.operations.push_back({bytes, bytes, startup_ns + bytes});
  }
  PlanReport measured(uint32_t plan, Early early = Early::FirstTwo) {
    PlanReport result = report(plan, early);
    add_units(result);
    return result;
  }
  void tell(NodeId from, const PlanReport& report) {
    auto message = make_plan_report(report);
    director_->on_control_message(from, as_message(message));
  }
  void tell_all(const PlanReport& report) {
    for (const NodeId node : kNodes) tell(node, report);
  }
  void answer(NodeId from, uint32_t number, bool accepted) {
    PlanProposal proposal;
    proposal.set = set_;
    proposal.number = number;
    auto message = make_plan_answer(proposal, accepted, step_);
    director_->on_control_message(from, as_message(message));
  }

  void register_set(NodeId from, uint64_t tensors_hash = 77) {
    auto message = make_set_registered({9, set_, tensors_hash, 4'000'000, 4});
    director_->on_control_message(from, as_message(message));
  }
  void register_all(uint64_t tensors_hash = 77) {
    for (const NodeId node : kNodes) register_set(node, tensors_hash);
  }
  void tell_step(NodeId from, uint32_t plan, uint64_t step, uint64_t nanoseconds) {
    auto message = make_step_report({9, set_, plan, step, nanoseconds});
    director_->on_control_message(from, as_message(message));
  }
  void unregister(NodeId from) {
    auto message = make_set_unregistered(9, set_);
    director_->on_control_message(from, as_message(message));
  }
  void unregister_all() {
    for (const NodeId node : kNodes) unregister(node);
  }

  template <typename Table>
  std::vector<const Table*> sent_to(NodeId node) const {
    std::vector<const Table*> found;
    for (const auto& [to, bytes] : sent_) {
      const proto::ControlMessage* message =
          flatbuffers::GetRoot<proto::ControlMessage>(bytes.data());
      const auto* table = message->body_as<Table>();
      if (to == node && table != nullptr) found.push_back(table);
    }
    return found;
  }
  // The one proposal that all nodes got.
  PlanProposal proposed() {
    EXPECT_EQ(sent_to<proto::PlanProposal>(20).size(), 1u);
    const auto proposals = sent_to<proto::PlanProposal>(10);
    EXPECT_EQ(proposals.size(), 1u);
    return proposals.empty() ? PlanProposal() : parse_plan_proposal(*proposals[0]).value();
  }
  // Node by node, whether the last proposal holds.
  std::vector<bool> verdicts() const {
    std::vector<bool> result;
    for (const NodeId node : kNodes) {
      for (const auto* verdict : sent_to<proto::PlanVerdict>(node))
        result.push_back(verdict->holds());
    }
    return result;
  }
  // All nodes agree with the proposal that was just sent. What is proposed thereupon is kept.
  void accept() {
    const uint32_t number = proposed().number;
    sent_.clear();
    for (const NodeId node : kNodes) answer(node, number, true);
    EXPECT_EQ(verdicts(), (std::vector<bool>{true, true}));
    forget_verdicts();
  }
  void forget_verdicts() {
    std::erase_if(sent_, [](const auto& one) {
      return flatbuffers::GetRoot<proto::ControlMessage>(one.second.data())
                 ->template body_as<proto::PlanVerdict>() != nullptr;
    });
  }
  // The first plan holds, as number 1.
  void run_first() {
    tell_all(measured(0));
    accept();
  }
  // Rounds of reports until something is proposed.
  uint32_t rounds_until_proposal(uint32_t plan, Early early) {
    for (uint32_t round = 1; round < 200; ++round) {
      tell_all(report(plan, early));
      if (!sent_.empty()) return round;
    }
    return 0;
  }

  uint64_t set_ = kSet;
  uint64_t step_ = 7;
  std::vector<std::pair<NodeId, flatbuffers::DetachedBuffer>> sent_;
  std::unique_ptr<PlanDirector> director_;
};

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
