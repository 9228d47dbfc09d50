// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/hash_tree.h"
#include "base/log.h"
#include "messages/plan_messages.h"
#include "operation/job_numbers.h"
#include "operation/operation_form.h"
#include "planning/carry_meter.h"
#include "planning/codec_guard.h"
#include "planning/finite_look.h"
#include "planning/operation_meter.h"
#include "planning/plan_meter.h"
#include "planning/plan_set.h"
#include "planning/step_clock.h"
#include "planning/step_times.h"

namespace braid {

// What the job's guard says, and where.
struct GuardNews {
  uint32_t every_steps = 0;                           // 0: nothing is sampled
  std::string coordinator;                            // the node that has the readings
  std::optional<std::vector<GuardReading>> readings;  // nothing: this is another node
};

// The plans of one job as one node knows them: puts each submission of a planned tensor into the
// group that its step's plan has for it, measures, reports to the coordinator, and takes new plans.
//
// A plan changes on all nodes at the same step, in two phases: a node that accepts a proposal keeps
// submissions of `from_step` and later steps back until the verdict, so that no node can begin the
// step before all know its plan; with the step far enough ahead nothing is ever kept back. Control
// loop only.
class PlanBook {
 public:
  static constexpr uint64_t kStepsPerReport = 6;
  // The quantile, over the steps kept, of the ready times that plans are made for.
  static constexpr double kReadyQuantile = 0.75;
  static constexpr size_t kSetsMax = 1024;

  struct Actions {
    std::function<Status(ControlBuffer&)> send;  // to the coordinator
    // The first step that goes with these settings begins. Streams, flows and window of 0: as
    // configured.
    std::function<void(const TransferSettings&)> use = [](const TransferSettings&) {};
    // Links will be asked for so many flows.
    std::function<void(uint32_t flows)> add_flows = [](uint32_t) {};
    // Tensors of so many elements together, among several nodes, are to travel with this codec.
    std::function<Result<std::shared_ptr<const CodedTensors>>(const CodecSpec&, uint64_t elements)>
        code = [](const CodecSpec&, uint64_t) { return std::make_shared<const CodedTensors>(); };
    // What this node is to keep of tensors of so many elements, whose owners update them.
    std::function<Result<std::shared_ptr<ShardState>>(uint64_t elements, uint32_t slots, DataType)>
        keep = [](uint64_t, uint32_t, DataType) { return std::shared_ptr<ShardState>(); };
    // What this node has done so far, for all jobs.
    std::function<CarriedWork()> work = [] { return CarriedWork(); };
  };

  // `sample_every_steps`: see JobStart. `numbers`: of a job with these ranks.
  PlanBook(JobLabel job, uint64_t job_key, uint32_t nodes, std::vector<uint32_t> local_ranks,
           Actions actions, uint32_t sample_every_steps = 0,
           std::shared_ptr<JobNumbers> numbers = nullptr);

  // Planned tensors that a trainer registers, in this order, made ready for what follows.
  class Candidate;
  // What makes one may be called by any thread, whatever has become of this object; of hundred
  // thousands of tensors it takes long. Sets that were added since it was asked for are not known.
  using Preparer =
      std::function<std::shared_ptr<Candidate>(uint64_t set, PlanSet::Tensors tensors)>;
  Preparer preparer() const;
  // A registration is all of its candidate's tensors checked, then add(), then all of them
  // indexed; in pieces, so that nobody is held up. Mismatch: another trainer's set of this id, or
  // with one of these tensors, is another one.
  Status check(uint32_t local_rank, const Candidate& candidate, size_t first, size_t count) const;
  Status add(uint32_t local_rank, Candidate& candidate);
  void index(const Candidate& candidate, size_t first, size_t count);
  // The rank has no operation of the set left and submits none any more. When all ranks of this
  // node have said so the set goes: this returns what is to be freed, for another thread, and each
  // of its tensors is to be taken out of the index, in pieces. Else nullptr.
  std::shared_ptr<void> remove(uint32_t local_rank, uint64_t set);
  void remove_from_index(uint64_t tensor) { set_of_tensor_.remove(tensor); }
  // What takes long to free, once nothing is asked of this object any more: for another thread.
  std::shared_ptr<void> take_sets();
  // What the plan says of a planned tensor's submission, of a set that was registered. Nothing: the
  // submission was taken, and on_verdict() gives it back.
  Result<std::optional<PlannedTensor>> plan(Submission& submission, uint64_t set, uint64_t now_ns);

  // To be called for all operations; those of planned tensors count. See OperationMeter.
  void on_start(const OperationKey& key, uint64_t bytes);
  void on_go(const OperationKey& key, uint64_t now_ns, uint64_t carried);
  Status on_done(const OperationKey& key, uint64_t now_ns, uint64_t carried);
  // What a planned operation that was sampled has lost.
  Status on_loss(const OperationKey& key, const CodecLoss& loss);

