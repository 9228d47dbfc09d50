// SPDX-License-Identifier: Apache-2.0
// Trainers that register memory after their job was opened.
#include <algorithm>

#include "base/errors_testing.h"
#include "job/manager_world.h"
#include "proto/ring.h"

namespace braid {
namespace {

using testing::names;
using testing::TestTrainer;

class JobManagerArenasTest : public testing::JobManagerTest {
 protected:
  static constexpr uint64_t kArenaBytes = TestTrainer::kArenaBytes;
  static constexpr uint64_t kSmallBytes = 4096;

  // What a registration of memory is refused with.
  std::string refusal_of(uint64_t bytes, uint64_t said_bytes) {
    TestTrainer& trainer = *trainers_[0];
    const size_t before = trainer.arenas.size();
    trainer.refusal.clear();
    trainer.register_memory(bytes, said_bytes);
    wait_for([&] { return !trainer.refusal.empty() || trainer.arenas.size() > before; });
    return trainer.refusal;
  }
  void expect_that_it_works(uint32_t arena, uint64_t step) {
    TestTrainer& trainer = *trainers_[0];
    const size_t before = trainer.done.size();
    std::fill_n(trainer.floats(64, arena), 4, 3.0f + static_cast<float>(step));
    trainer.submit(step + 1, 0, step, 64, [&](auto& entry) { entry.arena = arena; });
    wait_for([&] { return trainer.done.size() > before; });
    EXPECT_EQ(trainer.result(trainer.done.back())[3], 3.0f + static_cast<float>(step));
  }
  uint64_t charged() const { return quotas_->used(::geteuid(), UserResource::ArenaBytes); }
};

TEST_F(JobManagerArenasTest, InputsOfAllRanksAreAddedWhereverTheyLie) {
  open_job(2);
  trainers_[1]->register_memory();
  trainers_[1]->register_memory(kSmallBytes, kSmallBytes);
  wait_for([&] { return trainers_[1]->arenas.size() == 2; });
  EXPECT_EQ(trainers_[1]->arenas, (std::vector<uint32_t>{1, 2}));
  std::fill_n(trainers_[0]->floats(64), 4, 1.0f);
  trainers_[0]->submit(1, 0, 0, 64);
  for (uint32_t arena = 0; arena < 3; ++arena)
    std::fill_n(trainers_[1]->floats(64, arena), 4, 10.0f * static_cast<float>(arena));
  trainers_[1]->submit(1, 0, 0, 64, [](proto::SubmitEntry& entry) { entry.arena = 2; });
  wait_for([&] { return !trainers_[0]->done.empty() && !trainers_[1]->done.empty(); });
  EXPECT_EQ(trainers_[0]->result(trainers_[0]->done[0])[0], 21.0f);
}

TEST_F(JobManagerArenasTest, WhatLiesOutsideItsArenaIsRefusedAlsoWhereAnotherIsLarger) {
  open_job(1);
  trainers_[0]->register_memory(kSmallBytes, kSmallBytes);
  wait_for([&] { return trainers_[0]->arenas.size() == 1; });
  trainers_[0]->submit(1, 0, 0, kSmallBytes - 12, [](auto& entry) { entry.arena = 1; });
  EXPECT_TRUE(names(failure_of(*trainers_[0]).message(),
                    {"rank 0", "'w' step 0", "16 bytes", "4084", "4096 bytes"}));
}

TEST_F(JobManagerArenasTest, SplitsLieInTheArenaOfTheInput) {
  open_job(1);
  trainers_[0]->register_memory(kSmallBytes, kSmallBytes);
  wait_for([&] { return trainers_[0]->arenas.size() == 1; });
  const auto exchange = [&](uint64_t step, uint64_t splits) {
    trainers_[0]->submit(step + 1, 0, step, 64, [&](proto::SubmitEntry& entry) {
      entry.collective = static_cast<uint8_t>(Collective::AllToAll);
      entry.arena = 1;
      entry.table = splits;
    });
  };
  std::fill_n(trainers_[0]->floats(64, 1), 3, 5.0f);
  std::fill_n(reinterpret_cast<uint64_t*>(trainers_[0]->floats(512, 1)), 2, 3);
  exchange(0, 512);
  wait_for([&] { return !trainers_[0]->done.empty(); });
  EXPECT_EQ(trainers_[0]->done[0].result_bytes, 12u);
  EXPECT_EQ(trainers_[0]->result(trainers_[0]->done[0])[2], 5.0f);
  exchange(1, kSmallBytes);
  EXPECT_TRUE(names(failure_of(*trainers_[0]).message(),
                    {"at 4096 is not inside the arena of 4096 bytes"}));
}

TEST_F(JobManagerArenasTest, OfAnotherSizeThanItSaysIsRefusedAndTheJobGoesOn) {
  open_job(1);
  EXPECT_TRUE(names(refusal_of(kSmallBytes, 2 * kSmallBytes), {"8192 bytes", "4096"}));
  EXPECT_NE(refusal_of(kSmallBytes, 0), "");
  EXPECT_NE(refusal_of(kSmallBytes, UINT64_MAX), "");
  EXPECT_EQ(charged(), kArenaBytes);
  expect_that_it_works(0, 0);
}

TEST_F(JobManagerArenasTest, OfATrainerTogetherAreLimited) {
  open_job(1);
  EXPECT_EQ(refusal_of(2 * kArenaBytes, 2 * kArenaBytes), "");
  EXPECT_EQ(charged(), 3 * kArenaBytes);
  EXPECT_TRUE(names(refusal_of(2 * kArenaBytes, 2 * kArenaBytes),
                    {"2097152 bytes", "3145728", "client.arena_bytes_max", "4194304 together",
                     "braid_job_options.arena_bytes"}));
  EXPECT_EQ(charged(), 3 * kArenaBytes);
  EXPECT_EQ(refusal_of(kArenaBytes, kArenaBytes), "");
  trainers_[0]->leave();
  trainers_[0]->hang_up();
  wait_for([&] { return charged() == 0; });
}

TEST_F(JobManagerArenasTest, NoTrainerHasMoreThanSoMany) {
  open_job(1);
  for (uint32_t i = 1; i < proto::kArenasMax; ++i)
    EXPECT_EQ(refusal_of(kSmallBytes, kSmallBytes), "");
  EXPECT_TRUE(names(refusal_of(kSmallBytes, kSmallBytes), {"16 input"}));
  EXPECT_EQ(trainers_[0]->arenas.size(), proto::kArenasMax - 1);
  expect_that_it_works(proto::kArenasMax - 1, 0);
}

// Its arenas are read until the others are done with them.
TEST_F(JobManagerArenasTest, StayMappedWhenTheirTrainerHasGone) {
  open_job(2);
  trainers_[1]->register_memory();
  wait_for([&] { return trainers_[1]->arenas.size() == 1; });
  trainers_[1]->submit(1, 0, 0, 0, [](proto::SubmitEntry& entry) { entry.arena = 1; });
  trainers_[1]->leave();
  wait_for([&] { return trainers_[1]->has_left; });
  trainers_[1]->hang_up();
  settle();
  std::fill_n(trainers_[0]->floats(), 4, 1.0f);
  std::fill_n(trainers_[1]->floats(0, 1), 4, 10.0f);
  trainers_[0]->submit(1, 0, 0);
  wait_for([&] { return !trainers_[0]->done.empty(); });
  EXPECT_EQ(trainers_[0]->result(trainers_[0]->done[0])[0], 11.0f);
}

}  // namespace
}  // namespace braid
