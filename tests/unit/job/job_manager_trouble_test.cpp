// SPDX-License-Identifier: Apache-2.0
// What goes wrong, and what trainers are told then.
#include <algorithm>
#include <future>

#include "base/errors_testing.h"
#include "base/local_host.h"
#include "job/manager_world.h"

namespace braid {
namespace {

using testing::is_error;
using testing::names;
using testing::TestTrainer;
using testing::WantedNames;

class JobManagerTroubleTest : public testing::JobManagerTest {
 protected:
  void wait_for_failures() {
    wait_for([this] {
      for (const auto& trainer : trainers_) {
        if (trainer->failure.is_ok()) return false;
      }
      return true;
    });
  }
  // All trainers were told the same.
  void expect_failure(StatusCode code, WantedNames wanted) {
    wait_for_failures();
    for (const auto& trainer : trainers_) EXPECT_TRUE(is_error(trainer->failure, code, wanted));
  }
};

TEST_F(JobManagerTroubleTest, WhoRegistersBeforeTheJobIsOpenIsRefused) {
  TestTrainer& trainer = add_trainer();
  trainer.open("train", 0, 2, self_.address);
  trainer.register_tensors({{"w", 1}});
  wait_for([&] { return trainer.was_closed; });
  EXPECT_TRUE(is_error(trainer.failure, StatusCode::Protocol,
                       {"RegisterTensors came where it does not belong"}));
  TestTrainer& other = add_trainer();
  other.open("other", 0, 2, self_.address);
  other.register_memory();
  wait_for([&] { return other.was_closed; });
  EXPECT_EQ(other.failure.message(), "RegisterMemory came where it does not belong");
  EXPECT_TRUE(trainer.registered.empty());
}

TEST_F(JobManagerTroubleTest, WhoRegistersAfterItHasLeftIsRefused) {
  open_job(2);
  trainers_[0]->leave();
  trainers_[0]->register_tensors({{"later", 1}});
  wait_for([&] { return trainers_[0]->was_closed; });
  EXPECT_EQ(trainers_[0]->failure.code(), StatusCode::Protocol);
  EXPECT_TRUE(trainers_[1]->failure.is_ok()) << trainers_[1]->failure.message();
}

TEST_F(JobManagerTroubleTest, ATrainerThatDiesIsNamed) {
  open_job(3);
  trainers_[1]->hang_up();
  wait_for([&] { return !trainers_[0]->failure.is_ok() && !trainers_[2]->failure.is_ok(); });
  EXPECT_TRUE(is_error(trainers_[0]->failure, StatusCode::JobFailed, {"rank 1", "'here'"}));
  EXPECT_EQ(trainers_[2]->failure.message(), trainers_[0]->failure.message());
  EXPECT_EQ(counters_.failures[static_cast<size_t>(StatusCode::JobFailed)], 1u);
  wait_for([&] { return manager_->jobs().size() == 0; });
}

TEST_F(JobManagerTroubleTest, ATrainerThatGoesBeforeTheJobBeginsFailsIt) {
  add_trainer().open("train", 0, 3, kThisNode);
  add_trainer().open("train", 1, 3, kThisNode);
  settle();
  trainers_[1]->hang_up();
  EXPECT_TRUE(names(failure_of(*trainers_[0]).message(), {"rank 1", "'here'"}));
}

TEST_F(JobManagerTroubleTest, ATrainerCannotLeaveBeforeItIsIn) {
  add_trainer().open("train", 0, 2, kThisNode);
  trainers_[0]->leave();
  wait_for([&] { return trainers_[0]->was_closed; });
  EXPECT_EQ(trainers_[0]->failure.code(), StatusCode::Protocol);
  // And the coordinator does not count on it: the same rank may come again.
  wait_for([&] { return server_->counters().connections_open == 0; });
  settle();
  trainers_.clear();
  open_job(2);
}

TEST_F(JobManagerTroubleTest, ADeadlineSaysWhatTheMissingRankDidLast) {
  open_job(2);
  trainers_[1]->submit(1, 0, 8);
  trainers_[0]->submit(1, 0, 7, 0, [](proto::SubmitEntry& entry) { entry.timeout_ms = 20; });
  expect_failure(StatusCode::DeadlineExceeded, {"'w' step 7", "float32 × 4", "20 ms", "rank 1",
                                                "'here'", "rank 1", "'w' step 8"});
}

TEST_F(JobManagerTroubleTest, ATrainerMayHoldSoManyResultsAsItsRingHasPlaces) {
  open_job(1);
  for (uint64_t step = 0; step < TestTrainer::kRingCapacity; ++step)
    trainers_[0]->submit(step + 1, 0, step);
  wait_for([&] { return trainers_[0]->done.size() == TestTrainer::kRingCapacity; });
  trainers_[0]->submit(100, 0, 100);
  expect_failure(StatusCode::Protocol, {"rank 0", "16 tickets"});
}

TEST_F(JobManagerTroubleTest, AResultThatDoesNotFitFailsTheJob) {
  open_job(2, 100'000);  // two of them are 800 kB of 1 MiB
  for (uint64_t step = 0; step < 3; ++step) {
    for (auto& trainer : trainers_) trainer->submit(step + 1, 0, step);
  }
  wait_for_failures();
  EXPECT_TRUE(is_error(trainers_[0]->failure, StatusCode::ResourceExhausted,
                       {"no room for the result of 'w' step 2"}));
}

TEST_F(JobManagerTroubleTest, OpenJobIsChecked) {
  add_trainer().open("", 0, 1, kThisNode);
  add_trainer().open("train", 1, 1, kThisNode);
  add_trainer().open("train", 0, 1, "");
  add_trainer().open("train", 0, 1, kThisNode, 0);
  // Kept as long as the trainer, and told in the log.
  add_trainer().open("train", 0, 1, std::string(OpenRequest::kAddressBytesMax + 1, 'a'));
  wait_for([&] { return std::ranges::all_of(trainers_, &testing::TestTrainer::was_closed); });
  for (const auto& trainer : trainers_)
    EXPECT_EQ(trainer->failure.code(), StatusCode::InvalidArgument);
}

TEST_F(JobManagerTroubleTest, MoreJobsThanAllowedAreRefused) {
  for (const char* name : {"one", "two"}) {
    add_trainer().open(name, 0, 1, kThisNode);
    wait_for([&] { return trainers_.back()->is_open; });
  }
  TestTrainer& third = add_trainer();
  third.open("three", 0, 1, kThisNode);
  wait_for([&] { return third.was_closed; });
  EXPECT_TRUE(is_error(third.failure, StatusCode::ResourceExhausted, {"2 jobs"}));
}

TEST_F(JobManagerTroubleTest, AWeightBeyondTheLargestIsRefused) {
  TestTrainer& impossible = add_trainer();
  impossible.open("train", 0, 1, kThisNode, 60'000, kJobWeightMax + 1);
  wait_for([&] { return impossible.was_closed; });
  EXPECT_EQ(impossible.failure.code(), StatusCode::InvalidArgument);
  TestTrainer& right = add_trainer();
  right.open("train", 0, 1, kThisNode, 60'000, 50);
  wait_for([&] { return right.is_open; });
  EXPECT_EQ(statuses().at(0).weight, 50u);
}

TEST_F(JobManagerTroubleTest, ACoordinatorThatCannotBeReachedIsNamed) {
  add_trainer().open("train", 0, 2, "10.9.9.9", 20);
  expect_failure(StatusCode::Unavailable, {"MASTER_ADDR 10.9.9.9"});
}

TEST_F(JobManagerTroubleTest, TheCoordinatorThatRankZeroNamedIsAskedToJoin) {
  add_trainer().open("train", 1, 2, b_.address, 60'000, 0, {}, b_.id);
  wait_for([&] { return sent_to_b<proto::JoinJob>().size() == 1; });
}

TEST_F(JobManagerTroubleTest, AMasterThatServesItsOwnHostOnlyIsNotTakenForThisNode) {
  add_trainer().open("train", 1, 2, kThisNode, 60'000, 0, {}, b_.id);
  expect_failure(StatusCode::Unavailable,
                 {"rank 0", "'here'", "control.cluster_key_file", "control.listen"});
}

TEST_F(JobManagerTroubleTest, AMastersAddressThatIsThisNodesTooIsNamed) {
  add_trainer().open("train", 1, 2, self_.address, 60'000, 0, {}, b_.id);
  expect_failure(StatusCode::Unavailable,
                 {"rank 0", "10.0.0.1", "'here'", "node.address", "transport.rails"});
}

TEST_F(JobManagerTroubleTest, AnotherDaemonAtTheMastersAddressIsNamed) {
  add_trainer().open("train", 1, 2, b_.address, 60'000, 0, {}, b_.id + 1);
  expect_failure(StatusCode::Unavailable, {"10.0.0.20", "'b'", "rank 0"});
}

TEST_F(JobManagerTroubleTest, RanksThatWaitAtALoopbackMasterAreToldWhatItIs) {
  add_trainer().open("train", 0, 2, kThisNode, 20);
  wait_for_failures();
  EXPECT_EQ(trainers_[0]->failure.code(), StatusCode::DeadlineExceeded);
  const std::string hint =
      "; their master is 127.0.0.1, which each node takes for another node: if the missing ranks "
      "are on other nodes, give all ranks the address of rank 0's node";
  EXPECT_TRUE(trainers_[0]->failure.message().ends_with(hint)) << trainers_[0]->failure.message();
}

TEST_F(JobManagerTroubleTest, ACoordinatorThatIsLostWhileTheJobFormsIsNamed) {
  add_trainer().open("train", 0, 2, b_.address);
  wait_for([&] { return sent_to_b<proto::JoinJob>().size() == 1; });
  control_plane_.remove_peer(b_.id);
  manager_->on_peer_lost(b_, Status(StatusCode::Unavailable, "silent for 5000 ms"));
  expect_failure(StatusCode::Unavailable, {"'b'", "5000 ms"});
  EXPECT_EQ(transport_.lost, (std::vector<NodeId>{b_.id}));
}

TEST_F(JobManagerTroubleTest, ARefusalByTheCoordinatorReachesTheTrainer) {
  add_trainer().open("train", 0, 2, b_.address);
  wait_for([&] { return sent_to_b<proto::JoinJob>().size() == 1; });
  hear(self_,
       make_job_failed(0, "train", Status(StatusCode::Mismatch, "not from its coordinator")));
  hear(b_, make_job_failed(0, "other", Status(StatusCode::Mismatch, "not its job")));
  hear(b_, make_job_failed(0, "train", Status(StatusCode::Mismatch, "ranks disagree")));
  expect_failure(StatusCode::Mismatch, {"ranks disagree"});
}

TEST_F(JobManagerTroubleTest, AJobOfTwoNodesOpensWhenItsCoordinatorSaysGo) {
  TestTrainer& trainer = open_with_b();
  EXPECT_EQ(transport_.opened, (std::vector<NodeId>{b_.id}));
  EXPECT_EQ(trainer.epoch, 4u);
  register_w(trainer);
  trainer.submit(1, 0, 0);
  wait_for([&] { return sent_to_b<proto::OperationReady>().size() == 1; });
  EXPECT_EQ(sent_to_b<proto::OperationReady>()[0]->count(), 4u);
}

TEST_F(JobManagerTroubleTest, ALinkThatCannotBeOpenedFailsTheJob) {
  transport_.open_result = Status(StatusCode::Unavailable, "no flow to node 'b'");
  start_with_b();
  EXPECT_TRUE(is_error(failure_told_to_b(), StatusCode::Unavailable, {"no flow to node 'b'"}));
  hear(b_, make_job_failed(kKey, "train", Status(StatusCode::Unavailable, "the verdict")));
  expect_failure(StatusCode::Unavailable, {"the verdict"});
}

// The control connection is up: the coordinator must hear of it, or the other nodes wait for their
// deadlines.
TEST_F(JobManagerTroubleTest, ALostLinkToTheSuccessorIsToldToTheCoordinator) {
  open_with_b();
  manager_->on_link_lost(d_, Status(StatusCode::Unavailable, "not our successor"));
  EXPECT_TRUE(sent_to_b<proto::FailJob>().empty());
  manager_->on_link_lost(b_, Status(StatusCode::Unavailable, "no flow for 5000 ms"));
  EXPECT_TRUE(
      is_error(failure_told_to_b(), StatusCode::JobFailed, {"'here'", "'b'", "rank 1", "5000 ms"}));
}

TEST_F(JobManagerTroubleTest, AVerdictThatDoesNotComeIsNotWaitedForForEver) {
  open_with_b();
  const size_t before = timers();
  manager_->on_link_lost(b_, Status(StatusCode::Unavailable, "no flow for 5000 ms"));
  ASSERT_EQ(timers(), before + 1);
  EXPECT_TRUE(trainers_[0]->failure.is_ok());
  expect_failure(StatusCode::JobFailed, {"no flow for 5000 ms"});
}

// With direct operations all other nodes are sent to, also the one before the coordinator's.
TEST_F(JobManagerTroubleTest, ALostLinkToAnyNodeIsToldWhereOperationsAreDirect) {
  start_with_b(3, {4096});
  wait_for([&] { return !sent_to_b<proto::JobReady>().empty(); });
  EXPECT_EQ(transport_.opened, (std::vector<NodeId>{b_.id, d_.id}));
  manager_->on_link_lost(d_, Status(StatusCode::Unavailable, "no flow for 5000 ms"));
  EXPECT_TRUE(
      is_error(failure_told_to_b(), StatusCode::JobFailed, {"'here'", "'d'", "rank 2", "5000 ms"}));
}

// This node is the first of four, b, d and e: by halving it has to do with b and d.
TEST_F(JobManagerTroubleTest, ByHalvesTheReadinessOfAllTargetsIsAwaitedAndALostOneIsTold) {
  TestTrainer& trainer = open_with_b(4, {0, 4096});
  EXPECT_EQ(transport_.opened, (std::vector<NodeId>{b_.id, d_.id}));
  register_w(trainer);
  trainer.submit(1, 0, 0);
  wait_for([&] { return sent_to_b<proto::OperationReady>().size() == 1; });
  EXPECT_EQ(control_plane_.sent_to<proto::OperationReady>(d_.id).size(), 1u);
  EXPECT_TRUE(control_plane_.sent_to<proto::OperationReady>(e_.id).empty());
  Signature other;
  other.count = 5;
  hear(d_, make_operation_ready({kKey, sent_to_b<proto::OperationReady>()[0]->tensor(), 0}, other));
  EXPECT_TRUE(is_error(failure_told_to_b(), StatusCode::Mismatch, {"rank 2 says"}));
  manager_->on_link_lost(d_, Status(StatusCode::Unavailable, "no flow for 5000 ms"));
  EXPECT_TRUE(is_error(failure_told_to_b(2), StatusCode::JobFailed, {"'here'", "'d'", "rank 2"}));
}

TEST_F(JobManagerTroubleTest, DirectPartsThatFitNoChunkAreRefused) {
  start_with_b(2, {4097});
  settle();
  EXPECT_EQ(manager_->jobs().size(), 0u);
  EXPECT_TRUE(transport_.opened.empty());
}

TEST_F(JobManagerTroubleTest, ASuccessorThatDisagreesFailsTheJob) {
  TestTrainer& trainer = open_with_b();
  register_w(trainer);
  trainer.submit(1, 0, 0);
  wait_for([&] { return sent_to_b<proto::OperationReady>().size() == 1; });
  const OperationKey key{kKey, sent_to_b<proto::OperationReady>()[0]->tensor(), 0};
  Signature other;
  other.count = 5;
  hear(self_, make_operation_ready(key, other));  // not from the successor
  EXPECT_TRUE(sent_to_b<proto::FailJob>().empty());
  hear(b_, make_operation_ready(key, other));
  EXPECT_TRUE(is_error(failure_told_to_b(), StatusCode::Mismatch));
}

TEST_F(JobManagerTroubleTest, ALostCoordinatorEndsARunningJob) {
  open_with_b();
  control_plane_.remove_peer(b_.id);
  manager_->on_peer_lost(b_, Status(StatusCode::Unavailable, "gone"));
  expect_failure(StatusCode::JobFailed, {"'b'"});
  wait_for([&] { return manager_->jobs().size() == 0; });
}

TEST_F(JobManagerTroubleTest, AJobStartForATrainerThatHasGoneIsRefused) {
  add_trainer().open("train", 0, 3, b_.address);
  add_trainer().open("train", 1, 3, b_.address);
  wait_for([&] { return sent_to_b<proto::JoinJob>().size() == 2; });
  trainers_[1]->hang_up();
  wait_for([&] { return server_->counters().connections_open == 1; });
  const std::vector<MemberNode> nodes = {{self_, {0, 1}}, {b_, {2}}};
  hear(b_, make_job_start("train", 3, 1, kKey, nodes));
  EXPECT_TRUE(names(failure_of(*trainers_[0]).message(), {"'here' has gone"}));
  EXPECT_EQ(manager_->jobs().size(), 0u);
  ASSERT_EQ(sent_to_b<proto::FailJob>().size(), 2u);  // when it went, and now
  EXPECT_EQ(sent_to_b<proto::FailJob>()[1]->job_key(), kKey);
}

TEST_F(JobManagerTroubleTest, AJobStartThatMakesNoSenseIsIgnored) {
  add_trainer().open("train", 0, 2, b_.address);
  wait_for([&] { return sent_to_b<proto::JoinJob>().size() == 1; });
  const std::vector<MemberNode> nodes = {{self_, {0}}, {b_, {0}}};
  hear(b_, make_job_start("train", 2, 1, kKey, nodes));
  settle();
  EXPECT_EQ(manager_->jobs().size(), 0u);
}

// Memory for the result is still on its way when its trainer dies.
TEST_F(JobManagerTroubleTest, AJobMayEndWhileItsMemoryIsReserved) {
  std::promise<void> release;
  std::promise<void> blocked;
  open_job(1);
  worker_.post([&] {
    blocked.set_value();
    release.get_future().wait();
  });
  blocked.get_future().wait();
  trainers_[0]->submit(1, 0, 0);
  wait_for([&] { return manager_->jobs().operations_pending() == 1; });
  trainers_[0]->hang_up();
  wait_for([&] { return manager_->jobs().size() == 0; });
  release.set_value();
  bool is_over = false;
  ASSERT_TRUE(worker_.run([] {}, [&] { is_over = true; }));
  run_until([&] { return is_over; });
  trainers_.clear();
  open_job(1);
  trainers_[0]->submit(1, 0, 0);
  wait_for([&] { return trainers_[0]->done.size() == 1; });
}

// d has the cluster key and knows the job's; but the job is b's to lead, and d is not in it.
TEST_F(JobManagerTroubleTest, OnlyTheCoordinatorLeadsAJobAndOnlyMembersTakePart) {
  control_plane_.add_peer(d_);
  start_with_b();
  wait_for([&] { return !sent_to_b<proto::JobReady>().empty(); });
  uint64_t refused = 0;
  const auto expect_refused = [&](ControlBuffer message) {
    hear(d_, std::move(message));
    EXPECT_EQ(manager_->messages_refused(), ++refused);
  };
  expect_refused(make_job_go(kKey));
  hear(b_, make_job_go(kKey));
  wait_for([&] { return trainers_[0]->is_open; });
  control_plane_.sent.clear();
  expect_refused(make_job_failed(kKey, "train", Status(StatusCode::Mismatch, "not true")));
  expect_refused(make_job_ended(kKey));
  expect_refused(make_operation_query({kKey, 1, 1}));
  expect_refused(make_operation_ready({kKey, 1, 1}, {}));
  expect_refused(make_duel_switch(kKey, {proto::DuelSubject::Polling, true, true, 2, 1}));
  PlanProposal proposal;
  proposal.job_key = kKey;
  proposal.set = 1;
  proposal.number = 1;
  proposal.groups = {{1}};
  expect_refused(make_plan_proposal(proposal));
  expect_refused(make_plan_verdict(proposal, true));
  // Nor may it put a job of its own in the place of this one.
  expect_refused(
      make_job_start("train", 2, 5, kKey, std::vector<MemberNode>{{self_, {0}}, {d_, {1}}}));
  settle();
  EXPECT_EQ(manager_->jobs().size(), 1u);
  EXPECT_TRUE(trainers_[0]->failure.is_ok());
  EXPECT_TRUE(control_plane_.sent.empty());
}

TEST_F(JobManagerTroubleTest, MessagesAboutUnknownJobsAreIgnored) {
  hear(b_, make_job_go(5));
  hear(b_, make_job_ended(5));
  hear(b_, make_job_failed(5, "x", Status(StatusCode::JobFailed, "x")));
  hear(b_, make_operation_ready({5, 1, 1}, {}));
  hear(b_, make_operation_query({5, 1, 1}));
  EXPECT_EQ(manager_->jobs().size(), 0u);
  EXPECT_TRUE(control_plane_.sent.empty());
}

}  // namespace
}  // namespace braid
