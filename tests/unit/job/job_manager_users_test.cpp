// SPDX-License-Identifier: Apache-2.0
// What users of one node can do to each other's jobs: nothing.
#include <sys/stat.h>
#include <sys/syscall.h>

#include "job/manager_world.h"

namespace braid {
namespace {

class JobManagerUsersTest : public testing::JobManagerTest {
 protected:
  static constexpr uid_t kStranger = 65534;

  // A trainer of another user. Its process is this one: the kernel tells who connected.
  testing::TestTrainer& add_stranger() {
    ::chmod(directory_.path().c_str(), 0755);
    ::chmod(directory_.file("braidd.sock").c_str(), 0666);
    // Not seteuid(): of this thread alone.
    EXPECT_EQ(::syscall(SYS_setresuid, -1, kStranger, -1), 0);
    testing::TestTrainer& trainer = add_trainer();
    EXPECT_EQ(::syscall(SYS_setresuid, -1, 0, -1), 0);
    return trainer;
  }
  static bool is_root() { return ::geteuid() == 0; }
};

#define NEEDS_ROOT() \
  if (!is_root()) GTEST_SKIP() << "only root can be two users"

TEST_F(JobManagerUsersTest, ATokenDecidesWhoBelongsTogether) {
  add_trainer().open("train", 0, 2, kThisNode, 60'000, 0, "secret");
  add_trainer().open("train", 1, 2, kThisNode, 60'000, 0, "Secret");
  settle();
  EXPECT_FALSE(trainers_[0]->is_open);
  add_trainer().open("train", 1, 2, kThisNode, 60'000, 0, "secret");
  wait_for([&] { return trainers_[0]->is_open && trainers_[2]->is_open; });
  EXPECT_FALSE(trainers_[1]->is_open);
  EXPECT_TRUE(trainers_[1]->failure.is_ok());
}

TEST_F(JobManagerUsersTest, AStrangerWithoutTheTokenTakesNoRank) {
  NEEDS_ROOT();
  add_stranger().open("train", 1, 2, kThisNode);  // came first
  add_trainer().open("train", 0, 2, kThisNode);
  settle();
  EXPECT_FALSE(trainers_[0]->is_open || trainers_[1]->is_open);
  add_trainer().open("train", 1, 2, kThisNode);
  wait_for([&] { return trainers_[1]->is_open && trainers_[2]->is_open; });
  EXPECT_FALSE(trainers_[0]->is_open);
  // And one who goes takes nobody along.
  trainers_[0]->hang_up();
  settle();
  trainers_[1]->leave();
  trainers_[2]->leave();
  wait_for([&] { return trainers_[1]->has_left && trainers_[2]->has_left; });
}

TEST_F(JobManagerUsersTest, AStrangerWithTheTokenIsRefusedOnTheSameNode) {
  NEEDS_ROOT();
  add_trainer().open("train", 0, 2, kThisNode, 60'000, 0, "secret");
  settle();
  add_stranger().open("train", 1, 2, kThisNode, 60'000, 0, "secret");
  wait_for([&] { return !trainers_[1]->failure.is_ok(); });
  EXPECT_EQ(trainers_[1]->failure.code(), StatusCode::PermissionDenied);
  EXPECT_EQ(trainers_[1]->failure.message(),
            "job 'train': user 65534 cannot be rank 1 of it on this node: the ranks that are here "
            "already run as user 0, and all of a node run as one");
  add_trainer().open("train", 1, 2, kThisNode, 60'000, 0, "secret");
  wait_for([&] { return trainers_[0]->is_open && trainers_[2]->is_open; });
}

TEST_F(JobManagerUsersTest, AVerdictAboutANamesakeIsNotOurs) {
  add_trainer().open("train", 0, 2, b_.address, 60'000, 0, "mine");
  add_trainer().open("train", 0, 2, b_.address, 60'000, 0, "theirs");
  wait_for([&] { return control_plane_.sent_to<proto::JoinJob>(b_.id).size() == 2; });
  const Status reason(StatusCode::Mismatch, "ranks disagree");
  hear(b_, braid::make_job_failed(0, "train", reason, owner("train", "theirs")));
  wait_for([&] { return !trainers_[1]->failure.is_ok(); });
  EXPECT_TRUE(trainers_[0]->failure.is_ok());
  const std::vector<MemberNode> nodes = {{self_, {0}}, {b_, {1}}};
  hear(b_, braid::make_job_start("train", 2, 1, 99, nodes, {}, 1, owner("train", "mine")));
  wait_for([&] { return !control_plane_.sent_to<proto::JobReady>(b_.id).empty(); });
}

TEST_F(JobManagerUsersTest, TheTokenItselfStaysOnTheNode) {
  const std::string token = "a token that nobody else may read";
  add_trainer().open("train", 0, 2, b_.address, 60'000, 0, token);
  wait_for([&] { return !control_plane_.sent_to<proto::JoinJob>(b_.id).empty(); });
  for (const auto& sent : control_plane_.sent) {
    const std::string bytes(sent.bytes.begin(), sent.bytes.end());
    EXPECT_EQ(bytes.find(token), std::string::npos);
  }
  EXPECT_EQ(*parse_job_owner(control_plane_.sent_to<proto::JoinJob>(b_.id)[0]->owner()),
            owner("train", token));
}

}  // namespace
}  // namespace braid
