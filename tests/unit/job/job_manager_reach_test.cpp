// SPDX-License-Identifier: Apache-2.0
// A job that begins on connections that are about to end.
#include <algorithm>

#include "base/errors_testing.h"
#include "job/manager_world.h"

namespace braid {
namespace {

using testing::is_error;

// Rank 0 of three is here; b, which coordinates, and d are the others. Each is sent to.
class JobManagerReachTest : public testing::JobManagerTest {
 protected:
  void start_job() {
    transport_.holds_answers = true;
    start_with_b(3, {4096});
  }
  void lose_d() { manager_->on_peer_lost(d_, Status(StatusCode::Unavailable, "silent for 5 s")); }
  auto connects_to_d() const {
    return std::count(control_plane_.connects.begin(), control_plane_.connects.end(), d_.address);
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
  EXPECT_TRUE(is_error(failure_told_to_b(), StatusCode::JobFailed, {"'d'", "rank 2", "5 s"}));
}

TEST_F(JobManagerReachTest, ANodeThatIsGoneFailsTheJob) {
  start_job();
  wait_for([&] { return transport_.opened.size() == 2; });
  control_plane_.remove_peer(d_.id);
  lose_d();
  EXPECT_TRUE(is_error(failure_told_to_b(), StatusCode::Unavailable, {"'here'", "'10.0.0.40'"}));
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
  end_job_of_b();
  EXPECT_TRUE(look_again().empty());
  EXPECT_TRUE(look_again().empty()) << "until none is left";
  transport_.has_idle_links = false;
  EXPECT_TRUE(look_again().empty());
  transport_.used_links.reset();
  const uint64_t begin_ms = uv_now(loop_->uv());
  wait_for([&] { return uv_now(loop_->uv()) - begin_ms >= 100; });
  EXPECT_FALSE(transport_.used_links.has_value()) << "an idle daemon sleeps";
}

// A coordinator's daemon whose port the kernel has chosen says it with its address.
TEST_F(JobManagerReachTest, AMasterMayNameItsPort) {
  const Peer there{99, "there", "10.0.0.99", 45123};
  control_plane_.add_peer(there);
  add_trainer().open("named", 0, 2, "10.0.0.99:45123");
  add_trainer().open("plain", 0, 2, "10.0.0.99");
  add_trainer().open("no port", 0, 2, "10.0.0.99:0x1");
  wait_for([&] { return control_plane_.connects.size() >= 3; });
  EXPECT_EQ(control_plane_.connects[0], "10.0.0.99");
  EXPECT_EQ(control_plane_.connected_ports[0], 45123);
  EXPECT_EQ(control_plane_.connects[1], "10.0.0.99");
  EXPECT_EQ(control_plane_.connected_ports[1], 7410);
  EXPECT_EQ(control_plane_.connects[2], "10.0.0.99:0x1");
}

TEST_F(JobManagerReachTest, AnotherPortOfThisHostIsAnotherDaemon) {
  add_trainer().open("of another", 0, 2, "127.0.0.1:45123");
  wait_for([&] { return !control_plane_.connects.empty(); });
  EXPECT_EQ(control_plane_.connected_ports[0], 45123);
  add_trainer().open("own", 0, 1, "127.0.0.1:7410");
  wait_for([&] { return manager_->jobs().size() == 1; });
  EXPECT_EQ(std::ranges::count(control_plane_.connected_ports, 7410), 0);
}

}  // namespace
}  // namespace braid
