// SPDX-License-Identifier: Apache-2.0
#include "planning/plan_book.h"

#include <algorithm>

namespace braid {

PlanBook::PlanBook(const JobLabel& job, uint64_t job_key, uint32_t nodes,
                   const std::vector<uint32_t>& local_ranks, PlanActions actions,
                   uint32_t sample_every_steps, std::shared_ptr<JobNumbers> numbers)
    : hash_(job_key),
      job_{job,
           job_key,
           nodes,
           local_ranks,
           std::move(actions),
           sample_every_steps,
           numbers != nullptr ? std::move(numbers)
                              : std::make_shared<JobNumbers>(job.name, local_ranks),
           std::vector<NotFiniteSteps>(local_ranks.size()),
           OperationMeter(nodes),
           {},
           {}} {}

PlanBook::Preparer PlanBook::preparer() const {
  std::vector<std::pair<uint64_t, std::shared_ptr<const PlanSet::Tensors>>> known;
  known.reserve(sets_.size());
  for (const auto& [id, set] : sets_) known.emplace_back(id, set.set().shared_tensors());
  return [known = std::move(known), hash = hash_,
          local_ranks = static_cast<uint32_t>(job_.local_ranks.size())](uint64_t id,
                                                                        PlanSet::Tensors tensors) {
    auto candidate = std::make_shared<Candidate>();
    candidate->id_ = id;
    candidate->tensors_ = std::move(tensors);
    const auto same = std::ranges::find(known, id, &decltype(known)::value_type::first);
    // An id is a hash: it says that sets are the same only where they are.
    if (same != known.end()) {
      candidate->is_another_ = !PlanSet::are_of(*same->second, candidate->tensors_);
      return candidate;
    }
    candidate->sizes_ = PlanSet::check_sizes(candidate->tensors_);
    if (candidate->sizes_)
      candidate->set_.try_emplace(id, hash, id, candidate->tensors_, local_ranks);
    return candidate;
  };
}

Status PlanBook::another(uint32_t local_rank, const Candidate& candidate, size_t tensor) const {
  const PlanSet::Tensor& other = candidate.tensors_[tensor];
  return make_status(
      StatusCode::Mismatch,
      "job '{}': rank {} registers '{}' ({} × {}) among {} planned tensors that "
      "are not those of another rank on this node: count, dtype, codec, state slots, name and "
      "order "
      "must be the same on all ranks",
      job_.label.name, job_.local_ranks[local_rank], *other.name, to_string(other.dtype),
      other.count, candidate.tensors_.size());
}

Status PlanBook::check(uint32_t local_rank, const Candidate& candidate, size_t first,
                       size_t count) const {
  const size_t end = std::min(first + count, candidate.tensors_.size());
  for (size_t i = first; i < end; ++i) {
    const uint64_t* known = set_of_tensor_.find(candidate.tensors_[i].hash);
    if (known != nullptr && *known != candidate.id_) return another(local_rank, candidate, i);
  }
  return Status::ok();
}

Status PlanBook::add(uint32_t local_rank, Candidate& candidate) {
  if (candidate.is_another_) return another(local_rank, candidate, 0);
  if (const auto known = sets_.find(candidate.id_); known != sets_.end()) {
    known->second.unregistered()[local_rank] = false;
    return Status::ok();
  }
  if (sets_.size() >= kSetsMax) {
    return make_status(StatusCode::ResourceExhausted,
                       "job '{}': more than {} sets of planned tensors", job_.label.name, kSetsMax);
  }
  BRAID_RETURN_IF_ERROR(candidate.sizes_.with_context(
      fmt::format("job '{}': rank {}", job_.label.name, job_.local_ranks[local_rank])));
  BRAID_RETURN_IF_ERROR(candidate.set_.at(candidate.id_).begin(job_));
  const PlannedSet& set = sets_.insert(candidate.set_.extract(candidate.id_)).position->second;
  show_plan(set, set.set().current());
  return job_.nodes > 1 ? announce(set) : Status::ok();
}

void PlanBook::index(const Candidate& candidate, size_t first, size_t count) {
  const size_t end = std::min(first + count, candidate.tensors_.size());
  for (size_t i = first; i < end; ++i)
    set_of_tensor_.add(candidate.tensors_[i].hash, candidate.id_);
}

std::shared_ptr<void> PlanBook::remove(uint32_t local_rank, uint64_t set) {
  const auto position = sets_.find(set);
  if (position == sets_.end()) return nullptr;
  std::vector<bool>& unregistered = position->second.unregistered();
  unregistered[local_rank] = true;
  if (std::ranges::find(unregistered, false) != unregistered.end()) return nullptr;
  job_.rhythm.forget(set);
  const bool was_largest = largest_ == &position->second;
  auto removed = std::make_shared<Sets::node_type>(sets_.extract(position));
  if (was_largest) {
    largest_ = nullptr;
    show_no_plan();
    for (const auto& [id, other] : sets_) show_plan(other, other.set().current());
  }
  // A trial of its tuning ends with it.
  if (const PlanSet& gone = removed->mapped().set(); gone.current().reports_steps) {
    TransferSettings configured;
    configured.streams = configured.flows = configured.window_bytes = 0;
    const auto others = settings();
    job_.actions.use(others != nullptr ? *others : configured);
  }
  // Where the coordinator is lost the job ends by that.
  auto message = make_set_unregistered(job_.key, set);
  if (job_.nodes > 1) (void)job_.actions.send(message);
  return removed;
}

std::shared_ptr<void> PlanBook::take_sets() {
  largest_ = nullptr;
  return std::make_shared<std::pair<Sets, HashTree<uint64_t>>>(std::move(sets_),
                                                               std::move(set_of_tensor_));
}

Status PlanBook::announce(const PlannedSet& set) {
  const PlanSet& known = set.set();
  auto message = make_set_registered({job_.key, known.id(), known.tensors_hash(), known.bytes(),
                                      static_cast<uint32_t>(known.tensors().size())});
  return job_.actions.send(message);
}

PlannedSet* PlanBook::find(uint64_t set) {
  const auto position = sets_.find(set);
  return position == sets_.end() ? nullptr : &position->second;
}

PlannedSet* PlanBook::set_of(uint64_t tensor) {
  const uint64_t* const set = set_of_tensor_.find(tensor);
  return set == nullptr ? nullptr : find(*set);
}

Result<std::optional<PlannedTensor>> PlanBook::plan(Submission& submission, uint64_t set,
                                                    uint64_t now_ns) {
  PlannedSet* const own = find(set);
  const auto index = own == nullptr ? std::nullopt : own->set().index_of(submission.tensor);
  if (index) return own->plan(job_, submission, *index, now_ns);
  return make_status(StatusCode::Protocol,
                     "job '{}': rank {} submitted '{}', which is in none of its sets",
                     job_.label.name, job_.local_ranks[submission.local_rank], *submission.name);
}

void PlanBook::on_start(const OperationKey& key, uint64_t bytes) {
  if (set_of_tensor_.contains(key.tensor)) job_.operation_meter.on_start(key, bytes);
}

void PlanBook::on_go(const OperationKey& key, uint64_t now_ns, uint64_t carried) {
  job_.operation_meter.on_go(key, now_ns, carried);
}

Status PlanBook::on_done(const OperationKey& key, uint64_t now_ns, uint64_t carried) {
  const uint64_t* const id = set_of_tensor_.find(key.tensor);
  if (id == nullptr) return Status::ok();
  job_.operation_meter.on_done(key, now_ns, carried);
  PlannedSet* const set = find(*id);
  if (set == nullptr) return Status::ok();  // it is being taken out of the index
  const auto end = set->on_done(job_, key.step, now_ns);
  if (!end) return Status::ok();
  const PlanSet::AgreedPlan& plan = set->set().plan_of(key.step);
  show_plan(*set, plan);
  if (!end->step_ns || !plan.reports_steps) return Status::ok();
  auto message = make_step_report({job_.key, *id, plan.number, key.step, *end->step_ns});
  return job_.actions.send(message);
}

Status PlanBook::on_loss(const OperationKey& key, const CodecLoss& loss) {
  const PlannedSet* const set = set_of(key.tensor);
  return set == nullptr ? Status::ok() : set->on_loss(job_, key, loss);
}

// Shows the plan of the largest set. `plan`: the one that the set follows now.
void PlanBook::show_plan(const PlannedSet& set, const PlanSet::AgreedPlan& plan) {
  if (largest_ == nullptr || set.bytes() > largest_->bytes()) largest_ = &set;
  if (largest_ != &set) return;
  job_.numbers->planned_bytes.set(set.bytes());
  job_.numbers->plan.set(plan.number);
  job_.numbers->plan_groups.set(plan.groups.size());
  job_.numbers->predicted_ns.set(set.origin().predicted_ns);
  job_.numbers->iteration_ns.set(set.meter().iteration_ns());
  job_.numbers->is_tuning.set(plan.reports_steps ? 1 : 0);
}

void PlanBook::show_no_plan() {
  for (SharedNumber* const number :
       {&job_.numbers->planned_bytes, &job_.numbers->plan, &job_.numbers->plan_groups,
        &job_.numbers->predicted_ns, &job_.numbers->iteration_ns, &job_.numbers->is_tuning})
    number->set(0);
}

Status PlanBook::on_proposal(const PlanProposal& proposal) {
  if (PlannedSet* const set = find(proposal.set)) return set->on_proposal(job_, proposal);
  auto message = make_plan_answer(proposal, false, 0);
  return job_.actions.send(message);
}

Result<std::vector<PlannedSubmission>> PlanBook::on_verdict(const proto::PlanVerdict& verdict) {
  if (PlannedSet* const set = find(verdict.set())) return set->on_verdict(job_, verdict);
  return std::vector<PlannedSubmission>();
}

std::shared_ptr<const TransferSettings> PlanBook::settings() const {
  for (const auto& [id, set] : sets_) {
    if (set.set().current().settings != nullptr) return set.set().current().settings;
  }
  return nullptr;
}

bool PlanBook::holds_submissions() const {
  return std::ranges::any_of(sets_,
                             [](const auto& entry) { return entry.second.holds_submissions(); });
}

bool PlanBook::holds_submissions_of(uint32_t local_rank) const {
  return std::ranges::any_of(sets_, [local_rank](const auto& entry) {
    return entry.second.holds_submissions_of(local_rank);
  });
}

Status PlanBook::check_deadlines(uint64_t now_ns) const {
  for (const auto& [id, set] : sets_) BRAID_RETURN_IF_ERROR(set.check_deadlines(job_, now_ns));
  return Status::ok();
}

}  // namespace braid
