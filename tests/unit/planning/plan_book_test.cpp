// SPDX-License-Identifier: Apache-2.0
#include "base/errors_testing.h"
#include "planning/plan_book_testing.h"

namespace braid {
namespace {

using testing::hash_of;
using testing::is_error;
using testing::names;
using testing::planned;
using testing::planned_tensors;
using Names = std::vector<std::string>;

class PlanBookTest : public testing::PlanBookTest {};

TEST_F(PlanBookTest, ASubmissionIsPassedOnWithItsGroup) {
  make();
  EXPECT_TRUE(book_->is_empty());
  add(0, kSet, planned_tensors(3));
  EXPECT_FALSE(book_->is_empty());
  ASSERT_TRUE(submit(1, 0).is_ok());
  ASSERT_EQ(passed.size(), 1u);
  const testing::Passed one = passed[0];
  EXPECT_EQ(one.submission.tensor, hash_of(1));
  EXPECT_EQ(one.planned.member, 1u);
  EXPECT_EQ(one.form().group->members.size(), 3u);
  EXPECT_EQ(one.signature().count, 300u);
  EXPECT_EQ(one.signature().group, one.form().group->hash);
  ASSERT_TRUE(submit(0, 0).is_ok());
  EXPECT_EQ(passed[1].planned.form, one.planned.form) << "made once";
}

TEST_F(PlanBookTest, AnOperationIsAsUrgentAsItsMostUrgentMember) {
  make_with(5);
  submit_step(3, 5);
  agree(1, 5, {{3, 0}, {2}, {1, 4}});
  submit_step(5, 5);
  std::vector<uint64_t> urgencies;
  for (const testing::Passed& one : passed)
    urgencies.push_back(one.form().urgency_in(one.submission.step));
  const uint64_t before = urgency_of(3, 4);
  const uint64_t first = urgency_of(5, 3);
  const uint64_t single = urgency_of(5, 2);
  const uint64_t last = urgency_of(5, 4);
  EXPECT_EQ(urgencies, (std::vector<uint64_t>{before, before, before, before, before,  // 1 group
                                              first, last, single, first, last}));
}

TEST_F(PlanBookTest, AGroupOfOneIsJustTheTensor) {
  make_with(1);
  ASSERT_TRUE(submit(0, 0).is_ok());
  EXPECT_FALSE(passed.at(0).form().is_merged());
  EXPECT_EQ(passed[0].signature().count, 100u);
  EXPECT_EQ(passed[0].signature().group, 0u);
}

TEST_F(PlanBookTest, PlannedTensorsAreReducedByThemselvesAndNothingElse) {
  make_with(2);
  const auto refusal = [&](const std::function<void(Submission&)>& change) {
    Submission other = submission(1, 0);
    change(other);
    const Status refused = pass(other, kSet, 1);
    EXPECT_EQ(refused.code(), StatusCode::InvalidArgument);
    return refused.message();
  };
  constexpr const char* kText =
      "job 'train': rank 0: 't1' is planned; each step submits it by itself, as an all-reduce";
  for (const Collective other : {Collective::ReduceScatter, Collective::AllGather,
                                 Collective::Broadcast, Collective::Barrier}) {
    EXPECT_EQ(refusal([&](Submission& s) { s.signature.collective = other; }), kText);
  }
  EXPECT_EQ(refusal([](Submission& s) { s.signature.group = 3; }), kText);
  EXPECT_TRUE(passed.empty());
}

TEST_F(PlanBookTest, AllLocalRanksMayRegisterTheSame) {
  make({4, 7});
  EXPECT_TRUE(testing::register_planned(*book_, 0, kSet, planned_tensors(3)).is_ok());
  EXPECT_TRUE(testing::register_planned(*book_, 1, kSet, planned_tensors(3)).is_ok());
  EXPECT_TRUE(testing::register_planned(*book_, 1, kSet + 1, {planned("another model", 1)}));
}

TEST_F(PlanBookTest, LocalRanksThatRegisterDifferentTensorsAreNamed) {
  make({4, 7});
  add(0, kSet, planned_tensors(3));
  EXPECT_TRUE(is_error(testing::register_planned(*book_, 1, kSet + 1, planned_tensors(2)),
                       StatusCode::Mismatch, {"rank 7", "'t0'", "float32 × 100", "2 planned"}));
}

// An id is a hash: two sets may have the same one.
TEST_F(PlanBookTest, SetsOfOneIdAreComparedByContent) {
  make({4, 7});
  add(0, kSet, planned_tensors(2));
  const auto refused = [&](const std::vector<PlanSet::Tensor>& tensors) {
    const Status registered = testing::register_planned(*book_, 1, kSet, tensors);
    EXPECT_TRUE(registered.is_ok() || registered.code() == StatusCode::Mismatch);
    return !registered.is_ok();
  };
  EXPECT_TRUE(refused({planned("other", 1)}));
  EXPECT_TRUE(refused(planned_tensors(1)));
  EXPECT_TRUE(refused(planned_tensors(2, 1)));
  std::vector<PlanSet::Tensor> tensors = planned_tensors(2);
  tensors[1].name = std::make_shared<const std::string>("a name of the same hash");
  EXPECT_TRUE(refused(tensors));
  EXPECT_FALSE(refused(planned_tensors(2)));
}

TEST_F(PlanBookTest, WhatIsInNoSetIsNotTaken) {
  make_with(2);
  EXPECT_TRUE(names(submit(2, 0).message(), {"rank 0", "'t2'"}));
  EXPECT_EQ(pass(submission(0, 0), kSet + 1, 10).code(), StatusCode::Protocol);
  EXPECT_TRUE(passed.empty());
}

// A refused set leaves nothing behind, also of the tensors that would have been new.
TEST_F(PlanBookTest, ARefusedRegistrationRegistersNothing) {
  make({4, 7});
  add(0, kSet, planned_tensors(1));
  std::vector<PlanSet::Tensor> others = {planned("new", 1)};
  others.push_back(planned_tensors(1)[0]);
  ASSERT_FALSE(testing::register_planned(*book_, 1, kSet + 1, others).is_ok());
  const OperationKey key{kJob, others[0].hash, 0};
  book_->on_start(key, 10);  // an operation of that name which is not planned
  EXPECT_TRUE(book_->on_done(key, 20, 0).is_ok());
  EXPECT_TRUE(testing::register_planned(*book_, 1, kSet + 2, {others[0]}).is_ok());
}

TEST_F(PlanBookTest, SetsAreLimited) {
  make();
  for (uint64_t i = 0; i < PlanBook::kSetsMax; ++i)
    add(0, i + 1, {planned("x" + std::to_string(i), 1)});
  EXPECT_TRUE(is_error(testing::register_planned(*book_, 0, 1'000'000, {planned("one more", 1)}),
                       StatusCode::ResourceExhausted, {"1024 sets"}));
  EXPECT_TRUE(testing::register_planned(*book_, 0, 1, {planned("x0", 1)}).is_ok());  // known
}

// --- proposals ---

TEST_F(PlanBookTest, AProposalForAStepToComeIsAccepted) {
  make_with(2);
  ASSERT_TRUE(submit(0, 4).is_ok());
  ASSERT_TRUE(propose(1, 5, {{0}, {1}}).is_ok());
  const auto answers = sent_as<proto::PlanAnswer>();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0]->job_key(), kJob);
  EXPECT_EQ(answers[0]->set(), kSet);
  EXPECT_EQ(answers[0]->number(), 1u);
  EXPECT_TRUE(answers[0]->accepted());
  EXPECT_EQ(answers[0]->step(), 4u);
}

