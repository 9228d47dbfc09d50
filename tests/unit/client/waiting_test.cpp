// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include <sys/wait.h>

#include "open_job_fixture.h"

namespace braid {
namespace {

class WaitingTest : public OpenJobTest {};

TEST_F(WaitingTest, TestNeverBlocks) {
  const braid_ticket ticket = held();
  int done = -1;
  EXPECT_EQ(braid_test(job_, ticket, &done), BRAID_OK);
  EXPECT_EQ(done, 0);
  const void* data = nullptr;
  size_t bytes = 0;
  EXPECT_INVALID(braid_result(job_, ticket, &data, &bytes), "in flight");
  EXPECT_INVALID(braid_release(job_, ticket), "in flight");
  while (done != 1) {
    daemon_->complete_held();
    ASSERT_EQ(braid_test(job_, ticket, &done), BRAID_OK);
  }
  EXPECT_EQ(braid_release(job_, ticket), BRAID_OK);
}

// However a thread waits, it gets the result, its own timeout and the daemon's bad news.
struct WaitingMode {
  uint8_t polling;
  bool lets_poll;
};
class WaitingModesTest : public OpenJobTest, public ::testing::WithParamInterface<WaitingMode> {
 protected:
  void SetUp() override {
    open({.polling = GetParam().polling, .lets_poll = GetParam().lets_poll});
  }
};

TEST_P(WaitingModesTest, ResultsTimeoutsAndFailuresComeInEach) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  for (uint64_t step = 1; step <= 50; ++step) {
    const braid_ticket ticket = done(all_reduce(tensor, step, values_.data()));
    EXPECT_EQ(copied(ticket, 4), values_);
    EXPECT_EQ(braid_release(job_, ticket), BRAID_OK);
  }
  daemon_->hold_operations();
  const braid_ticket late = submit(job_, all_reduce(tensor, 51, values_.data()));
  EXPECT_BRAID_ERROR(braid_wait(job_, late, 20), BRAID_ERROR_DEADLINE_EXCEEDED, "still in flight");
  EXPECT_TRUE(message_has("'a', step 51")) << braid_error_message();
  std::thread other([this] { daemon_->fail_jobs("rank 3 has died"); });
  EXPECT_BRAID_ERROR(braid_wait(job_, late, 0), BRAID_ERROR_JOB_FAILED, "rank 3 has died");
  other.join();
}

INSTANTIATE_TEST_SUITE_P(Modes, WaitingModesTest,
                         ::testing::Values(WaitingMode{0, false}, WaitingMode{1, false},
                                           WaitingMode{1, true}, WaitingMode{2, false}));

TEST_F(WaitingTest, WaitEndsAtItsTimeout) {
  const uint32_t tensor = register_tensor(job_, "layer.weight", 4);
  daemon_->hold_operations();
  const braid_ticket ticket = submit(job_, all_reduce(tensor, 7, values_.data()));
  EXPECT_BRAID_ERROR(braid_wait(job_, ticket, 20), BRAID_ERROR_DEADLINE_EXCEEDED,
                     "still in flight");
  EXPECT_TRUE(message_has("'layer.weight', step 7")) << braid_error_message();
  daemon_->complete_held();
  EXPECT_EQ(braid_wait(job_, ticket, 0), BRAID_OK) << braid_error_message();
}

TEST_F(WaitingTest, WhoWaitsElsewhereHearsThatTheJobHasFailed) {
  EXPECT_EQ(braid_check(job_), BRAID_OK) << braid_error_message();
  daemon_->fail_jobs("rank 3 on node 'n2' died");
  while (braid_check(job_) == BRAID_OK) std::this_thread::yield();
  EXPECT_BRAID_ERROR(braid_check(job_), BRAID_ERROR_JOB_FAILED, "rank 3 on node 'n2' died");
}

TEST_F(WaitingTest, AResultIsTakenByOneCall) {
  std::vector<float> out(4);
  const braid_ticket ticket = held();
  EXPECT_BRAID_ERROR(braid_take(job_, ticket, 20, out.data(), 16), BRAID_ERROR_DEADLINE_EXCEEDED,
                     "still in flight");
  daemon_->complete_held();
  EXPECT_BRAID_ERROR(braid_take(job_, ticket, 0, out.data(), 12), BRAID_ERROR_INVALID_ARGUMENT,
                     "out has 12 bytes; the result of the all-reduce of 'a', step 7 has 16");
  EXPECT_EQ(braid_take(job_, ticket, 0, out.data(), 16), BRAID_OK) << braid_error_message();
  EXPECT_EQ(out, values_);
  EXPECT_BRAID_ERROR(braid_release(job_, ticket), BRAID_ERROR_NOT_FOUND, "it was released");
}

TEST_F(WaitingTest, ADaemonThatHangsIsNoticed) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  daemon_->hold_operations();
  auto operation = all_reduce(tensor, 7, values_.data());
  operation.timeout_ms = 1;
  const braid_ticket ticket = submit(job_, operation);
  EXPECT_BRAID_ERROR(braid_wait(job_, ticket, 0), BRAID_ERROR_DEADLINE_EXCEEDED, "does not answer");
  int done = 0;
  EXPECT_BRAID_ERROR(braid_test(job_, ticket, &done), BRAID_ERROR_DEADLINE_EXCEEDED,
                     "does not answer");
  EXPECT_EQ(done, 1);
}

