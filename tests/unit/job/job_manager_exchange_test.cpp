// SPDX-License-Identifier: Apache-2.0
// Links that no all-reduce needs are opened for the first operation that does.
#include "base/errors_testing.h"
#include "job/manager_world.h"
#include "job/submitted_splits.h"

namespace braid {
namespace {

using testing::is_error;

// Rank 0 of three is here and sends to b, which coordinates; d has rank 2. The job runs.
class JobManagerExchangeTest : public testing::JobManagerTest {
 protected:
  void start_job(const Algorithms& algorithms = {}) {
    trainer_ = &open_with_b(3, algorithms);
    register_w(*trainer_);
    transport_.opened.clear();
  }
  // 4 floats from everybody to everybody.
  void submit_all_to_all(uint64_t step) {
    std::fill_n(reinterpret_cast<uint64_t*>(trainer_->floats(512)), 6, 4);
    trainer_->submit(step + 1, 0, step, 0, [](proto::SubmitEntry& entry) {
      entry.collective = static_cast<uint8_t>(Collective::AllToAll);
      entry.table = 512;
    });
  }
  template <typename Table>
  size_t sent(const Peer& to) const {
    return control_plane_.sent_to<Table>(to.id).size();
  }

  testing::TestTrainer* trainer_ = nullptr;
};

TEST_F(JobManagerExchangeTest, TheFirstOneOpensTheLinksThatAreMissing) {
  start_job();
  transport_.holds_answers = true;
  submit_all_to_all(0);
  wait_for([&] { return transport_.opened.size() == 2; });
  EXPECT_EQ(transport_.opened, (std::vector<NodeId>{b_.id, d_.id}));
  settle();
  EXPECT_EQ(sent<proto::OperationReady>(b_), 0u) << "nobody may send for what cannot be answered";
  transport_.answer();
  wait_for([&] { return sent<proto::OperationReady>(d_) == 1; });
  EXPECT_EQ(sent<proto::OperationReady>(b_), 1u);
  submit_all_to_all(1);
  wait_for([&] { return sent<proto::OperationReady>(d_) == 2; });
  EXPECT_EQ(transport_.opened.size(), 2u);
}

TEST_F(JobManagerExchangeTest, WhereLinksLeadToAllNoneIsOpened) {
  start_job({4096});
  submit_all_to_all(0);
  wait_for([&] { return sent<proto::OperationReady>(d_) == 1; });
  EXPECT_TRUE(transport_.opened.empty());
}

// A world of thousands has splits of many kilobytes in each operation.
TEST_F(JobManagerExchangeTest, SplitsAreTheirUsersMemoryWhileTheOperationIsPending) {
  const auto used = [&] { return quotas_->used(::geteuid(), UserResource::BufferBytes); };
  start_job({4096});
  const uint64_t before = used();
  for (uint64_t step = 0; step < 4; ++step) submit_all_to_all(step);
  wait_for([&] { return sent<proto::OperationReady>(d_) == 4; });
  EXPECT_EQ(used() - before, 4 * 3 * kSplitsCostBytes);
  end_job_of_b();
  trainer_->hang_up();
  wait_for([&] { return used() == 0; });
}

TEST_F(JobManagerExchangeTest, AnOperationWhoseSplitsHaveNoRoomFailsTheJob) {
  const auto used = [&] { return quotas_->used(::geteuid(), UserResource::BufferBytes); };
  start_job({4096});
  UserCharge others(quotas_, ::geteuid(), UserResource::ResultBytes);
  // Its memory for results takes some, too.
  ASSERT_TRUE(others.set(kMemoryOfAll - used() - quotas_->result_bytes()).is_ok());
  submit_all_to_all(0);
  EXPECT_TRUE(is_error(failure_told_to_b(), StatusCode::ResourceExhausted,
                       {"'w' step 0", "all jobs have"}));
}

TEST_F(JobManagerExchangeTest, ALinkThatCannotBeOpenedFailsTheJob) {
  start_job();
  transport_.open_result = Status(StatusCode::DeadlineExceeded, "cannot open a link to node 'd'");
  submit_all_to_all(0);
  EXPECT_TRUE(is_error(failure_told_to_b(), StatusCode::DeadlineExceeded, {"node 'd'"}));
}

TEST_F(JobManagerExchangeTest, ANodeThatCannotBeReachedFailsTheJob) {
  start_job();
  control_plane_.remove_peer(d_.id);
  submit_all_to_all(0);
  EXPECT_TRUE(
      is_error(failure_told_to_b(), StatusCode::Unavailable, {"node 'here'", "'10.0.0.40'"}));
}

TEST_F(JobManagerExchangeTest, OtherOperationsOfTheJobWaitForTheirTurn) {
  start_job();
  transport_.holds_answers = true;
  submit_all_to_all(0);
  trainer_->submit(7, 0, 1);
  wait_for([&] { return transport_.opened.size() == 2; });
  settle();
  EXPECT_EQ(sent<proto::OperationReady>(d_), 0u) << "of the all-reduce, to the predecessor";
  transport_.answer();
  wait_for([&] { return sent<proto::OperationReady>(d_) == 2; });
}

}  // namespace
}  // namespace braid
