// SPDX-License-Identifier: Apache-2.0
// What users of one node can do to each other's jobs: nothing.
#include <algorithm>

#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/errors_testing.h"
#include "job/manager_world.h"

namespace braid {
namespace {

using testing::is_error;
using testing::names;

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
  // In a job of its own.
  testing::TestTrainer& open_stranger(const std::string& job = "train") {
    testing::TestTrainer& stranger = add_stranger();
    stranger.open(job, 0, 1, kThisNode);
    wait_for([&] { return stranger.is_open; });
    return stranger;
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
  EXPECT_TRUE(is_error(failure_of(*trainers_[1]), StatusCode::PermissionDenied,
                       {"user 65534", "rank 1", "user 0"}));
  add_trainer().open("train", 1, 2, kThisNode, 60'000, 0, "secret");
  wait_for([&] { return trainers_[0]->is_open && trainers_[2]->is_open; });
}

TEST_F(JobManagerUsersTest, AVerdictAboutANamesakeIsNotOurs) {
  add_trainer().open("train", 0, 2, b_.address, 60'000, 0, "mine");
  add_trainer().open("train", 0, 2, b_.address, 60'000, 0, "theirs");
  wait_for([&] { return sent_to_b<proto::JoinJob>().size() == 2; });
  const Status reason(StatusCode::Mismatch, "ranks disagree");
  hear(b_, braid::make_job_failed(0, "train", reason, owner("train", "theirs")));
  wait_for([&] { return !trainers_[1]->failure.is_ok(); });
  EXPECT_TRUE(trainers_[0]->failure.is_ok());
  const std::vector<MemberNode> nodes = {{self_, {0}}, {b_, {1}}};
  hear(b_, braid::make_job_start("train", 2, 1, 99, nodes, {}, 1, owner("train", "mine")));
  wait_for([&] { return !sent_to_b<proto::JobReady>().empty(); });
}

TEST_F(JobManagerUsersTest, TheTokenItselfStaysOnTheNode) {
  const std::string token = "a token that nobody else may read";
  add_trainer().open("train", 0, 2, b_.address, 60'000, 0, token);
  wait_for([&] { return !sent_to_b<proto::JoinJob>().empty(); });
  for (const auto& sent : control_plane_.sent) {
    const std::string bytes(sent.bytes.begin(), sent.bytes.end());
    EXPECT_EQ(bytes.find(token), std::string::npos);
  }
  EXPECT_EQ(*parse_job_owner(sent_to_b<proto::JoinJob>()[0]->owner()), owner("train", token));
}

TEST_F(JobManagerUsersTest, AStrangerSeesHisOwnJobsAndHowManyAreHidden) {
  NEEDS_ROOT();
  add_trainer().open("ours", 0, 1, kThisNode);
  add_stranger().open("theirs", 0, 1, kThisNode);
  wait_for([&] { return trainers_[0]->is_open && trainers_[1]->is_open; });
  EXPECT_EQ(statuses(0).size(), 2u);
  EXPECT_EQ(telling_->questions().hidden_from(0), 0u);
  const auto seen = statuses(kStranger);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].name, "theirs");
  EXPECT_EQ(telling_->questions().hidden_from(kStranger), 1u);
  EXPECT_TRUE(statuses(1234).empty());
  EXPECT_EQ(telling_->questions().hidden_from(1234), 2u);

  testing::TestTrainer& root = add_trainer();
  testing::TestTrainer& stranger = add_stranger();
  for (testing::TestTrainer* asker : {&root, &stranger}) {
    asker->ask_plans("");
    wait_for([&] { return !asker->status_reply.empty(); });
  }
  EXPECT_NE(root.status_reply.find("ours"), std::string::npos) << root.status_reply;
  EXPECT_EQ(root.jobs_hidden, 0u);
  EXPECT_EQ(stranger.status_reply.find("ours"), std::string::npos) << stranger.status_reply;
  EXPECT_NE(stranger.status_reply.find("theirs"), std::string::npos) << stranger.status_reply;
  EXPECT_EQ(stranger.jobs_hidden, 1u);
  // Neither by name.
  stranger.status_reply.clear();
  stranger.ask_plans("ours");
  wait_for([&] { return !stranger.status_reply.empty(); });
  EXPECT_EQ(stranger.status_reply, "[]");
}

TEST_F(JobManagerUsersTest, JobsOfAUserAreLimitedAndOthersAreNot) {
  NEEDS_ROOT();
  for (int i = 0; i < 3; ++i) add_stranger().open("job " + std::to_string(i), 0, 2, kThisNode);
  settle();
  add_stranger().open("job 1", 1, 2, kThisNode);  // a second rank of the same job takes no place
  wait_for([&] { return trainers_[1]->is_open && trainers_[3]->is_open; });
  testing::TestTrainer& refused = add_stranger();
  refused.open("one too many", 0, 2, kThisNode);
  EXPECT_TRUE(
      is_error(failure_of(refused), StatusCode::ResourceExhausted, {"client.user_jobs_max"}));
  testing::TestTrainer& innocent = add_trainer();
  innocent.open("ours", 0, 1, kThisNode);
  wait_for([&] { return innocent.is_open; });
  trainers_[0]->hang_up();  // gives a place back
  wait_for([&] { return quotas_->used(kStranger, UserResource::Jobs) == 2; });
}

TEST_F(JobManagerUsersTest, ArenasOfAUserAreLimited) {
  NEEDS_ROOT();
  for (uint32_t rank = 0; rank < 5; ++rank) add_stranger().open("train", rank, 6, kThisNode);
  wait_for([&] {
    return quotas_->used(kStranger, UserResource::ArenaBytes) ==
           5 * testing::TestTrainer::kArenaBytes;
  });
  testing::TestTrainer& refused = add_stranger();
  refused.open("train", 5, 6, kThisNode);
  EXPECT_TRUE(names(failure_of(refused).message(), {"client.user_arena_bytes_max"}));
}

TEST_F(JobManagerUsersTest, RingsOfAUserAreLimited) {
  NEEDS_ROOT();
  const auto used = [&] { return quotas_->used(kStranger, UserResource::BufferBytes); };
  UserCharge others(quotas_, kStranger, UserResource::BufferBytes);
  add_stranger().open("train", 0, 3, kThisNode);
  wait_for([&] { return used() != 0; });
  const uint64_t rings = used();
  ASSERT_TRUE(others.set(kMemoryOfUser - 2 * rings).is_ok());
  add_stranger().open("train", 1, 3, kThisNode);
  wait_for([&] { return used() == kMemoryOfUser; });
  testing::TestTrainer& refused = add_stranger();
  refused.open("train", 2, 3, kThisNode);
  EXPECT_TRUE(is_error(failure_of(refused), StatusCode::ResourceExhausted,
                       {"client.user_result_bytes_max"}));
  for (const auto& trainer : trainers_) trainer->hang_up();
  wait_for([&] { return used() == kMemoryOfUser - 2 * rings; });
}

TEST_F(JobManagerUsersTest, TensorsOfAUserAreLimited) {
  NEEDS_ROOT();
  testing::TestTrainer& stranger = open_stranger();
  stranger.register_tensors({{"a", 1}, {"b", 1}, {"c", 1}});
  wait_for([&] { return stranger.registered.size() == 1; });
  stranger.register_tensors({{"d", 1}, {"e", 1}});
  wait_for([&] { return !stranger.refusal.empty(); });
  EXPECT_NE(stranger.refusal.find("registered tensors"), std::string::npos) << stranger.refusal;
  stranger.register_tensors({{"d", 1}});  // what was refused was not counted
  wait_for([&] { return stranger.registered.size() == 2; });
  stranger.leave();
  stranger.hang_up();
  wait_for([&] { return quotas_->used(kStranger, UserResource::Tensors) == 0; });
  EXPECT_EQ(quotas_->used(kStranger, UserResource::ArenaBytes), 0u);
  EXPECT_EQ(quotas_->used(kStranger, UserResource::Jobs), 0u);
}

TEST_F(JobManagerUsersTest, TensorNamesOfAUserAreLimited) {
  NEEDS_ROOT();
  testing::TestTrainer& stranger = open_stranger();
  stranger.register_tensors({{std::string(50, 'a'), 1}, {std::string(15, 'b'), 1}});
  wait_for([&] { return !stranger.refusal.empty(); });
  EXPECT_TRUE(names(stranger.refusal, {"bytes of tensors' names"}));
  stranger.register_tensors({{std::string(50, 'a'), 1}});  // what was refused was not counted
  wait_for([&] { return stranger.registered.size() == 1; });
  EXPECT_EQ(quotas_->used(kStranger, UserResource::NameBytes), 50u);
  stranger.hang_up();
  wait_for([&] { return quotas_->used(kStranger, UserResource::NameBytes) == 0; });
}

TEST_F(JobManagerUsersTest, DescriptorsOfAUsersTrainersAndArenasAreLimited) {
  NEEDS_ROOT();
  for (uint32_t rank = 0; rank < 3; ++rank) add_stranger().open("train", rank, 3, kThisNode);
  wait_for_all([](const auto& trainer) { return trainer.is_open; });
  const auto used = [&] { return quotas_->used(kStranger, UserResource::Descriptors); };
  EXPECT_EQ(used(), 3u * (7 + 1));
  for (const auto& trainer : trainers_) {
    for (int arena = 0; arena < 15; ++arena) trainer->register_memory(4096, 4096);
  }
  const auto refused = [&] {
    return std::ranges::find_if(trainers_, [](const auto& one) { return !one->refusal.empty(); });
  };
  wait_for([&] { return refused() != trainers_.end(); });
  EXPECT_TRUE(names((*refused())->refusal, {"file descriptors of braidd"}));
  EXPECT_LE(used(), 60u);
  for (const auto& trainer : trainers_) trainer->hang_up();
  wait_for([&] { return used() == 0; });
}

TEST_F(JobManagerUsersTest, PendingOperationsOfAUserAreLimited) {
  NEEDS_ROOT();
  testing::TestTrainer& first = open_stranger("one");
  testing::TestTrainer& second = open_stranger("two");
  for (testing::TestTrainer* stranger : {&first, &second}) register_w(*stranger);
  for (uint64_t step = 0; step < 6; ++step) first.submit(step + 1, 0, step);
  wait_for([&] { return first.done.size() == 6; });
  EXPECT_EQ(quotas_->used(kStranger, UserResource::Operations), 6u) << "until they are released";
  first.release(1);
  wait_for([&] { return quotas_->used(kStranger, UserResource::Operations) == 5; });
  second.submit(1, 0, 0);
  wait_for([&] { return second.done.size() == 1; });
  second.submit(2, 0, 1);
  EXPECT_TRUE(is_error(failure_of(second), StatusCode::ResourceExhausted,
                       {"'two'", "rank 0", "user 65534", "6 pending", "1"}));
  EXPECT_EQ(quotas_->used(kStranger, UserResource::Operations), 5u) << "a failed job has none";
  EXPECT_TRUE(first.failure.is_ok());
  open_job(1);
  testing::TestTrainer& innocent = *trainers_.back();
  for (uint64_t step = 0; step < 10; ++step) innocent.submit(step + 1, 0, step);
  wait_for([&] { return innocent.done.size() == 10; });
}

TEST_F(JobManagerUsersTest, InputsThatWereNeverWrittenCountAsTheirUsers) {
  NEEDS_ROOT();
  constexpr uint64_t kCount = testing::TestTrainer::kArenaBytes / 4 / sizeof(float);
  UserCharge other_job(quotas_, kStranger, UserResource::ResultBytes);
  ASSERT_TRUE(other_job.set(kResultBytes).is_ok());
  testing::TestTrainer& stranger = open_stranger("sparse");
  stranger.register_tensors({{"w", kCount}});
  wait_for([&] { return stranger.registered.size() == 1; });
  const auto pages = [this] { return quotas_->used(kStranger, UserResource::InputPages); };
  std::fill_n(stranger.floats(0), kCount, 1.0f);
  stranger.submit(1, 0, 0, 0);
  wait_for([&] { return stranger.done.size() == 1; });
  EXPECT_EQ(pages(), 0u) << "these have pages already";
  // The rings are the user's as well.
  for (uint64_t i = 1; i < 2; ++i) {
    stranger.submit(1 + i, 0, i, i * kCount * sizeof(float));
    wait_for([&] { return stranger.done.size() == 1 + i; });
    EXPECT_EQ(pages(), i * kCount * sizeof(float));
  }
  stranger.submit(4, 0, 3, 2 * kCount * sizeof(float));
  wait_for([&] { return !stranger.failure.is_ok(); });
  EXPECT_TRUE(
      is_error(stranger.failure, StatusCode::ResourceExhausted,
               {"'sparse'", "rank 0", "'w' step 3", "262144 bytes at 524288",
                "262144 of inputs that were never written", "client.user_result_bytes_max"}));
}

class JobManagerResultsTest : public testing::JobManagerTest {
 protected:
  explicit JobManagerResultsTest(uint32_t farewell_ms = 60'000) : JobManagerTest(farewell_ms) {}

  uint64_t used(UserResource resource) const { return quotas_->used(::geteuid(), resource); }
  // Two trainers, who have a result.
  void sum() {
    open_job(2);
    for (const auto& trainer : trainers_) {
      std::fill_n(trainer->floats(), 4, 1.0f);
      trainer->submit(1, 0, 0);
    }
    wait_for([&] { return trainers_[0]->done.size() == 1 && trainers_[1]->done.size() == 1; });
    results_ = used(UserResource::ResultBytes);
    EXPECT_NE(results_, 0u);
  }

  uint64_t results_ = 0;
};

TEST_F(JobManagerResultsTest, ResultsCountUntilAllHaveLeft) {
  sum();
  trainers_[0]->leave();
  wait_for([&] { return trainers_[0]->has_left; });
  EXPECT_EQ(used(UserResource::ResultBytes), results_);
  trainers_[1]->leave();
  wait_for([&] { return used(UserResource::ResultBytes) == 0; });
  EXPECT_EQ(used(UserResource::LingeringBytes), 0u);
}

TEST_F(JobManagerResultsTest, AfterAFailureResultsCountUntilWhoMayReadThemHasGone) {
  sum();
  trainers_[1]->hang_up();
  wait_for([&] { return !trainers_[0]->failure.is_ok(); });
  settle();
  EXPECT_EQ(used(UserResource::ResultBytes), results_);
  trainers_[0]->hang_up();
  wait_for([&] { return used(UserResource::ResultBytes) == 0; });
  EXPECT_EQ(used(UserResource::LingeringBytes), 0u);
}

class JobManagerFarewellTest : public JobManagerResultsTest {
 protected:
  JobManagerFarewellTest() : JobManagerResultsTest(20) {}
};

TEST_F(JobManagerFarewellTest, WhatWhoIsLetGoMayStillReadLingers) {
  sum();
  trainers_[1]->hang_up();
  wait_for([&] { return trainers_[0]->was_closed; });
  wait_for([&] { return used(UserResource::ResultBytes) == 0; });
  EXPECT_EQ(used(UserResource::LingeringBytes), results_);
}

// As one that is stopped: it neither reads nor goes.
TEST_F(JobManagerFarewellTest, ATrainerWhoseJobHasFailedIsLetGoAfterAWhile) {
  open_job(2);
  trainers_[1]->hang_up();
  wait_for([&] { return !trainers_[0]->failure.is_ok(); });
  wait_for([&] { return trainers_[0]->was_closed; });
  wait_for([&] { return quotas_->used(::geteuid(), UserResource::ArenaBytes) == 0; });
  EXPECT_EQ(quotas_->used(::geteuid(), UserResource::Jobs), 0u);
}

TEST_F(JobManagerFarewellTest, SoIsOneThatHasLeftAndStays) {
  open_job(1);
  trainers_[0]->leave();
  wait_for([&] { return trainers_[0]->was_closed; });
  EXPECT_TRUE(trainers_[0]->has_left);
  wait_for([&] { return quotas_->used(::geteuid(), UserResource::ArenaBytes) == 0; });
}

TEST_F(JobManagerUsersTest, TheLookUpOfAMasterAddressIsItsUsers) {
  NEEDS_ROOT();
  add_stranger().open("train", 0, 2, "far.example");
  wait_for([&] { return !control_plane_.connects.empty(); });
  EXPECT_EQ(control_plane_.connects[0], "far.example");
  EXPECT_EQ(control_plane_.connected_for[0], kStranger);
}

}  // namespace
}  // namespace braid
