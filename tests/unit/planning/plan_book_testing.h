// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "control/fake_control_plane.h"
#include "planning/plan_book.h"
#include "planning/plan_testing.h"

namespace braid::testing {

// A submission with what the plan says of it, as an operation table gets them.
struct Passed {
  Submission submission;
  PlannedTensor planned;
  const OperationForm& form() const { return *planned.form; }
  Signature signature() const { return form().signature_of(submission); }
  const TensorGroup::Member& member() const { return form().group->members[planned.member]; }
  const CodedTensors* coded() const {
    return form().encodes(submission.update) ? form().coded.get() : nullptr;
  }
};

// The plans of one node, of job 'train' with key 9; what it passes on and says is written down.
class PlanBookTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kJob = 9;
  static constexpr uint64_t kSet = 5;

  void make(std::vector<uint32_t> local_ranks = {0}) {
    make(std::move(local_ranks), noting_actions());
  }
  void make(std::vector<uint32_t> local_ranks, PlanActions actions, uint32_t sample_every_steps = 0,
            std::shared_ptr<JobNumbers> numbers = nullptr) {
    book_ = std::make_unique<PlanBook>(JobLabel{"train"}, kJob, 2, std::move(local_ranks),
                                       std::move(actions), sample_every_steps, std::move(numbers));
  }
  PlanActions noting_actions() {
    PlanActions actions;
    actions.send = [this](ControlBuffer& message) {
      sent.push_back(message.Release());
      return Status::ok();
    };
    return actions;
  }
  // One local rank with 't0', 't1', … registered.
  void make_with(uint32_t tensors, uint64_t count = 100) {
    make();
    add(0, kSet, planned_tensors(tensors, count));
  }
  void add(uint32_t local_rank, uint64_t set, const PlanSet::Tensors& tensors) {
    ASSERT_TRUE(register_planned(*book_, local_rank, set, tensors).is_ok());
  }

  Submission submission(uint32_t tensor, uint64_t step, uint32_t local_rank = 0) {
    Submission result;
    result.local_rank = local_rank;
    result.ticket = ++tickets_;
    result.tensor = hash_of(tensor);
    result.step = step;
    result.signature.count = 100;
    result.deadline_ns = 1'000'000'000;
    result.timeout_ms = 30;
    result.name = std::make_shared<const std::string>("t" + std::to_string(tensor));
    return result;
  }
  Status submit(uint32_t tensor, uint64_t step, uint32_t local_rank = 0) {
    return pass(submission(tensor, step, local_rank), kSet, now_ns_ += 10);
  }
  Status pass(Submission one, uint64_t set, uint64_t now_ns) {
    const auto planned = book_->plan(one, set, now_ns);
    if (!planned) return planned.status();
    if (*planned) passed.push_back({std::move(one), **planned});
    return Status::ok();
  }
  // All tensors of one step.
  void submit_step(uint64_t step, uint32_t tensors) {
    for (uint32_t i = 0; i < tensors; ++i) ASSERT_TRUE(submit(i, step).is_ok());
  }

  static PlanProposal proposal(uint32_t number, uint64_t from_step,
                               const std::vector<std::vector<uint32_t>>& groups) {
    PlanProposal result;
    result.job_key = kJob;
    result.set = kSet;
    result.number = number;
    result.from_step = from_step;
    result.groups = groups_of(groups);
    result.planner = "streams";
    result.predicted_ns = 2'000'000;
    result.cost = R"({"bands":[1]})";
    return result;
  }
  Status propose(uint32_t number, uint64_t from_step,
                 const std::vector<std::vector<uint32_t>>& groups) {
    return book_->on_proposal(proposal(number, from_step, groups));
  }
  Status decide(uint32_t number, bool holds, uint64_t set = kSet) {
    PlanProposal proposed;
    proposed.set = set;
    proposed.number = number;
    auto message = make_plan_verdict(proposed, holds);
    auto freed = book_->on_verdict(*as_message(message).body_as_PlanVerdict());
    if (!freed) return freed.status();
    for (auto& [one, planned] : *freed) passed.push_back({std::move(one), planned});
    return Status::ok();
  }

  // A plan that all nodes accept.
  void agree(uint32_t number, uint64_t from_step,
             const std::vector<std::vector<uint32_t>>& groups) {
    ASSERT_TRUE(propose(number, from_step, groups).is_ok());
    ASSERT_TRUE(decide(number, true).is_ok());
  }
  // The answers to the proposals so far.
  std::vector<bool> accepted() const {
    std::vector<bool> result;
    for (const auto* answer : sent_as<proto::PlanAnswer>()) result.push_back(answer->accepted());
    return result;
  }

  template <typename Table>
  std::vector<const Table*> sent_as() const {
    std::vector<const Table*> found;
    for (const auto& bytes : sent) {
      const auto* table =
          flatbuffers::GetRoot<proto::ControlMessage>(bytes.data())->body_as<Table>();
      if (table != nullptr) found.push_back(table);
    }
    return found;
  }
  // "t2/7" for tensor 2 of step 7, in the order in which they were passed on.
  std::vector<std::string> passed_on() const {
    std::vector<std::string> names;
    for (const Passed& one : passed)
      names.push_back(*one.submission.name + "/" + std::to_string(one.submission.step));
    return names;
  }

  std::unique_ptr<PlanBook> book_;
  std::vector<Passed> passed;
  std::vector<flatbuffers::DetachedBuffer> sent;
  uint64_t now_ns_ = 1'000'000;
  uint64_t tickets_ = 0;
};

}  // namespace braid::testing
