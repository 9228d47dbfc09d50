// SPDX-License-Identifier: Apache-2.0
// Tensors that nobody uses any more, and trainers that say so when it is not true.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/errors_testing.h"
#include "job/manager_world.h"
#include "messages/plan_messages.h"
#include "proto/update.h"

namespace braid {
namespace {

using testing::names;
using testing::TestTrainer;

class JobManagerUnregistrationTest : public testing::JobManagerTest {
 protected:
  using Tensors = std::vector<std::pair<std::string, uint64_t>>;

  // Ranks of this node; each has 'w', which is tensor 0.
  void open(uint32_t ranks) { open_job(ranks, 10); }
  uint32_t add(TestTrainer& trainer, const Tensors& tensors, bool planned = false) {
    const size_t before = trainer.registered.size();
    trainer.register_tensors(tensors, DataType::Float32, planned);
    wait_for([&] { return trainer.registered.size() > before || !trainer.refusal.empty(); });
    EXPECT_EQ(trainer.refusal, "");
    return trainer.registered.back();
  }
  void remove(TestTrainer& trainer, uint32_t first, uint32_t count) {
    const uint32_t before = trainer.unregistered;
    trainer.unregister_tensors(first, count);
    wait_for([&] { return trainer.unregistered > before || !trainer.refusal.empty(); });
    EXPECT_EQ(trainer.refusal, "");
  }
  std::string refusal(TestTrainer& trainer, uint32_t first, uint32_t count) {
    trainer.unregister_tensors(first, count);
    wait_for([&] { return !trainer.refusal.empty(); });
    return std::exchange(trainer.refusal, {});
  }
  // All ranks do it; the result is right, and given back.
  void reduce(uint32_t tensor, uint64_t step) { reduce_all({tensor}, step); }
  void reduce_all(const std::vector<uint32_t>& tensors, uint64_t step) {
    for (auto& trainer : trainers_) {
      trainer->done.clear();
      std::fill_n(trainer->floats(), 10, 3.0F);
      for (const uint32_t tensor : tensors) trainer->submit(tensor + 1, tensor, step);
    }
    const float sum = 3.0F * static_cast<float>(trainers_.size());
    for (auto& trainer : trainers_) {
      wait_for([&] { return trainer->done.size() == tensors.size(); });
      for (const proto::DoneEntry& done : trainer->done) {
        EXPECT_EQ(trainer->result(done)[9], sum);
        trainer->release(done.ticket);
      }
    }
  }
  uint64_t used(UserResource resource) const { return quotas_->used(::geteuid(), resource); }
  std::string plans() {
    trainers_[0]->status_reply.clear();
    trainers_[0]->ask_plans("train");
    wait_for([&] { return !trainers_[0]->status_reply.empty(); });
    return trainers_[0]->status_reply;
  }
};

TEST_F(JobManagerUnregistrationTest, WhatIsUnregisteredCountsNoMore) {
  open(1);
  const uint64_t tensors = used(UserResource::Tensors), names = used(UserResource::NameBytes);
  for (uint32_t round = 0; round < 3; ++round) {
    const uint32_t first =
        add(*trainers_[0], {{"t" + std::to_string(round), 10}, {"u" + std::to_string(round), 10}});
    EXPECT_EQ(first, 1 + 2 * round);
    EXPECT_EQ(used(UserResource::Tensors), tensors + 2);
    reduce(first, 0);
    remove(*trainers_[0], first, 2);
    EXPECT_EQ(used(UserResource::Tensors), tensors);
    EXPECT_EQ(used(UserResource::NameBytes), names);
  }
  reduce(0, 7);
}

TEST_F(JobManagerUnregistrationTest, ALargeOneGoesInPieces) {
  open(1);
  Tensors tensors;
  for (size_t i = 0; i < 10 * Registration::kPieceTensors; ++i)
    tensors.emplace_back("large" + std::to_string(i), 10);
  const uint64_t before = used(UserResource::Tensors);
  const uint32_t first = add(*trainers_[0], tensors, true);
  reduce(0, 0);
  remove(*trainers_[0], first, static_cast<uint32_t>(tensors.size()));
  EXPECT_EQ(used(UserResource::Tensors), before);
  EXPECT_EQ(add(*trainers_[0], {{"next", 10}}), first + tensors.size());
}

TEST_F(JobManagerUnregistrationTest, AHandleThatIsGoneCannotBeSubmitted) {
  open(1);
  const uint32_t first = add(*trainers_[0], {{"t", 10}});
  remove(*trainers_[0], first, 1);
  trainers_[0]->submit(1, first, 0);
  EXPECT_TRUE(names(failure_of(*trainers_[0]).message(), {"rank 0", "tensor 1"}));
}

TEST_F(JobManagerUnregistrationTest, OnlyAWholeRegistrationGoesAndOnce) {
  open(1);
  TestTrainer& trainer = *trainers_[0];
  const uint32_t first = add(trainer, {{"t", 10}, {"u", 10}});
  EXPECT_NE(refusal(trainer, first, 1).find("are no whole registration"), std::string::npos);
  EXPECT_NE(refusal(trainer, first + 1, 1).find("are no whole registration"), std::string::npos);
  EXPECT_NE(refusal(trainer, 0, 3).find("are no whole registration"), std::string::npos);
  EXPECT_EQ(refusal(trainer, 77, 2), "tensor 77 is not registered");
  reduce(first, 0);
  remove(trainer, first, 2);
  EXPECT_EQ(refusal(trainer, first, 2), "tensor 1 is not registered");
  reduce(0, 0);
}

TEST_F(JobManagerUnregistrationTest, AnOperationInFlightKeepsIt) {
  open(2);
  for (auto& trainer : trainers_) add(*trainer, {{"t", 10}});
  TestTrainer& first = *trainers_[0];
  first.submit(1, 1, 0);
  const std::string pending =
      "'t' and the tensors registered with it cannot be unregistered: operations of theirs that "
      "were not given back: 1";
  EXPECT_EQ(refusal(first, 1, 1), pending);
  trainers_[1]->submit(1, 1, 0);
  wait_for([&] { return first.done.size() == 1; });
  EXPECT_EQ(refusal(first, 1, 1), pending);  // the result is still being read
  first.release(1);
  remove(first, 1, 1);
}

// Releases do not wake the daemon.
TEST_F(JobManagerUnregistrationTest, WhatLiesInTheRingComesFirst) {
  open(1);
  TestTrainer& trainer = *trainers_[0];
  add(trainer, {{"t", 10}});
  for (uint64_t ticket = 1; ticket <= 8; ++ticket) trainer.submit(ticket, 1, ticket);
  wait_for([&] { return trainer.done.size() == 8; });
  settle();
  trainer.wakes_daemon = false;
  for (uint64_t ticket = 1; ticket <= 8; ++ticket) trainer.release(ticket);
  remove(trainer, 1, 1);
}

TEST_F(JobManagerUnregistrationTest, ASetGoesWithTheLastRank) {
  open(2);
  for (auto& trainer : trainers_) add(*trainer, {{"t0", 10}, {"t1", 10}}, true);
  reduce_all({1, 2}, 0);
  remove(*trainers_[0], 1, 2);
  EXPECT_NE(plans().find("t0"), std::string::npos);
  remove(*trainers_[1], 1, 2);
  EXPECT_EQ(plans().find("t0"), std::string::npos);
  for (auto& trainer : trainers_) EXPECT_EQ(add(*trainer, {{"t2", 10}}, true), 3u);
  reduce(3, 0);
}

// One rank is faster than the other, and has used none of them.
TEST_F(JobManagerUnregistrationTest, ARankMayRegisterWhatAnotherOneHasUnregistered) {
  open(2);
  add(*trainers_[0], {{"t", 10}}, true);
  remove(*trainers_[0], 1, 1);
  add(*trainers_[1], {{"t", 10}}, true);
  remove(*trainers_[1], 1, 1);
  EXPECT_EQ(plans().find("\"t\""), std::string::npos);
  reduce(0, 0);
}

TEST_F(JobManagerUnregistrationTest, WhatOwnersKeepGoesWithTheSet) {
  open(1);
  TestTrainer& trainer = *trainers_[0];
  const uint64_t before = used(UserResource::ResultBytes);
  const TestTrainer::Described weights{"v", 0, 1000, false, true, 0, nullptr, 2};
  trainer.register_described(std::vector{weights});
  wait_for([&] { return trainer.registered.size() == 2; });
  EXPECT_GE(used(UserResource::ResultBytes), before + 2 * 1000 * sizeof(float));
  remove(trainer, 1, 1);
  wait_for([&] { return used(UserResource::ResultBytes) == before; });
}

TEST_F(JobManagerUnregistrationTest, WhatACodecKeepsGoesWithTheSet) {
  TestTrainer& trainer = open_with_b();
  const uint64_t before = used(UserResource::ResultBytes);
  const TestTrainer::Described coded{"v", 0, 1000, false, true, 0, "1bit"};
  trainer.register_described(std::vector{coded});
  wait_for([&] { return trainer.registered.size() == 1; });
  EXPECT_GE(used(UserResource::ResultBytes), before + 1000 * sizeof(float));
  remove(trainer, 0, 1);
  wait_for([&] { return used(UserResource::ResultBytes) == before; });
}

TEST_F(JobManagerUnregistrationTest, TheCoordinatorIsTold) {
  TestTrainer& trainer = open_with_b();
  add(trainer, {{"t", 10}}, true);
  const auto registered = control_plane_.sent_to<proto::SetRegistered>(b_.id);
  ASSERT_EQ(registered.size(), 1u);
  EXPECT_TRUE(control_plane_.sent_to<proto::SetUnregistered>(b_.id).empty());
  remove(trainer, 0, 1);
  const auto unregistered = control_plane_.sent_to<proto::SetUnregistered>(b_.id);
  ASSERT_EQ(unregistered.size(), 1u);
  EXPECT_EQ(unregistered[0]->job_key(), kKey);
  EXPECT_EQ(unregistered[0]->set(), registered[0]->set());
}

// As it may come about an early operation that is over here. Kept for later, it would stay.
TEST_F(JobManagerUnregistrationTest, WhatAnotherNodeSaysOfItLaterIsIgnored) {
  TestTrainer& trainer = open_with_b();
  add(trainer, {{"t", 10}});
  remove(trainer, 0, 1);
  const uint64_t before = used(UserResource::BufferBytes);
  Signature signature;
  signature.count = 10;
  hear(b_, make_operation_ready({kKey, JobHash(kKey).of_name("t"), 3}, signature));
  EXPECT_EQ(used(UserResource::BufferBytes), before);
  hear(b_, make_operation_ready({kKey, JobHash(kKey).of_name("yet to come"), 3}, signature));
  EXPECT_GT(used(UserResource::BufferBytes), before);
}

TEST_F(JobManagerUnregistrationTest, ATrainerMayGoInTheMiddle) {
  open(2);
  Tensors tensors;
  for (size_t i = 0; i < 10 * Registration::kPieceTensors; ++i)
    tensors.emplace_back("large" + std::to_string(i), 10);
  for (auto& trainer : trainers_) add(*trainer, tensors, true);
  trainers_[0]->unregister_tensors(1, static_cast<uint32_t>(tensors.size()));
  trainers_[1]->unregister_tensors(1, static_cast<uint32_t>(tensors.size()));
  settle();
  trainers_[0]->hang_up();
  wait_for([&] { return !trainers_[1]->failure.is_ok(); });
  EXPECT_NE(trainers_[1]->failure.message().find("lost rank 0"), std::string::npos);
  trainers_[1]->leave();
  wait_for([&] { return trainers_[1]->has_left; });
}

// Until the coordinator says so the job goes on, and its ring is not looked at any more.
TEST_F(JobManagerUnregistrationTest, AfterAWrongSubmissionItWaitsForTheVerdict) {
  TestTrainer& trainer = open_with_b();
  add(trainer, {{"t", 10}});
  trainer.submit(1, 77, 0);
  wait_for([&] { return !sent_to_b<proto::FailJob>().empty(); });
  trainer.wakes_daemon = false;
  trainer.submit(2, 0, 0);
  trainer.unregister_tensors(0, 1);
  settle();
  hear(b_, make_job_failed(kKey, "train", Status(StatusCode::JobFailed, "rank 0 was wrong")));
  wait_for([&] { return !trainer.failure.is_ok(); });
}

TEST_F(JobManagerUnregistrationTest, AfterAWrongSubmissionARankMayLeave) {
  TestTrainer& trainer = open_with_b();
  trainer.submit(1, 77, 0);
  wait_for([&] { return !sent_to_b<proto::FailJob>().empty(); });
  trainer.leave();
  settle();
  hear(b_, make_job_failed(kKey, "train", Status(StatusCode::JobFailed, "rank 0 was wrong")));
  wait_for([&] { return !trainer.failure.is_ok(); });
}

TEST_F(JobManagerUnregistrationTest, ItBelongsIntoAJob) {
  TestTrainer& trainer = add_trainer();
  trainer.unregister_tensors(0, 1);
  wait_for([&] { return !trainer.failure.is_ok(); });
  EXPECT_EQ(trainer.failure.message(), "UnregisterTensors came where it does not belong");
}

}  // namespace
}  // namespace braid
