// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "base/log.h"
#include "loop/timer.h"
#include "messages/plan_messages.h"

namespace braid {

// A job whose plans this node directs, and the way to its nodes.
struct PlannedJob {
  Loop& loop;
  JobLabel label;
  uint64_t key = 0;
  std::vector<NodeId> nodes;
  std::function<void(NodeId to, ControlBuffer message)> send;
  uint32_t answer_timeout_ms = 0;  // for a proposal; then it is dropped
};

// A proposal's notice: how many steps it comes before the step from which it holds.
constexpr uint64_t kNoticeStepsMin = 2;
constexpr uint64_t kNoticeStepsMax = 4096;

// The numbered plans of one set of a job: the plan that holds, and the proposal that is on its way,
// if there is one. A proposal holds when all nodes have accepted it. It is dropped when a node
// refuses it, or has not answered in time. Control loop only.
class SetPlans {
 public:
  enum class End : uint8_t { Holds, Refused, Dropped };
  using OnEnd = std::function<void(const PlanProposal& proposal, End end)>;

  // `job` outlives it. `on_end` comes after the nodes were told, and may propose the next one.
  SetPlans(const PlannedJob& job, OnEnd on_end);

  // While none is on its way. Its number and its job are set here.
  void propose(PlanProposal proposal);
  bool is_proposing() const { return proposal_.has_value(); }
  void on_answer(NodeId from, const proto::PlanAnswer& answer);
  // Ends the proposal that is on its way, if there is one.
  void drop();

  uint32_t number() const { return number_; }        // of the plan that holds; 0: the first one
  uint64_t from_step() const { return from_step_; }  // of the plan that holds
  // Does this plan have the groups and settings that hold now? Plans that end codecs keep them.
  bool is_like(uint32_t plan) const { return plan >= like_number_ && plan <= number_; }
  // The latest step that a node has said to have begun or ended.
  uint64_t latest_step() const { return latest_step_; }
  void see_step(uint64_t step) { latest_step_ = std::max(latest_step_, step); }

 private:
  void conclude(End end);

  const PlannedJob& job_;
  const OnEnd on_end_;
  uint32_t number_ = 0;
  uint32_t like_number_ = 0;
  uint32_t last_number_ = 0;  // that was proposed
  uint64_t from_step_ = 0;
  uint64_t latest_step_ = 0;
  std::optional<PlanProposal> proposal_;
  std::set<NodeId> accepted_;
  Timer timer_;
};

}  // namespace braid
