// SPDX-License-Identifier: Apache-2.0
// How jobs end: failures, lost nodes, missed deadlines, the good end.
#include <memory>

#include "base/errors_testing.h"
#include "coordinator/coordinator_testing.h"
#include "messages/rank_message.h"

namespace braid {
namespace {

using testing::is_error;

class CoordinatorVerdictTest : public testing::CoordinatorTest {
 protected:
  static constexpr uint64_t kTensor = 77;
  static constexpr uint64_t kStep = 5;

  void overdue(const Peer& from, uint64_t key) {
    tell(from, make_operation_overdue({key, kTensor, kStep}, 2000,
                                      "job 'train': 'w' step 5, all-reduce"));
  }
  void report(const Peer& from, uint64_t key, const std::vector<uint32_t>& missing,
              const std::string& detail = "") {
    tell(from, make_operation_report({key, kTensor, kStep}, missing, detail));
  }
  // What 'a' is told, behind the operation and its time.
  std::string verdict() {
    run_until([this] { return !sent_to<proto::JobFailed>(a_).empty(); });
    const std::string text = failure_of(a_).message();
    const std::string begin = "job 'train': 'w' step 5, all-reduce did not end within 2000 ms: ";
    EXPECT_TRUE(text.starts_with(begin)) << text;
    return text.substr(begin.size());
  }
};

TEST_F(CoordinatorVerdictTest, AFailureReachesAllNodes) {
  const uint64_t key = run_job();
  tell(b_, make_fail_job(key, "train", Status(StatusCode::Mismatch, "ranks disagree")));
  EXPECT_EQ(failure_of(a_).code(), StatusCode::Mismatch);
  EXPECT_EQ(failure_of(b_).message(), "ranks disagree");
  EXPECT_EQ(sent_to<proto::JobFailed>(a_)[0]->job_key(), key);
  control_plane_.sent.clear();
  tell(a_, make_fail_job(key, "train", Status(StatusCode::Internal, "too late")));
  EXPECT_TRUE(control_plane_.sent.empty());
}

TEST_F(CoordinatorVerdictTest, OnlyMembersCanFailAJob) {
  const uint64_t key = run_job();
  tell(d_, make_fail_job(key, "train", Status(StatusCode::Internal, "not mine")));
  tell(a_, make_fail_job(key + 1, "train", Status(StatusCode::Internal, "not this one")));
  EXPECT_TRUE(control_plane_.sent.empty());
}

TEST_F(CoordinatorVerdictTest, WhatOthersSayAboutAJobIsDroppedAndCounted) {
  const uint64_t key = run_job();
  uint64_t refused = 0;
  const auto expect_refused = [&](const Peer& from, ControlBuffer message) {
    tell(from, std::move(message));
    EXPECT_EQ(coordinator_.messages_refused(), ++refused);
  };
  expect_refused(d_, make_job_ready(key));
  expect_refused(d_, make_fail_job(key, "train", Status(StatusCode::Internal, "not mine")));
  expect_refused(d_, make_rank_left(key, {0}));
  expect_refused(a_, make_rank_left(key, {2}));  // b's
  expect_refused(d_, make_leavers_awaited(key));
  expect_refused(d_, make_operation_overdue({key, 1, 1}, 1, "x"));
  expect_refused(d_, make_operation_report({key, 1, 1}, {}, ""));
  expect_refused(d_, make_set_registered({key, 1, 1, 1, 1}));
  expect_refused(d_, make_step_report({key, 1, 1, 1, 1}));
  tell(a_, make_fail_job(key + 1, "train", Status(StatusCode::Internal, "of no job")));
  EXPECT_EQ(coordinator_.messages_refused(), refused) << "it may just have ended";
  EXPECT_TRUE(control_plane_.sent.empty());
}

TEST_F(CoordinatorVerdictTest, ANodeSpeaksForItsOwnRanksOnly) {
  const uint64_t key = run_job();
  overdue(a_, key);
  report(a_, key, {2, 7, 1});
  report(b_, key, {});
  EXPECT_EQ(verdict(), "not submitted by rank 1 on node 'a'");
}

TEST_F(CoordinatorVerdictTest, WhatNodesKnowAboutTheirLinksIsToldWhereNoRankIsMissing) {
  const uint64_t key = run_job();
  overdue(a_, key);
  report(a_, key, {}, "packets of full size are lost");
  report(b_, key, {});
  EXPECT_TRUE(verdict().ends_with("node 'a' says: packets of full size are lost"));
}

TEST_F(CoordinatorVerdictTest, AJobEndsWhenAllRanksHaveLeft) {
  const uint64_t key = run_job();
  tell(a_, make_rank_left(key, {0}));
  tell(a_, make_rank_left(key, {0}));
  tell(a_, make_rank_left(key, {2}));  // not its own
  tell(d_, make_rank_left(key, {1}));
  tell(b_, make_rank_left(key, {2}));
  EXPECT_TRUE(control_plane_.sent.empty());
  tell(a_, make_rank_left(key, {1}));
  ASSERT_EQ(sent_to<proto::JobEnded>(a_).size(), 1u);
  ASSERT_EQ(sent_to<proto::JobEnded>(b_).size(), 1u);
  EXPECT_EQ(sent_to<proto::JobEnded>(b_)[0]->job_key(), key);
  control_plane_.sent.clear();
  tell(a_, make_fail_job(key, "train", Status(StatusCode::Internal, "too late")));
  EXPECT_TRUE(control_plane_.sent.empty());
}

// Ranks 0 and 1 are on a, 2 is on b.
TEST_F(CoordinatorVerdictTest, WhoWaitsForMessagesHearsOfRanksThatHaveLeft) {
  const uint64_t key = run_job();
  tell(a_, make_rank_left(key, {0, "its script ended", SentMessages{{1, 4}, {2, 3}}}));
  EXPECT_TRUE(control_plane_.sent.empty()) << "nobody has asked";
  for (int i = 0; i < 2; ++i) tell(b_, make_leavers_awaited(key));
  tell(a_, make_leavers_awaited(key));
  EXPECT_TRUE(sent_to<proto::RankHasLeft>(a_).empty()) << "of its own ranks";
  const auto told = sent_to<proto::RankHasLeft>(b_);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0]->left()->job_key(), key);
  const LeftRank left = left_rank_of(*told[0]->left());
  EXPECT_EQ(left.rank, 0u);
  EXPECT_EQ(left.reason, "its script ended");
  EXPECT_EQ(left.sent, (SentMessages{{2, 3}}));
  tell(b_, make_rank_left(key, {2, "", SentMessages()}));
  ASSERT_EQ(sent_to<proto::RankHasLeft>(a_).size(), 1u);
  EXPECT_EQ(left_rank_of(*sent_to<proto::RankHasLeft>(a_)[0]->left()).sent, SentMessages());
  tell(a_, make_rank_left(key, {1}));
  EXPECT_EQ(sent_to<proto::RankHasLeft>(b_).size(), 1u) << "all have left";
}

