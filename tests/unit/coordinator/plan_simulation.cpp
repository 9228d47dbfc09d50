// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan_simulation.h"

#include <algorithm>
#include <numeric>

#include "planning/plan_testing.h"

namespace braid::testing {
namespace {

constexpr uint64_t kSubmitNs = 2'000'000;  // between two submissions, at speed 1

TransferSettings settings_of(const OperationForm& form) {
  return form.settings == nullptr ? TransferSettings{} : *form.settings;
}

}  // namespace

PlanSimulation::PlanSimulation(Loop& loop, uint32_t seed)
    : random_(seed),
      nodes_(random(2, 4)),
      tensors_(random(3, 9)),
      ahead_(random(0, 2)),
      steps_(random(100, 250)),
      delay_max_ns_(uint64_t{random(1, 400)} * 1'000'000),
      has_tuning_(seed % 3 != 0),
      to_node_(nodes_),
      to_director_(nodes_) {
  for (uint32_t node = 0; node < nodes_; ++node) {
    std::vector<uint32_t> local_ranks(random(1, 2));
    std::iota(local_ranks.begin(), local_ranks.end(), static_cast<uint32_t>(ranks_.size()));
    books_.push_back(std::make_unique<PlanBook>(JobLabel{"train"}, kJob, nodes_, local_ranks,
                                                PlanActions{[this, node](ControlBuffer& message) {
                                                  post(to_director_[node], message);
                                                  return Status::ok();
                                                }}));
    for (uint32_t i = 0; i < local_ranks.size(); ++i) {
      check(register_planned(*books_[node], i, kSet, planned_tensors(tensors_, 250'000)));
      Rank rank;
      rank.node = node;
      rank.local_rank = i;
      rank.speed = random(5, 30) / 10.0;
      begin_step(rank);
      ranks_.push_back(std::move(rank));
    }
  }
  std::vector<NodeId> ids(nodes_);
  std::iota(ids.begin(), ids.end(), 1);
  PlanningOptions options;
  options.tuning.is_on = has_tuning_;
  options.tuning.steps = JobTuning::kStepsMin;
  options.planner = *find_planner(seed % 2 == 0 ? "streams" : "exact");
  options.answer_timeout_ms = 600'000;  // of the loop's time, in which nothing happens
  director_ = std::make_unique<PlanDirector>(
      PlannedJob{loop, JobLabel{"train"}, kJob, ids,
                 [this](NodeId to, ControlBuffer message) { post(to_node_[to - 1], message); },
                 options.answer_timeout_ms},
      options);
}

void PlanSimulation::check(bool holds, const std::string& what) {
  if (!holds && wrong_.empty()) wrong_ = what;
}

void PlanSimulation::begin_step(Rank& rank) {
  rank.to_submit.resize(tensors_);
  std::iota(rank.to_submit.rbegin(), rank.to_submit.rend(), 0);
  for (uint32_t swaps = random(0, 2); swaps > 0; --swaps)
    std::swap(rank.to_submit[random(0, tensors_ - 1)], rank.to_submit[random(0, tensors_ - 1)]);
}

bool PlanSimulation::may_submit(const Rank& rank) const {
  return rank.step < steps_ && rank.step <= reduced_ + ahead_;
}

void PlanSimulation::submit(Rank& rank) {
  const uint32_t tensor = rank.to_submit.back();
  rank.to_submit.pop_back();
  Submission submission;
  submission.local_rank = rank.local_rank;
  submission.ticket = ++tickets_;
  submission.tensor = hash_of(tensor);
  submission.step = rank.step;
  submission.signature.count = 250'000;
  submission.name = std::make_shared<const std::string>("t" + std::to_string(tensor));
  ++open_steps_[rank.step].submitted;
  if (rank.to_submit.empty()) {
    ++rank.step;
    begin_step(rank);
  }
  const auto planned = books_[rank.node]->plan(submission, kSet, now_ns_);
  if (!planned) return check(planned.status());
  if (!*planned) {
    ++kept_back_;
  } else {
    on_passed(rank.node, submission, *(*planned)->form);
  }
}

// What an operation table would get: all nodes must say the same of a step.
void PlanSimulation::on_passed(uint32_t node, const Submission& submission,
                               const OperationForm& form) {
  const auto rank = std::find_if(ranks_.begin(), ranks_.end(), [&](const Rank& one) {
    return one.node == node && one.local_rank == submission.local_rank;
  });
  const std::string what = *submission.name + " step " + std::to_string(submission.step);
  const auto [last, is_first] = rank->last_passed.try_emplace(submission.tensor, submission.step);
  check(is_first ? submission.step == 0 : submission.step == last->second + 1,
        what + " is passed on out of order, twice or never");
  last->second = submission.step;
  Step& step = open_steps_[submission.step];
  const std::pair group{form.group->members[0].tensor, form.group->hash};
  check(step.settings.try_emplace(submission.tensor, settings_of(form)).first->second ==
            settings_of(form),
        what + " travels in different ways");
  check(step.groups.try_emplace(submission.tensor, group).first->second == group,
        what + " is in different groups");
  ++step.passed;
}

// All ranks have submitted the step: its groups are reduced, one after the other.
void PlanSimulation::reduce(uint64_t number) {
  const Step step = std::move(open_steps_.at(number));
  open_steps_.erase(number);
  std::map<uint64_t, uint64_t> bytes;  // by head
  for (const auto& [tensor, group] : step.groups) bytes[group.first] += 1'000'000;
  if (number % 40 == 0) startup_ns_ = random(1, 200) * 100'000;  // the network changes
  for (const auto& [head, size] : bytes) {
    const OperationKey key{kJob, head, number};
    for (const auto& book : books_) {
      book->on_start(key, size);
      book->on_go(key, now_ns_, 0);
    }
    now_ns_ += startup_ns_ + size / 2;
    for (const auto& book : books_) check(book->on_done(key, now_ns_, 0));
  }
  ++reduced_;
}

void PlanSimulation::post(std::deque<Message>& link, ControlBuffer& message) {
  const uint64_t due = now_ns_ + std::uniform_int_distribution<uint64_t>(0, delay_max_ns_)(random_);
  link.push_back({link.empty() ? due : std::max(due, link.back().due), message.Release()});
}

void PlanSimulation::deliver_to_node(uint32_t node, const proto::ControlMessage& message) {
  if (const auto* proposal = message.body_as_PlanProposal())
    return check(books_[node]->on_proposal(parse_plan_proposal(*proposal).value()));
  const auto* verdict = message.body_as_PlanVerdict();
  if (node == 0 && !verdict->holds() && has_tuning_) ++tuning_refusals_;
  if (node == 0) ++(verdict->holds() ? changes_ : refusals_);
  const auto freed = books_[node]->on_verdict(*verdict);
  if (!freed) return check(freed.status());
  for (const auto& [submission, planned] : *freed) on_passed(node, submission, *planned.form);
}

// One message that is due, from a random link.
bool PlanSimulation::deliver() {
  const uint32_t first = random(0, 2 * nodes_ - 1);
  for (uint32_t i = 0; i < 2 * nodes_; ++i) {
    const uint32_t place = (first + i) % (2 * nodes_);
    const uint32_t node = place / 2;
    auto& link = place % 2 == 0 ? to_node_[node] : to_director_[node];
    if (link.empty() || link.front().due > now_ns_) continue;
    const Message message = std::move(link.front());
    link.pop_front();
    const auto& body = *flatbuffers::GetRoot<proto::ControlMessage>(message.bytes.data());
    place % 2 == 0 ? deliver_to_node(node, body) : director_->on_control_message(node + 1, body);
    return true;
  }
  return false;
}

std::string PlanSimulation::run() {
  const uint64_t parts = uint64_t{tensors_} * ranks_.size();
  for (uint32_t idle = 0; idle < 10'000 && wrong_.empty();) {
    ++idle;
    while (deliver()) idle = 0;
    now_ns_ += random(1, static_cast<uint32_t>(kSubmitNs / ranks_.size()));
    Rank& rank = ranks_[random(0, static_cast<uint32_t>(ranks_.size() - 1))];
    if (may_submit(rank) && random(0, 100) < 30 * rank.speed) {
      submit(rank);
      idle = 0;
    }
    while (open_steps_.contains(reduced_) && open_steps_.at(reduced_).passed == parts)
      reduce(reduced_);
    const bool is_over = reduced_ == steps_ &&
                         std::all_of(to_node_.begin(), to_node_.end(),
                                     [](const auto& link) { return link.empty(); }) &&
                         std::all_of(to_director_.begin(), to_director_.end(),
                                     [](const auto& link) { return link.empty(); });
    if (is_over) break;
  }
  check(reduced_ == steps_, "step " + std::to_string(reduced_) + " never ends");
  check(open_steps_.empty(), "more was passed on than submitted");
  for (const auto& book : books_) check(!book->holds_submissions(), "held for ever");
  return wrong_;
}

}  // namespace braid::testing
