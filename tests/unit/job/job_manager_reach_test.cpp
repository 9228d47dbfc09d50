// SPDX-License-Identifier: Apache-2.0
// A job that begins on connections that are about to end.
#include <algorithm>

#include "job/manager_world.h"

namespace braid {
namespace {

// Rank 0 of three is here; b, which coordinates, and d are the others. Each is sent to.
class JobManagerReachTest : public testing::JobManagerTest {
 protected:
  void start_job() {
    control_plane_.add_peer(d_);
    add_trainer().open("train", 0, 3, b_.address);
    wait_for([&] { return !sent_to_b<proto::JoinJob>().empty(); });
    const std::vector<MemberNode> nodes = {{self_, {0}}, {b_, {1}}, {d_, {2}}};
    control_plane_.connects.clear();
    transport_.holds_answers = true;
    hear(b_, make_job_start("train", 3, 4, kKey, nodes, {4096}));
  }
  void lose_d() { manager_->on_peer_lost(d_, Status(StatusCode::Unavailable, "silent for 5 s")); }
  auto connects_to_d() const {
    return std::count(control_plane_.connects.begin(), control_plane_.connects.end(), d_.address);
  }
  template <typename Table>
  std::vector<const Table*> sent_to_b() const {
    return control_plane_.sent_to<Table>(b_.id);
  }
  void expect_ready_once() {
    settle();
    EXPECT_TRUE(sent_to_b<proto::JobReady>().empty());
    transport_.answer();
    wait_for([&] { return !sent_to_b<proto::JobReady>().empty(); });
    settle();
    EXPECT_EQ(sent_to_b<proto::JobReady>().size(), 1u);
    EXPECT_TRUE(sent_to_b<proto::FailJob>().empty());
  }

  static constexpr uint64_t kKey = 99;
  const Peer d_{40, "d", "10.0.0.40", 7410};
};

TEST_F(JobManagerReachTest, ANodeThatIsLostWhileItIsBeingReachedIsLeftToTheAnswer) {
  start_job();
  lose_d();
  EXPECT_EQ(connects_to_d(), 1);
  expect_ready_once();
}

TEST_F(JobManagerReachTest, ANodeThatIsLostWhileLinksOpenIsReachedAgain) {
  start_job();
  wait_for([&] { return transport_.opened.size() == 2; });
  lose_d();
  EXPECT_EQ(transport_.lost, (std::vector<NodeId>{d_.id}));
  EXPECT_EQ(connects_to_d(), 2);
  expect_ready_once();
  EXPECT_EQ(transport_.opened, (std::vector<NodeId>{b_.id, d_.id, b_.id, d_.id}));
}

TEST_F(JobManagerReachTest, ANodeThatIsLostAgainAndAgainFailsTheJob) {
  start_job();
  for (size_t attempt = 1; attempt <= 3; ++attempt) {
    wait_for([&] { return transport_.opened.size() == 2 * attempt; });
    ASSERT_TRUE(sent_to_b<proto::FailJob>().empty());
    lose_d();
  }
  ASSERT_EQ(sent_to_b<proto::FailJob>().size(), 1u);
  EXPECT_EQ(sent_to_b<proto::FailJob>()[0]->reason()->str(),
            "job 'train': lost node 'd' with rank 2: silent for 5 s");
}

TEST_F(JobManagerReachTest, ANodeThatIsGoneFailsTheJob) {
  start_job();
  wait_for([&] { return transport_.opened.size() == 2; });
  control_plane_.remove_peer(d_.id);
  lose_d();
  wait_for([&] { return !sent_to_b<proto::FailJob>().empty(); });
  EXPECT_EQ(sent_to_b<proto::FailJob>()[0]->reason()->str(),
            "job 'train': node 'here': nobody listens at '10.0.0.40'");
}

TEST_F(JobManagerReachTest, ANodeThatIsLostAfterJobReadyFailsTheJob) {
  start_job();
  expect_ready_once();
  lose_d();
  ASSERT_EQ(sent_to_b<proto::FailJob>().size(), 1u);
}

TEST_F(JobManagerReachTest, TheLossOfAnotherJobsNodeChangesNothing) {
  const Peer other{77, "other", "10.0.0.77", 7410};
  start_job();
  wait_for([&] { return transport_.opened.size() == 2; });
  manager_->on_peer_lost(other, Status(StatusCode::Unavailable, "gone"));
  EXPECT_EQ(connects_to_d(), 1);
  expect_ready_once();
}

TEST_F(JobManagerReachTest, LinksAreInUseAsLongAsTheirJob) {
  const auto look_again = [this] {
    transport_.used_links.reset();
    wait_for([this] { return transport_.used_links.has_value(); });
    return *transport_.used_links;
  };
  start_job();
  EXPECT_EQ(look_again(), (std::unordered_set<NodeId>{b_.id, d_.id})) << "as soon as it begins";
  expect_ready_once();
  EXPECT_EQ(look_again(), (std::unordered_set<NodeId>{b_.id, d_.id}));

  transport_.has_idle_links = true;
  hear(b_, make_job_failed(kKey, "train", Status(StatusCode::JobFailed, "a test")));
  wait_for([&] { return manager_->jobs().size() == 0; });
  EXPECT_TRUE(look_again().empty());
  EXPECT_TRUE(look_again().empty()) << "until none is left";
  transport_.has_idle_links = false;
  EXPECT_TRUE(look_again().empty());
  transport_.used_links.reset();
  const uint64_t begin_ms = uv_now(loop_->uv());
  wait_for([&] { return uv_now(loop_->uv()) - begin_ms >= 100; });
  EXPECT_FALSE(transport_.used_links.has_value()) << "an idle daemon sleeps";
}

}  // namespace
}  // namespace braid