TEST_F(CoordinatorVerdictTest, NobodyHearsOfALeaverWhoseMessagesAreNotTold) {
  const uint64_t key = run_job();
  tell(b_, make_leavers_awaited(key));
  tell(a_, make_rank_left(key, {0}));
  EXPECT_TRUE(control_plane_.sent.empty());
}

TEST_F(CoordinatorVerdictTest, ALostNodeIsNamedWithItsRanks) {
  run_job();
  control_plane_.remove_peer(a_.id);
  coordinator_.on_peer_lost(a_, Status(StatusCode::Unavailable, "silent for 5000 ms"));
  EXPECT_TRUE(is_error(failure_of(b_), StatusCode::JobFailed, {"'a'", "rank 0", "1", "5000 ms"}));
}

TEST_F(CoordinatorVerdictTest, ALostNodeFailsOnlyItsOwnJobs) {
  run_job("train");
  join(d_, 0, 1, kLongMs, "other");
  const uint64_t other = sent_to<proto::JobStart>(d_)[0]->job_key();
  control_plane_.sent.clear();
  coordinator_.on_peer_lost(a_, Status(StatusCode::Unavailable, "gone"));
  EXPECT_TRUE(sent_to<proto::JobFailed>(d_).empty());
  tell(d_, make_job_ready(other));
  EXPECT_EQ(sent_to<proto::JobGo>(d_).size(), 1u);
}

TEST_F(CoordinatorVerdictTest, AMissedDeadlineIsInvestigatedOnAllNodes) {
  const uint64_t key = run_job();
  overdue(a_, key);
  for (const Peer& peer : {a_, b_}) {
    const auto queries = sent_to<proto::OperationQuery>(peer);
    ASSERT_EQ(queries.size(), 1u);
    EXPECT_EQ(queries[0]->job_key(), key);
    EXPECT_EQ(queries[0]->tensor(), kTensor);
    EXPECT_EQ(queries[0]->step(), kStep);
  }
  overdue(b_, key);  // under investigation already
  overdue(d_, key);  // no member
  EXPECT_EQ(control_plane_.sent.size(), 2u);
}

