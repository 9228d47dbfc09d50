// SPDX-License-Identifier: Apache-2.0
// How jobs come together.
#include "base/errors_testing.h"
#include "coordinator/coordinator_testing.h"

namespace braid {
namespace {

using testing::is_error;
using testing::names;

class CoordinatorTest : public testing::CoordinatorTest {};

TEST_F(CoordinatorTest, NothingStartsBeforeAllRanksHaveJoined) {
  join(a_, 0, 3);
  join(b_, 2, 3);
  EXPECT_TRUE(control_plane_.sent.empty());
  join(a_, 1, 3);
  EXPECT_EQ(sent_to<proto::JobStart>(a_).size(), 1u);
  EXPECT_EQ(sent_to<proto::JobStart>(b_).size(), 1u);
  EXPECT_EQ(control_plane_.sent.size(), 2u);
}

TEST_F(CoordinatorTest, NodesStandInTheOrderOfTheirLowestRank) {
  join(d_, 3, 5);
  join(a_, 4, 5);
  join(b_, 0, 5);
  join(a_, 1, 5);
  join(d_, 2, 5);
  const proto::JobStart& start = start_at(d_);
  EXPECT_EQ(start.name()->str(), "train");
  EXPECT_EQ(start.world_size(), 5u);
  EXPECT_NE(start.job_key(), 0u);
  ASSERT_EQ(start.nodes()->size(), 3u);
  const auto ranks_of = [&](uint32_t place) {
    const auto* ranks = start.nodes()->Get(place)->ranks();
    return std::vector<uint32_t>(ranks->begin(), ranks->end());
  };
  EXPECT_EQ(start.nodes()->Get(0)->node_id(), b_.id);
  EXPECT_EQ(start.nodes()->Get(1)->node_id(), a_.id);
  EXPECT_EQ(start.nodes()->Get(2)->node_id(), d_.id);
  EXPECT_EQ(start.nodes()->Get(2)->address()->str(), "10.0.0.40");
  EXPECT_EQ(ranks_of(0), (std::vector<uint32_t>{0}));
  EXPECT_EQ(ranks_of(1), (std::vector<uint32_t>{1, 4}));
  EXPECT_EQ(ranks_of(2), (std::vector<uint32_t>{2, 3}));
}

TEST_F(CoordinatorTest, ItsOwnNodeIsToldTheSameAsTheOthers) {
  struct Own final : ControlPlaneHandler {
    void on_control_message(const Peer&, const proto::ControlMessage& message) override {
      if (const auto* start = message.body_as_JobStart()) keys.push_back(start->job_key());
    }
    void on_peer_lost(const Peer&, const Status&) override {}
    std::vector<uint64_t> keys;
  } own;
  control_plane_.set_handler(own);
  join(self_, 0, 3);  // the first one in the ring
  join(a_, 1, 3);
  join(b_, 2, 3);
  run_until([&] { return !own.keys.empty(); });
  for (const Peer& peer : {a_, b_}) {
    EXPECT_EQ(start_at(peer).job_key(), own.keys.at(0));
    EXPECT_EQ(start_at(peer).nodes()->size(), 3u);
  }
}

TEST_F(CoordinatorTest, AJobGoesWhenAllItsNodesAreReady) {
  join(a_, 0, 2);
  join(b_, 1, 2);
  const uint64_t key = start_at(a_).job_key();
  tell(a_, make_job_ready(key));
  tell(a_, make_job_ready(key));      // twice counts once
  tell(d_, make_job_ready(key));      // not a member
  tell(b_, make_job_ready(key + 1));  // not this job
  EXPECT_TRUE(sent_to<proto::JobGo>(a_).empty());
  tell(b_, make_job_ready(key));
  ASSERT_EQ(sent_to<proto::JobGo>(a_).size(), 1u);
  ASSERT_EQ(sent_to<proto::JobGo>(b_).size(), 1u);
  EXPECT_EQ(sent_to<proto::JobGo>(b_)[0]->job_key(), key);
  EXPECT_TRUE(sent_to<proto::JobGo>(d_).empty());
}

TEST_F(CoordinatorTest, AContradictionInTheWorldSizeFailsTheJobForAll) {
  join(a_, 0, 3);
  join(b_, 1, 4);
  const Status reason = failure_of(a_);
  EXPECT_TRUE(is_error(reason, StatusCode::Mismatch, {"rank 0", "'a'", "3", "rank 1", "'b'", "4"}));
  EXPECT_EQ(failure_of(b_).message(), reason.message());  // or it would wait for its deadline
}

TEST_F(CoordinatorTest, AllNodesHearTheWeightThatAllRanksAskFor) {
  join(a_, 0, 2, kLongMs, "train", 7);
  join(b_, 1, 2, kLongMs, "train", 7);
  for (const Peer& peer : {a_, b_}) EXPECT_EQ(start_at(peer).weight(), 7u);
}

TEST_F(CoordinatorTest, AContradictionInTheWeightFailsTheJobForAll) {
  join(a_, 0, 3, kLongMs, "train", 1);
  join(b_, 1, 3, kLongMs, "train", 3);
  const Status reason = failure_of(a_);
  EXPECT_TRUE(is_error(reason, StatusCode::Mismatch,
                       {"BRAID_JOB_WEIGHT", "rank 0", "'a'", "1", "rank 1", "'b'", "3"}));
  EXPECT_EQ(failure_of(b_).message(), reason.message());
}

TEST_F(CoordinatorTest, ARankThatIsGivenTwiceFailsTheJobForAll) {
  join(a_, 0, 3);
  join(d_, 1, 3);
  join(b_, 0, 3);
  const Status reason = failure_of(a_);
  EXPECT_TRUE(is_error(reason, StatusCode::AlreadyExists, {"rank 0", "'a'", "100", "'b'"}));
  EXPECT_EQ(failure_of(b_).message(), reason.message());
  EXPECT_EQ(failure_of(d_).message(), reason.message());
  const auto failed = sent_to<proto::JobFailed>(d_);
  EXPECT_EQ(failed[0]->job_key(), 0u);
  EXPECT_EQ(failed[0]->name()->str(), "train");
}

TEST_F(CoordinatorTest, AFailedJobMayBeFormedAgain) {
  join(a_, 0, 2);
  join(b_, 0, 2);
  control_plane_.sent.clear();
  join(a_, 0, 2);
  join(b_, 1, 2);
  EXPECT_EQ(sent_to<proto::JobStart>(a_).size(), 1u);
  EXPECT_TRUE(sent_to<proto::JobFailed>(a_).empty());
}

TEST_F(CoordinatorTest, RefusesNumbersThatMakeNoSense) {
  join(a_, 2, 2);
  EXPECT_TRUE(is_error(failure_of(a_), StatusCode::InvalidArgument, {"rank 2", "2 makes"}));
  join(b_, 0, 0);
  EXPECT_EQ(failure_of(b_).code(), StatusCode::InvalidArgument);
  join(d_, 0, Coordinator::kWorldSizeMax + 1);
  EXPECT_EQ(failure_of(d_).code(), StatusCode::InvalidArgument);
}

TEST_F(CoordinatorTest, RefusesWeightsThatMakeNoSense) {
  join(a_, 0, 2, kLongMs, "train", 0);
  EXPECT_EQ(failure_of(a_).message(), "weight 0 makes no sense; right are 1 to 100");
  join(b_, 0, 2, kLongMs, "train", kJobWeightMax + 1);
  EXPECT_EQ(failure_of(b_).code(), StatusCode::InvalidArgument);
}

TEST_F(CoordinatorTest, TheDeadlineNamesTheMissingRanks) {
  join(a_, 1, 4, 10);
  join(b_, 3, 4, kLongMs);
  run_until([this] { return !sent_to<proto::JobFailed>(a_).empty(); });
  const Status reason = failure_of(a_);
  EXPECT_TRUE(
      is_error(reason, StatusCode::DeadlineExceeded, {"2 of 4 ranks", "10 ms", "rank 0, 2"}));
  EXPECT_EQ(failure_of(b_).message(), reason.message());
}

TEST_F(CoordinatorTest, TheDeadlineNamesOnlySomeOfManyRanks) {
  join(a_, 0, 100, 10);
  run_until([this] { return !sent_to<proto::JobFailed>(a_).empty(); });
  EXPECT_TRUE(names(failure_of(a_).message(),
                    {"1 of 100 ranks", "10 ms", "rank 1, 2, 3, 4, 5, 6, 7, 8", "91 more"}));
}

TEST_F(CoordinatorTest, ARankThatGoesWhileTheJobFormsFailsIt) {
  join(a_, 0, 3);
  join(b_, 1, 3);
  tell(d_, make_fail_job(0, "train", Status(StatusCode::JobFailed, "no member says so")));
  tell(a_, make_fail_job(0, "other", Status(StatusCode::JobFailed, "no such job")));
  EXPECT_TRUE(control_plane_.sent.empty());
  tell(b_, make_fail_job(0, "train", Status(StatusCode::JobFailed, "lost rank 1")));
  EXPECT_EQ(failure_of(a_).message(), "lost rank 1");
  EXPECT_EQ(failure_of(b_).code(), StatusCode::JobFailed);
}

TEST_F(CoordinatorTest, ANodeThatIsLostWhileTheJobFormsIsNamedWithItsRanks) {
  join(a_, 0, 4);
  join(b_, 1, 4);
  join(b_, 2, 4);
  control_plane_.remove_peer(b_.id);
  coordinator_.on_peer_lost(b_, Status(StatusCode::Unavailable, "silent for 5000 ms"));
  EXPECT_TRUE(
      is_error(failure_of(a_), StatusCode::JobFailed, {"'b'", "rank 1", "2 before", "5000 ms"}));
}

TEST_F(CoordinatorTest, EpochsOfAJobGrow) {
  for (uint32_t epoch = 1; epoch <= 3; ++epoch) {
    control_plane_.sent.clear();
    join(a_, 0, 1);
    EXPECT_EQ(start_at(a_).epoch(), epoch);
  }
  join(a_, 0, 1, kLongMs, "another");
  EXPECT_EQ(sent_to<proto::JobStart>(a_).back()->epoch(), 1u);
}

TEST_F(CoordinatorTest, JobsWithDifferentNamesDoNotMix) {
  join(a_, 0, 2, kLongMs, "one");
  join(b_, 1, 2, kLongMs, "two");
  EXPECT_TRUE(control_plane_.sent.empty());
  join(b_, 1, 2, kLongMs, "one");
  join(a_, 0, 2, kLongMs, "two");
  const auto starts = sent_to<proto::JobStart>(a_);
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_NE(starts[0]->job_key(), starts[1]->job_key());
}

TEST_F(CoordinatorTest, FormsSoManyJobsAtOnceAndNoMore) {
  for (size_t i = 0; i < FormingJobs::kJobsMax; ++i)
    join(a_, 0, 2, kLongMs, "job " + std::to_string(i), 1, {}, static_cast<uint32_t>(i / 256));
  EXPECT_TRUE(control_plane_.sent.empty());
  join(b_, 0, 2, kLongMs, "one too many", 1, {}, 1000);
  EXPECT_EQ(failure_of(b_).code(), StatusCode::ResourceExhausted);
  join(b_, 1, 2, kLongMs, "job 0");  // that one is in formation: it may go on
  EXPECT_EQ(sent_to<proto::JobStart>(a_).size(), 1u);
}

TEST_F(CoordinatorTest, LeavesOtherMessagesToOthers) {
  auto go = make_job_go(1);
  EXPECT_FALSE(coordinator_.on_control_message(a_, testing::as_message(go)));
  auto failed = make_job_failed(1, "train", Status(StatusCode::JobFailed, "x"));
  EXPECT_FALSE(coordinator_.on_control_message(a_, testing::as_message(failed)));
}

// The JobStart of a job of one rank on each of as many nodes as there are letters: their racks.
class CoordinatorAlgorithmsTest : public CoordinatorTest {
 protected:
  const proto::JobStart& start(const std::string& racks, const ConfiguredAlgorithms& algorithms,
                               const PlanningOptions& planning = {}) {
    Coordinator coordinator(*loop_, control_plane_, planning, algorithms);
    const CutSettings cut{8 << 20, 128 << 10, 1};
    const auto nodes = static_cast<uint32_t>(racks.size());
    for (uint32_t rank = 0; rank < nodes; ++rank) {
      const Peer peer{1000 + rank, "n", "10.0.1." + std::to_string(rank + 1), 7410};
      if (control_plane_.find(peer.id) == nullptr) control_plane_.add_peer(peer);
      const std::string rack(racks[rank] == '-' ? 0 : 1, racks[rank]);
      auto message = make_join_job("train", nodes, rank, 1, kLongMs, cut, 1, rack);
      EXPECT_TRUE(coordinator.on_control_message(peer, testing::as_message(message)));
    }
    return *control_plane_.sent_to<proto::JobStart>(1000).back();
  }
};

TEST_F(CoordinatorAlgorithmsTest, AutoFollowsFromTheLongestRoundTrip) {
  control_plane_.round_trips[1001] = 5'000'000;
  control_plane_.round_trips[1002] = 100'000;
  PlanningOptions planning;
  planning.planner = planners().front();
  const auto two_hops_bytes = [&] {
    return start("----", {{}, {}, false, {}}, planning).two_hops_bytes();
  };
  EXPECT_EQ(two_hops_bytes(), algorithm_sizes(4, assumed_hop_cost(5e-3)).two_hops_bytes);
  // Who keeps the first plan wants the same bits in every run, however far the nodes seem to be.
  planning.planner = nullptr;
  EXPECT_EQ(two_hops_bytes(), algorithm_sizes(4, assumed_hop_cost(0)).two_hops_bytes);
}

TEST_F(CoordinatorAlgorithmsTest, NodesOfARackStandTogether) {
  const proto::JobStart& racked = start("abab", {0, 0, true});
  EXPECT_TRUE(racked.hierarchical());
  std::string ranks;
  std::string racks;
  for (const proto::MemberNode* node : *racked.nodes()) {
    ranks += std::to_string(node->ranks()->Get(0));
    racks += node->rack()->str();
  }
  EXPECT_EQ(ranks, "0213");
  EXPECT_EQ(racks, "aabb");
}

}  // namespace
}  // namespace braid