TEST_F(PlanBookTest, AProposalForAStepThatHasBegunComesTooLate) {
  make_with(2);
  ASSERT_TRUE(submit(0, 5).is_ok());
  for (const uint64_t from_step : {3, 5}) ASSERT_TRUE(propose(1, from_step, {{0}, {1}}).is_ok());
  for (const auto* answer : sent_as<proto::PlanAnswer>()) {
    EXPECT_FALSE(answer->accepted());
    EXPECT_EQ(answer->step(), 5u);
  }
  ASSERT_TRUE(submit(0, 6).is_ok());
  EXPECT_FALSE(book_->holds_submissions());
  ASSERT_TRUE(decide(1, false).is_ok());
}

TEST_F(PlanBookTest, SubmissionsWaitForTheVerdictFromItsStepOn) {
  for (const bool holds : {true, false}) {
    passed.clear();
    make_with(2);
    ASSERT_TRUE(submit(0, 4).is_ok());
    ASSERT_TRUE(propose(1, 5, {{0}, {1}}).is_ok());
    ASSERT_TRUE(submit(0, 5).is_ok());
    EXPECT_TRUE(book_->holds_submissions());
    ASSERT_TRUE(submit(1, 4).is_ok());  // of an earlier step
    ASSERT_TRUE(submit(0, 6).is_ok());
    ASSERT_TRUE(submit(1, 5).is_ok());
    EXPECT_EQ(passed_on(), (Names{"t0/4", "t1/4"}));
    ASSERT_TRUE(decide(1, holds).is_ok());
    EXPECT_EQ(passed_on(), (Names{"t0/4", "t1/4", "t0/5", "t0/6", "t1/5"}));
    EXPECT_FALSE(book_->holds_submissions());
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(passed[i].form().is_merged(), !holds || i < 2) << i;
    ASSERT_TRUE(submit(1, 6).is_ok());
    EXPECT_EQ(passed.size(), 6u);
  }
}