TEST_F(WaitingTest, FailureEndsEverythingButWhatWasDone) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  const braid_ticket good = done(all_reduce(tensor, 1, values_.data()));
  daemon_->hold_operations();
  const braid_ticket bad = submit(job_, all_reduce(tensor, 2, values_.data()));
  daemon_->fail_jobs("rank 3 on node 'n2' died");
  EXPECT_BRAID_ERROR(braid_wait(job_, bad, 0), BRAID_ERROR_JOB_FAILED, "rank 3 on node 'n2' died");
  EXPECT_EQ(braid_wait(job_, good, 0), BRAID_OK);
  EXPECT_EQ(copied(good, 4), values_);
  int done = 0;
  EXPECT_BRAID_ERROR(braid_test(job_, bad, &done), BRAID_ERROR_JOB_FAILED, "rank 3");
  EXPECT_EQ(done, 1);
  const auto operation = all_reduce(tensor, 3, values_.data());
  braid_ticket ticket = 0;
  EXPECT_BRAID_ERROR(braid_submit(job_, &operation, &ticket), BRAID_ERROR_JOB_FAILED, "rank 3");
  const auto options = tensor_options("b", 1);
  uint32_t handle = 0;
  EXPECT_BRAID_ERROR(braid_register(job_, &options, 1, &handle), BRAID_ERROR_JOB_FAILED, "rank 3");
  EXPECT_EQ(braid_release(job_, bad), BRAID_OK);
  EXPECT_EQ(braid_release(job_, good), BRAID_OK);
}

TEST_F(WaitingTest, DaemonDiesWhileThreadsWait) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  daemon_->hold_operations();
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i) {
    const braid_ticket ticket = submit(job_, all_reduce(tensor, i, values_.data()));
    threads.emplace_back([&, ticket] {
      if (braid_wait(job_, ticket, 0) == BRAID_ERROR_UNAVAILABLE && message_has("went away"))
        ++right;
    });
  }
  daemon_->die();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 4);
}

TEST_F(WaitingTest, WhatEndedBeforeTheDaemonDiedHasEndedWell) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  daemon_->hold_operations();
  const braid_ticket ticket = submit(job_, all_reduce(tensor, 0, values_.data()));
  daemon_->complete_held();
  daemon_->die();
  const auto options = tensor_options("b", 1);
  uint32_t handle = 0;  // it is the socket that this call looks at
  EXPECT_EQ(braid_register(job_, &options, 1, &handle), BRAID_ERROR_UNAVAILABLE);
  EXPECT_EQ(braid_wait(job_, ticket, 0), BRAID_OK) << braid_error_message();
  EXPECT_EQ(copied(ticket, 4), values_);
}

