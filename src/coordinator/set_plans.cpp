// SPDX-License-Identifier: Apache-2.0
#include "coordinator/set_plans.h"

#include <utility>

namespace braid {

SetPlans::SetPlans(const PlannedJob& job, OnEnd on_end)
    : job_(job), on_end_(std::move(on_end)), timer_(job.loop) {}

void SetPlans::propose(PlanProposal proposal) {
  proposal.job_key = job_.key;
  proposal.number = ++last_number_;
  accepted_.clear();
  proposal_ = std::move(proposal);
  for (const NodeId node : job_.nodes) job_.send(node, make_plan_proposal(*proposal_));
  timer_.start_once(job_.answer_timeout_ms, [this] {
    BRAID_LOG_WARN(LogFields{.job = job_.label},
                   "job '{}': {} of {} nodes answered to plan {} within {} ms: dropped",
                   job_.label.name, accepted_.size(), job_.nodes.size(), proposal_->number,
                   job_.answer_timeout_ms);
    conclude(End::Dropped);
  });
}

void SetPlans::on_answer(NodeId from, const proto::PlanAnswer& answer) {
  if (!proposal_ || proposal_->number != answer.number() || answer.step() > kStepNumberMax) return;
  see_step(answer.step());
  if (!answer.accepted()) {
    BRAID_LOG_DEBUG("job '{}': plan {} came too late for a node that is in step {} already",
                    job_.label.name, answer.number(), answer.step());
    return conclude(End::Refused);
  }
  accepted_.insert(from);
  if (accepted_.size() == job_.nodes.size()) conclude(End::Holds);
}

void SetPlans::drop() {
  if (proposal_) conclude(End::Dropped);
}

void SetPlans::conclude(End end) {
  timer_.stop();
  const PlanProposal proposal = std::move(*proposal_);
  proposal_.reset();
  if (end == End::Holds) {
    number_ = proposal.number;
    from_step_ = proposal.from_step;
    if (!proposal.is_plain()) like_number_ = proposal.number;
  }
  for (const NodeId node : job_.nodes)
    job_.send(node, make_plan_verdict(proposal, end == End::Holds));
  on_end_(proposal, end);
}

}  // namespace braid
