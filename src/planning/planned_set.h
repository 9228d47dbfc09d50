// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planning/plan_job.h"
#include "planning/plan_meter.h"
#include "planning/step_clock.h"
#include "planning/step_times.h"

namespace braid {

struct PlannedSubmission {
  Submission submission;
  PlannedTensor planned;
};

// One set of planned tensors in its course: what its ranks submit, what is measured and reported,
// and how one plan follows another. `job`, in all functions, is the set's. Control loop only, where
// nothing else is said.
class PlannedSet {
 public:
  static constexpr uint64_t kStepsPerReport = 6;
  // The quantile, over the steps kept, of the ready times that plans are made for.
  static constexpr double kReadyQuantile = 0.75;
  // What made the plan that holds.
  struct Origin {
    std::string planner = "first";
    uint64_t predicted_ns = 0;
    std::string cost{};  // JSON
  };

  // Any thread.
  PlannedSet(const JobHash& job, uint64_t id, PlanSet::Tensors tensors, uint32_t local_ranks);

  // Once, before anything else: takes what the node keeps of the set, and tells the coordinator.
  Status begin(const PlanJob& job);

  const PlanSet& set() const { return set_; }
  uint64_t bytes() const { return bytes_; }
  const PlanMeter& meter() const { return meter_; }
  const StepTimes& times() const { return times_; }
  const Origin& origin() const { return origin_; }
  // Whose codec has ended, and from which step on.
  const std::vector<std::pair<uint64_t, PlainGroup>>& plain() const { return plain_; }
  // By local rank.
  std::vector<bool>& unregistered() { return unregistered_; }

  // See PlanBook. `tensor`: its place in the set.
  Result<std::optional<PlannedTensor>> plan(PlanJob& job, Submission& submission, uint32_t tensor,
                                            uint64_t now_ns);
  // One of the operations of a step has ended. Something: it was the step's last one.
  std::optional<StepClock::End> on_done(PlanJob& job, uint64_t step, uint64_t now_ns);
  Status on_loss(const PlanJob& job, const OperationKey& key, const CodecLoss& loss) const;
  Status on_proposal(const PlanJob& job, const PlanProposal& proposal);
  Result<std::vector<PlannedSubmission>> on_verdict(PlanJob& job,
                                                    const proto::PlanVerdict& verdict);

  bool holds_submissions() const { return !held_.empty(); }
  bool holds_submissions_of(uint32_t local_rank) const;
  Status check_deadlines(const PlanJob& job, uint64_t now_ns) const;

 private:
  struct Held {
    Submission submission;
    uint32_t tensor = 0;  // its place in the set
    uint64_t submitted_ns = 0;
  };

  Status check_kind(const PlanJob& job, const Submission& submission, uint32_t tensor) const;
  Status check_loaded(const PlanJob& job, const Submission& submission, uint32_t tensor);
  Result<PlannedTensor> pass_on(PlanJob& job, const Submission& submission, uint32_t tensor,
                                uint64_t now_ns);
  void begin_plan(PlanJob& job, const PlanSet::AgreedPlan& plan);
  Status report(PlanJob& job);
  void adopt(const PlanJob& job, const PlanProposal& proposal);
  void end_codecs(const PlanJob& job, const PlanProposal& proposal);

  PlanSet set_;
  const uint64_t bytes_;
  std::vector<bool> is_loaded_;  // by tensor: it has weights
  PlanMeter meter_;
  StepClock clock_;
  StepTimes times_;
  std::vector<bool> unregistered_;
  uint32_t plan_begun_ = 0;  // the latest of which a submission was passed on
  std::shared_ptr<const TransferSettings> settings_begun_;  // of that plan
  std::optional<uint64_t> begun_step_;  // the latest of which a submission was passed on
  uint64_t steps_reported_ = 0;
  uint32_t plan_measured_ = 0;  // the number of the plan that the last complete step followed
  std::optional<PlanProposal> pending_;  // accepted, without verdict
  std::vector<Held> held_;
  Origin origin_;
  std::vector<std::pair<uint64_t, PlainGroup>> plain_;
};

}  // namespace braid