TEST_F(CoordinatorVerdictTest, TheVerdictNamesRanksAndNodes) {
  const uint64_t key = run_job();
  overdue(a_, key);
  report(a_, key, {1}, "rank 1 has last submitted 'w' step 4");
  report(d_, key, {9});  // no member
  report(b_, key, {2});
  EXPECT_EQ(verdict(),
            "not submitted by rank 1 on node 'a': rank 1 has last submitted 'w' step 4; not "
            "submitted by rank 2 on node 'b'");
  EXPECT_EQ(failure_of(a_).code(), StatusCode::DeadlineExceeded);
  EXPECT_EQ(failure_of(b_).message(), failure_of(a_).message());
}

TEST_F(CoordinatorVerdictTest, WhenAllHaveSubmittedItIsTheNetwork) {
  const uint64_t key = run_job();
  overdue(b_, key);
  report(a_, key, {});
  report(b_, key, {});
  EXPECT_EQ(verdict(), "all ranks have submitted it, but the network has not finished it");
}

TEST_F(CoordinatorVerdictTest, ANodeThatDoesNotAnswerIsNamed) {
  const uint64_t key = run_job();
  overdue(a_, key);
  report(a_, key, {});
  ASSERT_NE(timers(), 0u) << "it would wait for ever";
  EXPECT_EQ(verdict(), "node 'b' (10.0.0.20) does not answer");
}

TEST_F(CoordinatorVerdictTest, AnswersAboutAnotherOperationDoNotCount) {
  const uint64_t key = run_job();
  overdue(a_, key);
  tell(a_, make_operation_report({key, kTensor, kStep + 1}, {}, ""));
  tell(b_, make_operation_report({key, kTensor + 1, kStep}, {}, ""));
  run_rounds();
  EXPECT_TRUE(sent_to<proto::JobFailed>(a_).empty());
  report(a_, key, {0});
  report(b_, key, {});
  EXPECT_EQ(verdict(), "not submitted by rank 0 on node 'a'");
}

TEST_F(CoordinatorVerdictTest, AFailureDuringAnInvestigationEndsTheJobOnce) {
  const uint64_t key = run_job();
  overdue(a_, key);
  report(a_, key, {});
  report(b_, key, {2});  // the verdict is on its way
  tell(b_, make_fail_job(key, "train", Status(StatusCode::JobFailed, "lost rank 2")));
  run_rounds();
  EXPECT_EQ(failure_of(a_).message(), "lost rank 2");
}

TEST_F(CoordinatorVerdictTest, AVerdictThatComesAfterTheCoordinatorsEndIsForgotten) {
  auto coordinator = std::make_unique<Coordinator>(*loop_, control_plane_);
  const auto hear = [&](const Peer& from, ControlBuffer message) {
    coordinator->on_control_message(from, testing::as_message(message));
  };
  hear(a_, make_join_job("short", 1, 0, 1, kLongMs));
  const uint64_t key = sent_to<proto::JobStart>(a_)[0]->job_key();
  hear(a_, make_operation_overdue({key, kTensor, kStep}, 10, "x"));
  hear(a_, make_operation_report({key, kTensor, kStep}, {}, ""));
  coordinator.reset();
  run_rounds();
  EXPECT_TRUE(sent_to<proto::JobFailed>(a_).empty());
}

// A rank that is stopped neither leaves nor dies.
TEST_F(CoordinatorVerdictTest, WhoStaysWhenOthersHaveLeftKeepsTheJobNotForEver) {
  Coordinator coordinator(*loop_, control_plane_, {}, {}, 30);
  const auto say = [&](const Peer& from, ControlBuffer message) {
    EXPECT_TRUE(coordinator.on_control_message(from, testing::as_message(message)));
  };
  say(a_, make_join_job("train", 3, 0, 1, kLongMs));
  say(a_, make_join_job("train", 3, 1, 2, kLongMs));
  say(b_, make_join_job("train", 3, 2, 3, kLongMs));
  const uint64_t key = sent_to<proto::JobStart>(a_).back()->job_key();
  say(a_, make_job_ready(key));
  say(b_, make_job_ready(key));
  run_rounds(3);  // while nobody has left there is no deadline
  EXPECT_TRUE(sent_to<proto::JobFailed>(a_).empty());
  say(a_, make_rank_left(key, {0}));
  say(b_, make_rank_left(key, {2}));
  run_until([&] { return !sent_to<proto::JobFailed>(a_).empty(); });
  EXPECT_TRUE(is_error(failure_of(a_), StatusCode::DeadlineExceeded, {"rank 1", "30 ms"}));
  EXPECT_EQ(failure_of(b_).message(), failure_of(a_).message());
  EXPECT_TRUE(sent_to<proto::JobEnded>(a_).empty());
}

}  // namespace
}  // namespace braid
