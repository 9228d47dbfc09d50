// SPDX-License-Identifier: Apache-2.0
#include "open_job_fixture.h"

namespace braid {
namespace {

// Calls on a daemon that is stopped. A caller with little patience gets back, and may call again.
class PatienceTest : public OpenJobTest {
 protected:
  static constexpr uint32_t kPatienceMs = 20;
  static constexpr size_t kRingEntries = 8192;
  static constexpr size_t kLargeBytes = 24 << 20;  // has no room in the first arena

  void SetUp() override {
    OpenJobTest::SetUp();
    ASSERT_EQ(braid_set_patience(job_, kPatienceMs), BRAID_OK);
  }

  int submit_next(braid_ticket& ticket) {
    const auto operation = all_reduce(tensor_, step_, values_.data());
    const int code = braid_submit(job_, &operation, &ticket);
    if (code == BRAID_OK) ++step_;
    return code;
  }

  // Half a ring of tickets to give back.
  void finish_some() {
    tensor_ = register_tensor(job_, "a", values_.size());
    while (done_.size() < kRingEntries / 2) {
      ASSERT_EQ(submit_next(done_.emplace_back()), BRAID_OK) << braid_error_message();
      ASSERT_EQ(braid_wait(job_, done_.back(), 0), BRAID_OK) << braid_error_message();
    }
  }
  // Fills the stopped daemon's ring with those, and as many submissions.
  void fill_ring(braid_ticket& last) {
    for (const braid_ticket ticket : done_) ASSERT_EQ(braid_release(job_, ticket), BRAID_OK);
    for (size_t i = 0; i < kRingEntries / 2; ++i)
      ASSERT_EQ(submit_next(last), BRAID_OK) << braid_error_message();
  }

  template <typename Call>
  int repeated(Call&& call) {
    int code = call();
    while (code == BRAID_ERROR_DEADLINE_EXCEEDED && braid_check(job_) == BRAID_OK) code = call();
    return code;
  }

  uint32_t tensor_ = 0;
  uint64_t step_ = 0;
  std::vector<braid_ticket> done_;
};

TEST_F(PatienceTest, ASubmissionIntoAFullRingMayBeRepeated) {
  finish_some();
  daemon_->stop();
  braid_ticket ticket = 0;
  fill_ring(ticket);
  EXPECT_BRAID_ERROR(submit_next(ticket), BRAID_ERROR_DEADLINE_EXCEEDED, "submit ring");
  EXPECT_EQ(braid_check(job_), BRAID_OK) << braid_error_message();
  daemon_->go_on();
  ASSERT_EQ(repeated([&] { return submit_next(ticket); }), BRAID_OK) << braid_error_message();
  ASSERT_EQ(braid_wait(job_, ticket, 0), BRAID_OK) << braid_error_message();
  EXPECT_EQ(copied(ticket, values_.size()), values_);
}

TEST_F(PatienceTest, ASubmissionWhoseCopyNeedsAnotherArenaMayBeRepeated) {
  const uint32_t tensor = register_tensor(job_, "large", kLargeBytes / sizeof(float));
  const auto values = iota(kLargeBytes / sizeof(float));
  const auto operation = all_reduce(tensor, 7, values.data());
  daemon_->stop();
  braid_ticket ticket = 0;
  EXPECT_BRAID_ERROR(braid_submit(job_, &operation, &ticket), BRAID_ERROR_DEADLINE_EXCEEDED,
                     "input arena");
  daemon_->go_on();
  ASSERT_EQ(repeated([&] { return braid_submit(job_, &operation, &ticket); }), BRAID_OK)
      << braid_error_message();
  ASSERT_EQ(braid_wait(job_, ticket, 0), BRAID_OK) << braid_error_message();
  EXPECT_EQ(copied(ticket, values.size()), values);
  EXPECT_EQ(daemon_->arenas().size(), 2u);
}

TEST_F(PatienceTest, AnArenaThatNobodyWaitsForIsAddedByTheNextRegistration) {
  daemon_->stop();
  void* memory = nullptr;
  EXPECT_EQ(braid_allocate(job_, kLargeBytes, &memory), BRAID_ERROR_DEADLINE_EXCEEDED);
  daemon_->go_on();
  EXPECT_EQ(register_tensor(job_, "a", 4), 0u);
  EXPECT_EQ(braid_allocate(job_, kLargeBytes, &memory), BRAID_OK) << braid_error_message();
  EXPECT_EQ(daemon_->arenas().size(), 2u);
}

TEST_F(PatienceTest, ARefusalIsForWhoAsksAgain) {
  open({.refused_memory = "this user has enough"});
  ASSERT_EQ(braid_set_patience(job_, kPatienceMs), BRAID_OK);
  daemon_->stop();
  void* memory = nullptr;
  EXPECT_EQ(braid_allocate(job_, kLargeBytes, &memory), BRAID_ERROR_DEADLINE_EXCEEDED);
  daemon_->go_on();
  EXPECT_EQ(register_tensor(job_, "a", 4), 0u);
  EXPECT_BRAID_ERROR(repeated([&] { return braid_allocate(job_, kLargeBytes, &memory); }),
                     BRAID_ERROR_MISMATCH, "this user has enough");
}

TEST_F(PatienceTest, AReleaseNeverWaits) {
  finish_some();
  const uint32_t tensor = register_tensor(job_, "done", 4);
  const braid_ticket finished = done(all_reduce(tensor, 0, values_.data()));
  daemon_->stop();
  braid_ticket last = 0;
  fill_ring(last);
  EXPECT_EQ(braid_release(job_, finished), BRAID_OK) << braid_error_message();
  daemon_->go_on();
  ASSERT_EQ(braid_wait(job_, last, 0), BRAID_OK) << braid_error_message();
  EXPECT_EQ(daemon_->live_results(), kRingEntries / 2);
}

}  // namespace
}  // namespace braid
