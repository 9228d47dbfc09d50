// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/hash_tree.h"
#include "planning/codec_guard.h"
#include "planning/planned_set.h"

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
  static constexpr size_t kSetsMax = 1024;

  // `sample_every_steps`: see JobStart. `numbers`: of a job with these ranks.
  PlanBook(const JobLabel& job, uint64_t job_key, uint32_t nodes,
           const std::vector<uint32_t>& local_ranks, PlanActions actions,
           uint32_t sample_every_steps = 0, std::shared_ptr<JobNumbers> numbers = nullptr);

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
  const StepTimes* step_times() const { return largest_ == nullptr ? nullptr : &largest_->times(); }
  // By local rank: planned gradients that it gave and that were seen not to be finite.
  const std::vector<NotFiniteSteps>& not_finite() const { return job_.not_finite; }

 private:
  using Sets = std::map<uint64_t, PlannedSet>;

  PlannedSet* find(uint64_t set);
  PlannedSet* set_of(uint64_t tensor);  // nullptr: of none, or it is being taken out of the index
  Status announce(const PlannedSet& set);
  Status another(uint32_t local_rank, const Candidate& candidate, size_t tensor) const;
  void show_no_plan();
  void show_plan(const PlannedSet& set, const PlanSet::AgreedPlan& plan);

  const JobHash hash_;
  PlanJob job_;
  Sets sets_;
  const PlannedSet* largest_ = nullptr;
  HashTree<uint64_t> set_of_tensor_;  // hash → set
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