  Status on_proposal(const PlanProposal& proposal);
  struct PlannedSubmission {
    Submission submission;
    PlannedTensor planned;
  };
  // Those that were kept back until now, in their order.
  Result<std::vector<PlannedSubmission>> on_verdict(const proto::PlanVerdict& verdict);

  bool holds_submissions() const;
  bool holds_submissions_of(uint32_t local_rank) const;
  // An error when submissions were kept back beyond their deadline.
  Status check_deadlines(uint64_t now_ns) const;

  // What the plans are made for.
  struct Circumstances {
    uint32_t streams = 1;
    uint32_t io_threads = 1;  // of this node: what encodes
  };
  // Everything about the plans, for people and tools: see docs/planning.md.
  // What makes it may be called by any thread, whatever has become of this object: of thousands of
  // tensors it takes far longer than a loop should be held up.
  using JsonMaker = std::function<std::string()>;
  JsonMaker json_maker(const Circumstances& circumstances, const GuardNews& guard = {}) const;
  std::string to_json(const Circumstances& circumstances, const GuardNews& guard = {}) const {
    return json_maker(circumstances, guard)();
  }
  bool is_empty() const { return sets_.empty(); }
  // The settings of the latest plan of the first set that has any; nullptr: those of the
  // configuration.
  std::shared_ptr<const TransferSettings> settings() const;
  // What the latest steps of the largest set have cost; nullptr: there is none.
  const StepTimes* step_times() const { return largest_ == nullptr ? nullptr : &largest_->times; }
  // By local rank: planned gradients that it gave and that were seen not to be finite.
  const std::vector<NotFiniteSteps>& not_finite() const { return not_finite_; }

 private:
  struct Held {
    Submission submission;
    uint32_t tensor = 0;  // its place in the set
    uint64_t submitted_ns = 0;
  };
  struct Set {
    Set(const JobHash& job, uint64_t id, std::vector<PlanSet::Tensor> tensors, uint32_t local_ranks)
        : set(job, id, std::move(tensors)),
          bytes(set.bytes()),
          meter(static_cast<uint32_t>(set.tensors().size()), local_ranks),
          times(local_ranks),
          unregistered(local_ranks) {}
    PlanSet set;
    const uint64_t bytes;
    std::vector<bool> is_loaded;  // by tensor: it has weights
    PlanMeter meter;
    StepClock clock;
    StepTimes times;
    std::vector<bool> unregistered;  // by local rank
    uint32_t plan_begun = 0;         // the latest of which a submission was passed on
    std::shared_ptr<const TransferSettings> settings_begun;  // of that plan
    std::optional<uint64_t> begun_step;  // the latest of which a submission was passed on
    uint64_t steps_reported = 0;
    uint32_t plan_measured = 0;  // the number of the plan that the last complete step followed
    std::optional<PlanProposal> pending;  // accepted, without verdict
    std::vector<Held> held;
    std::string planner = "first";  // what made the plan that holds
    uint64_t predicted_ns = 0;
    std::string cost;  // JSON
    // Whose codec has ended, and from which step on.
    std::vector<std::pair<uint64_t, PlainGroup>> plain;
  };
  struct ToldSet;
  static ToldSet told(const Set& set);

  Status announce(const Set& set);
  Status make_room(Set& set);
  Status check_loaded(Set& set, uint32_t tensor, const Submission& submission) const;
  Status another(uint32_t local_rank, const Candidate& candidate, size_t tensor) const;
  void begin_plan(Set& set, const PlanSet::AgreedPlan& plan);
  // `tensor`: its place in the set.
  Result<PlannedTensor> plan(Set& set, const Submission& submission, uint32_t tensor,
                             uint64_t now_ns);
  Status report(Set& set);
  void note_end(Set& set, uint64_t step, uint64_t now_ns);
  void show_no_plan();
  void show_plan(const Set& set, const PlanSet::AgreedPlan& plan);
  // plan_book_guard.cpp
  Status check_plain(const Set& set, const PlanProposal& proposal) const;
  void end_codecs(Set& set, const PlanProposal& proposal);

  const JobLabel job_;
  const uint64_t job_key_;
  const JobHash hash_;
  const uint32_t nodes_;
  const std::vector<uint32_t> local_ranks_;
  const Actions actions_;
  const uint32_t sample_every_steps_;
  const std::shared_ptr<JobNumbers> numbers_;
  using Sets = std::map<uint64_t, Set>;
  Sets sets_;
  const Set* largest_ = nullptr;
  std::vector<NotFiniteSteps> not_finite_;  // by local rank
  HashTree<uint64_t> set_of_tensor_;        // hash → set
  OperationMeter operation_meter_;
  CarryMeter carry_meter_;
};

class PlanBook::Candidate {
 private:
  friend class PlanBook;
  uint64_t id_ = 0;
  PlanSet::Tensors tensors_;
  bool is_another_ = false;  // than the set of this id
  Status sizes_;
  Sets set_;  // it, unless there is one of this id or its sizes are wrong
};

}  // namespace braid