TEST_F(PlanBookTest, KnowsWhoseSubmissionsWait) {
  make({4, 7});
  add(0, kSet, planned_tensors(2));
  ASSERT_TRUE(propose(1, 5, {{0}, {1}}).is_ok());
  ASSERT_TRUE(submit(0, 5, 1).is_ok());
  EXPECT_FALSE(book_->holds_submissions_of(0));
  EXPECT_TRUE(book_->holds_submissions_of(1));
  ASSERT_TRUE(decide(1, true).is_ok());
  EXPECT_FALSE(book_->holds_submissions_of(1));
}

TEST_F(PlanBookTest, VerdictsOfOtherProposalsChangeNothing) {
  make_with(2);
  ASSERT_TRUE(decide(1, true).is_ok());
  ASSERT_TRUE(propose(2, 5, {{0}, {1}}).is_ok());
  ASSERT_TRUE(submit(0, 5).is_ok());
  ASSERT_TRUE(decide(1, true).is_ok());
  ASSERT_TRUE(decide(2, true, kSet + 1).is_ok());
  EXPECT_TRUE(book_->holds_submissions());
  ASSERT_TRUE(decide(2, true).is_ok());
  ASSERT_TRUE(decide(2, true).is_ok());  // said twice
  EXPECT_EQ(passed.size(), 1u);
}

TEST_F(PlanBookTest, ASecondProposalWhileOneIsPendingIsRefused) {
  make_with(2);
  ASSERT_TRUE(propose(1, 5, {{0}, {1}}).is_ok());
  ASSERT_TRUE(propose(2, 9, {{1}, {0}}).is_ok());
  EXPECT_EQ(accepted(), (std::vector<bool>{true, false}));
  ASSERT_TRUE(submit(0, 5).is_ok());
  ASSERT_TRUE(decide(2, false).is_ok());  // the first one's is still to come
  EXPECT_TRUE(book_->holds_submissions());
  ASSERT_TRUE(decide(1, true).is_ok());
  EXPECT_EQ(passed.size(), 1u);
}

TEST_F(PlanBookTest, PlansBeginAfterEachOther) {
  make_with(2);
  agree(1, 50, {{0}, {1}});
  for (const uint64_t from_step : {20, 50}) ASSERT_TRUE(propose(2, from_step, {{0, 1}}).is_ok());
  EXPECT_EQ(accepted(), (std::vector<bool>{true, false, false}));
}

TEST_F(PlanBookTest, AProposalForAnUnknownSetIsRefused) {
  make();
  ASSERT_TRUE(propose(1, 5, {{0}, {1}}).is_ok());
  EXPECT_EQ(accepted(), std::vector<bool>{false});
}

TEST_F(PlanBookTest, ACoordinatorThatProposesNonsenseIsNamed) {
  make_with(3);
  const Status refused = propose(1, 5, {{0}, {1}});
  EXPECT_EQ(refused.code(), StatusCode::Protocol);
  EXPECT_EQ(refused.message(),
            "job 'train': the coordinator: a plan leaves out tensors that it is for");
  EXPECT_TRUE(sent_as<proto::PlanAnswer>().empty());
}

// --- deadlines ---

TEST_F(PlanBookTest, WhatIsKeptBackForTooLongIsNamed) {
  make_with(2);
  ASSERT_TRUE(propose(3, 5, {{0}, {1}}).is_ok());
  EXPECT_TRUE(book_->check_deadlines(UINT64_MAX).is_ok());  // nothing waits
  ASSERT_TRUE(submit(1, 6).is_ok());
  EXPECT_TRUE(book_->check_deadlines(999'999'999).is_ok());
  EXPECT_TRUE(is_error(book_->check_deadlines(1'000'000'000), StatusCode::DeadlineExceeded,
                       {"'t1' step 6", "30 ms", "plan 3"}));
  ASSERT_TRUE(decide(3, true).is_ok());
  EXPECT_TRUE(book_->check_deadlines(UINT64_MAX).is_ok());
}

TEST_F(PlanBookTest, EverySubmissionHasADeadlineOfItsOwn) {
  make_with(2);
  ASSERT_TRUE(propose(3, 5, {{0}, {1}}).is_ok());
  ASSERT_TRUE(submit(0, 5).is_ok());
  Submission hurried = submission(1, 5);
  hurried.deadline_ns = 500;
  hurried.timeout_ms = 2;
  ASSERT_TRUE(pass(hurried, kSet, 1).is_ok());
  const Status late = book_->check_deadlines(500);
  EXPECT_TRUE(names(late.message(), {"'t1' step 5", "2 ms", "plan 3"}));
}

}  // namespace
}  // namespace braid
