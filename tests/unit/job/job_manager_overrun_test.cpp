// SPDX-License-Identifier: Apache-2.0
// A node that sends more small all-reduces than may wait for this node's own.
#include "base/errors_testing.h"
#include "engine/early_limits.h"
#include "job/manager_world.h"
#include "proto/chunk.h"

namespace braid {
namespace {

using testing::is_error;

// Rank 0 of three is here; b, which coordinates, and d are the others.
class JobManagerOverrunTest : public testing::JobManagerTest {
 protected:
  JobManagerOverrunTest() {
    open_with_b(3, {4096});
    engines_->stop_threads();  // from now on this thread is the engines'
  }
  // What came from d for a step that nobody here has submitted.
  void hear_early_part(uint64_t step) {
    proto::ChunkHeader header{};
    header.phase = static_cast<uint8_t>(proto::Phase::Direct);
    header.job_key = kKey;
    header.tensor = 1;
    header.step = step;
    header.bytes = static_cast<uint32_t>(part_.size());
    header.signature = 1;
    engines_->io_loops()[0].sink->on_chunk(d_.id, header, part_);
  }
  uint64_t kept() const { return quotas_->used(::geteuid(), UserResource::BufferBytes); }

  static constexpr uint64_t kPartsMax = kEarlyBytesMax / proto::kChunkBytesMax;
  const std::vector<uint8_t> part_ = std::vector<uint8_t>(proto::kChunkBytesMax);
};

TEST_F(JobManagerOverrunTest, ThePeerIsNamedAndTheJobFails) {
  for (uint64_t step = 0; step < kPartsMax; ++step) hear_early_part(step);
  settle();
  EXPECT_TRUE(sent_to_b<proto::FailJob>().empty());
  for (uint64_t step = kPartsMax; step < kPartsMax + 3; ++step) hear_early_part(step);
  settle();
  const Status told = failure_told_to_b();
  EXPECT_TRUE(is_error(told, StatusCode::Protocol, {"'d'", "67108864 bytes", "'here'"}));
  ASSERT_EQ(sent_to_b<proto::FailJob>().size(), 1u);
  EXPECT_EQ(sent_to_b<proto::FailJob>()[0]->job_key(), kKey);
  hear(b_, make_job_failed(kKey, "train", told));
  EXPECT_TRUE(is_error(failure_of(*trainers_[0]), StatusCode::Protocol, {"'d'", "'here'"}));
  wait_for([&] { return manager_->jobs().size() == 0; });
}

TEST_F(JobManagerOverrunTest, WhatANodeKeepsOfOthersPartsIsItsUsersMemory) {
  const uint64_t before = kept();
  hear_early_part(1);
  hear_early_part(2);
  EXPECT_GE(kept() - before, 2 * part_.size());
  EXPECT_LT(kept() - before, 2 * part_.size() + 3 * EnginePool::kKeptStepBytes);
  end_job_of_b();
  trainers_[0]->hang_up();
  wait_for([&] { return kept() == 0; });
}

TEST_F(JobManagerOverrunTest, PartsBeyondTheUsersMemoryEndTheJobAndNameTheKey) {
  // Another job keeps what it has.
  UserCharge others(quotas_, ::geteuid(), UserResource::ResultBytes);
  ASSERT_TRUE(others.set(kMemoryOfAll - kept() - 2 * part_.size() - (1 << 20)).is_ok());
  for (uint64_t step = 0; step < 3; ++step) hear_early_part(step);
  EXPECT_TRUE(is_error(failure_told_to_b(), StatusCode::ResourceExhausted,
                       {"'here'", "'d'", "collective.result_memory_max"}));
}

// The coordinator cannot be told: the node's own trainers are.
TEST_F(JobManagerOverrunTest, WithoutACoordinatorTheTrainersAreTold) {
  control_plane_.remove_peer(b_.id);
  for (uint64_t step = 0; step <= kPartsMax; ++step) hear_early_part(step);
  EXPECT_TRUE(is_error(failure_of(*trainers_[0]), StatusCode::Protocol, {"'d'"}));
  wait_for([&] { return manager_->jobs().size() == 0; });
}

TEST_F(JobManagerOverrunTest, OfAJobThatHasEndedNothingComes) {
  for (uint64_t step = 0; step <= kPartsMax; ++step) hear_early_part(step);
  end_job_of_b();
  settle();
  EXPECT_TRUE(sent_to_b<proto::FailJob>().empty());
  EXPECT_EQ(trainers_[0]->failure.message(), "a test");
}

}  // namespace
}  // namespace braid