TEST_F(WaitingTest, ThreadsEachGetTheirOwnResult) {
  constexpr int kThreads = 6;
  constexpr uint64_t kSteps = 300;
  std::vector<uint32_t> tensors;
  for (int t = 0; t < kThreads; ++t)
    tensors.push_back(register_tensor(job_, std::to_string(t).c_str(), 64));
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t step = 0; step < kSteps; ++step) {
        const std::vector<float> values(64,
                                        static_cast<float>(t * 1000) + static_cast<float>(step));
        const auto operation = all_reduce(tensors[static_cast<size_t>(t)], step, values.data());
        braid_ticket ticket = 0;
        std::vector<float> out(64);
        if (braid_submit(job_, &operation, &ticket) == BRAID_OK &&
            braid_wait(job_, ticket, 0) == BRAID_OK &&
            braid_copy_result(job_, ticket, out.data(), 256) == BRAID_OK &&
            braid_release(job_, ticket) == BRAID_OK && out == values) {
          ++right;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, kThreads * static_cast<int>(kSteps)) << braid_error_message();
  EXPECT_EQ(daemon_->live_results(), 0u);
}

TEST_F(WaitingTest, AWaitingThreadDoesNotKeepAnotherFromItsResult) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  daemon_->hold_operations();
  const braid_ticket never = submit(job_, all_reduce(tensor, 0, values_.data()));
  std::thread leader([&] { EXPECT_EQ(braid_wait(job_, never, 0), BRAID_ERROR_JOB_FAILED); });
  const braid_ticket second = submit(job_, all_reduce(tensor, 1, values_.data()));
  EXPECT_EQ(braid_wait(job_, second, 20), BRAID_ERROR_DEADLINE_EXCEEDED);
  const uint32_t late =
      register_tensor(job_, "late", 4);  // a reply on the socket, which the leader reads
  EXPECT_EQ(late, 1u);
  daemon_->fail_jobs("enough");
  leader.join();
}

TEST_F(WaitingTest, AFullRingIsWaitedFor) {
  constexpr size_t kRingEntries = 8192;
  const uint32_t tensor = register_tensor(job_, "a", 4);
  std::vector<braid_ticket> done;
  auto operation = all_reduce(tensor, 0, values_.data());
  for (; done.size() < kRingEntries / 2; ++operation.step) {
    done.push_back(submit(job_, operation));
    ASSERT_EQ(braid_wait(job_, done.back(), 0), BRAID_OK) << braid_error_message();
  }
  daemon_->stop();
  for (const braid_ticket ticket : done) ASSERT_EQ(braid_release(job_, ticket), BRAID_OK);
  operation.timeout_ms = 50;
  braid_ticket ticket = 0;
  size_t accepted = 0;
  int code = BRAID_OK;
  for (; code == BRAID_OK && accepted <= kRingEntries; ++operation.step) {
    code = braid_submit(job_, &operation, &ticket);
    if (code == BRAID_OK) ++accepted;
  }
  EXPECT_EQ(accepted, kRingEntries / 2);
  EXPECT_EQ(code, BRAID_ERROR_DEADLINE_EXCEEDED);
  EXPECT_TRUE(message_has("submit ring")) << braid_error_message();
  daemon_->go_on();
}

TEST_F(WaitingTest, AnImpossibleCompletionEndsTheJob) {
  const braid_ticket ticket = held();
  daemon_->complete({999'999, 0, 0, 0, 0});
  EXPECT_BRAID_ERROR(braid_wait(job_, ticket, 0), BRAID_ERROR_PROTOCOL, "999999");
}

TEST_F(WaitingTest, LeavingEndsTheCallsOfOtherThreadsAndFreesNothing) {
  const braid_ticket never = held();
  std::thread other([&] { EXPECT_EQ(braid_wait(job_, never, 0), BRAID_ERROR_CANCELLED); });
  EXPECT_EQ(braid_leave(job_, "its process has ended"), BRAID_OK);
  other.join();
  EXPECT_EQ(daemon_->seen().reason, "its process has ended");
  EXPECT_EQ(braid_leave(job_, "again"), BRAID_OK);
  EXPECT_EQ(daemon_->seen().reason, "its process has ended");
}

TEST_F(WaitingTest, AForkedChildIsTurnedAway) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  const auto operation = all_reduce(tensor, 0, values_.data());
  const pid_t child = ::fork();
  if (child == 0) {
    braid_ticket ticket = 0;
    const bool right = braid_submit(job_, &operation, &ticket) == BRAID_ERROR_INVALID_ARGUMENT &&
                       message_has("fork") && braid_close(job_) == BRAID_ERROR_INVALID_ARGUMENT &&
                       braid_leave(job_, nullptr) == BRAID_ERROR_INVALID_ARGUMENT;
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  done(operation);
}

}  // namespace
}  // namespace braid
