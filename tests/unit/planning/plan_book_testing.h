// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "control/fake_control_plane.h"
#include "planning/plan_book.h"
#include "planning/plan_testing.h"

namespace braid::testing {

// The plans of one node, of job 'train' with key 9; what it passes on and says is written down.
class PlanBookTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kJob = 9;
  static constexpr uint64_t kSet = 5;

  void make(std::vector<uint32_t> local_ranks = {0}) {
    book_ = std::make_unique<PlanBook>(JobLabel{"train"}, kJob, 2, std::move(local_ranks),
                                       PlanBook::Actions{[this](const Submission& submission) {
                                                           passed.push_back(submission);
                                                           return refuse_submit;
                                                         },
                                                         [this](ControlBuffer& message) {
                                                           sent.push_back(message.Release());
                                                           return Status::ok();
                                                         }});
  }
  // One local rank with 't0', 't1', … registered.
  void make_with(uint32_t tensors, uint64_t count = 100) {
    make();
    ASSERT_TRUE(register_planned(*book_, 0, kSet, planned_tensors(tensors, count)).is_ok());
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
    return book_->submit(submission(tensor, step, local_rank), kSet, now_ns_ += 10);
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
    return book_->on_verdict(*as_message(message).body_as_PlanVerdict());
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
    for (const Submission& one : passed)
      names.push_back(*one.name + "/" + std::to_string(one.step));
    return names;
  }

  std::unique_ptr<PlanBook> book_;
  std::vector<Submission> passed;
  std::vector<flatbuffers::DetachedBuffer> sent;
  Status refuse_submit;
  uint64_t now_ns_ = 1'000'000;
  uint64_t tickets_ = 0;
};

}  // namespace braid::testing
