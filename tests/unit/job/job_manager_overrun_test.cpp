// SPDX-License-Identifier: Apache-2.0
// A node that sends more small all-reduces than may wait for this node's own.
#include "engine/early_limits.h"
#include "job/manager_world.h"
#include "proto/chunk.h"

namespace braid {
namespace {

// Rank 0 of three is here; b, which coordinates, and d are the others.
class JobManagerOverrunTest : public testing::JobManagerTest {
 protected:
  JobManagerOverrunTest() {
    control_plane_.add_peer(d_);
    add_trainer().open("train", 0, 3, b_.address);
    wait_for([&] { return !sent_to_b<proto::JoinJob>().empty(); });
    const std::vector<MemberNode> nodes = {{self_, {0}}, {b_, {1}}, {d_, {2}}};
    hear(b_, make_job_start("train", 3, 4, kKey, nodes, {4096}));
    wait_for([&] { return !sent_to_b<proto::JobReady>().empty(); });
    hear(b_, make_job_go(kKey));
    wait_for([&] { return trainers_[0]->is_open; });
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
  template <typename Table>
  std::vector<const Table*> sent_to_b() const {
    return control_plane_.sent_to<Table>(b_.id);
  }

  static constexpr uint64_t kKey = 99;
  static constexpr uint64_t kPartsMax = kEarlyBytesMax / proto::kChunkBytesMax;
  const Peer d_{40, "d", "10.0.0.40", 7410};
  const std::vector<uint8_t> part_ = std::vector<uint8_t>(proto::kChunkBytesMax);
};

TEST_F(JobManagerOverrunTest, ThePeerIsNamedAndTheJobFails) {
  for (uint64_t step = 0; step < kPartsMax; ++step) hear_early_part(step);
  settle();
  EXPECT_TRUE(sent_to_b<proto::FailJob>().empty());
  for (uint64_t step = kPartsMax; step < kPartsMax + 3; ++step) hear_early_part(step);
  wait_for([&] { return !sent_to_b<proto::FailJob>().empty(); });
  settle();
  ASSERT_EQ(sent_to_b<proto::FailJob>().size(), 1u);
  const proto::FailJob& told = *sent_to_b<proto::FailJob>()[0];
  EXPECT_EQ(told.job_key(), kKey);
  EXPECT_EQ(told.code(), static_cast<uint8_t>(StatusCode::Protocol));
  EXPECT_EQ(told.reason()->str(),
            "job 'train': node 'd' has sent more than 67108864 bytes of small all-reduces that "
            "nobody on node 'here' has submitted yet, which no daemon of this version does: use "
            "the same version of braidd on all nodes");
  hear(b_, make_job_failed(kKey, "train", Status(StatusCode::Protocol, told.reason()->str())));
  wait_for([&] { return !trainers_[0]->failure.is_ok(); });
  EXPECT_EQ(trainers_[0]->failure.code(), StatusCode::Protocol);
  EXPECT_EQ(trainers_[0]->failure.message(), told.reason()->str());
  wait_for([&] { return manager_->jobs().size() == 0; });
}

TEST_F(JobManagerOverrunTest, WhatANodeKeepsOfOthersPartsIsItsUsersMemory) {
  const uint64_t before = kept();
  hear_early_part(1);
  hear_early_part(2);
  EXPECT_GE(kept() - before, 2 * part_.size());
  EXPECT_LT(kept() - before, 2 * part_.size() + 3 * EnginePool::kKeptStepBytes);
  hear(b_, make_job_failed(kKey, "train", Status(StatusCode::JobFailed, "rank 2 has died")));
  wait_for([&] { return manager_->jobs().size() == 0; });
  trainers_[0]->hang_up();
  wait_for([&] { return kept() == 0; });
}

TEST_F(JobManagerOverrunTest, PartsBeyondTheUsersMemoryEndTheJobAndNameTheKey) {
  // Another job keeps what it has.
  UserCharge others(quotas_, ::geteuid(), UserResource::ResultBytes);
  ASSERT_TRUE(others.set(kMemoryOfAll - kept() - 2 * part_.size() - (1 << 20)).is_ok());
  for (uint64_t step = 0; step < 3; ++step) hear_early_part(step);
  wait_for([&] { return !sent_to_b<proto::FailJob>().empty(); });
  const proto::FailJob& told = *sent_to_b<proto::FailJob>()[0];
  EXPECT_EQ(told.code(), static_cast<uint8_t>(StatusCode::ResourceExhausted));
  EXPECT_TRUE(told.reason()->str().starts_with(
      "job 'train': node 'here' cannot keep the small all-reduces that came from node 'd' and that "
      "nobody here has submitted yet: "))
      << told.reason()->str();
  EXPECT_NE(told.reason()->str().find("collective.result_memory_max"), std::string::npos)
      << told.reason()->str();
}

// The coordinator cannot be told: the node's own trainers are.
TEST_F(JobManagerOverrunTest, WithoutACoordinatorTheTrainersAreTold) {
  control_plane_.remove_peer(b_.id);
  for (uint64_t step = 0; step <= kPartsMax; ++step) hear_early_part(step);
  wait_for([&] { return !trainers_[0]->failure.is_ok(); });
  EXPECT_EQ(trainers_[0]->failure.code(), StatusCode::Protocol);
  EXPECT_TRUE(trainers_[0]->failure.message().starts_with("job 'train': node 'd' has sent more"))
      << trainers_[0]->failure.message();
  wait_for([&] { return manager_->jobs().size() == 0; });
}

TEST_F(JobManagerOverrunTest, OfAJobThatHasEndedNothingComes) {
  for (uint64_t step = 0; step <= kPartsMax; ++step) hear_early_part(step);
  hear(b_, make_job_failed(kKey, "train", Status(StatusCode::JobFailed, "rank 2 has died")));
  wait_for([&] { return manager_->jobs().size() == 0; });
  settle();
  EXPECT_TRUE(sent_to_b<proto::FailJob>().empty());
  EXPECT_EQ(trainers_[0]->failure.message(), "rank 2 has died");
}

}  // namespace
}  // namespace braid
