// SPDX-License-Identifier: Apache-2.0
#include "loop/loop_watch.h"

#include <time.h>

#include "loop_testing.h"

namespace braid {
namespace {

constexpr uint64_t kMs = 1'000'000;

class LoopWatchTest : public testing::LoopTest {
 protected:
  // In one call on the loop.
  void run_call(const std::function<void()>& call) {
    Timer timer(*loop_);
    timer.start_once(0, [&] {
      call();
      // Not yet: the round is measured at its end.
      timer.start_once(0, [&] { loop_->stop(); });
    });
    run();
  }
};

void compute_for(uint64_t ns) {
  const auto used = [] {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
  };
  const uint64_t begin = used();
  while (used() - begin < ns) {
  }
}

void sleep_for(uint64_t ns) {
  const timespec time{static_cast<time_t>(ns / 1'000'000'000),
                      static_cast<long>(ns % 1'000'000'000)};
  ::nanosleep(&time, nullptr);
}

TEST_F(LoopWatchTest, ACallThatComputesForLongIsCounted) {
  run_call([] { compute_for(20 * kMs); });
  const LoopCounters counters = loop_->counters();
  EXPECT_GE(counters.long_rounds, 1u);
  EXPECT_GE(counters.longest_round_ns, 18 * kMs);
}

TEST_F(LoopWatchTest, ACallThatBlocksIsCounted) {
  // Long, for a busy machine may keep the thread waiting, too, and that does not count.
  run_call([] { sleep_for(500 * kMs); });
  EXPECT_GE(loop_->counters().long_rounds, 1u);
  EXPECT_GT(loop_->counters().longest_round_ns, LoopWatch::kLongRoundNs);
}

TEST_F(LoopWatchTest, ACallThatBlocksAfterALongPollIsCounted) {
  Timer timer(*loop_);
  timer.start_once(20, [&] {
    sleep_for(500 * kMs);
    timer.start_once(0, [&] { loop_->stop(); });
  });
  run();
  EXPECT_GE(loop_->counters().long_rounds, 1u);
}

TEST_F(LoopWatchTest, ATimerThatIsStartedMeanwhileHidesNothing) {
  Timer other(*loop_);
  run_call([&] {
    compute_for(20 * kMs);
    other.start_once(1000, [] {});
  });
  EXPECT_GE(loop_->counters().longest_round_ns, 18 * kMs);
}

TEST_F(LoopWatchTest, SleepingInThePollIsNoCall) {
  Timer timer(*loop_);
  timer.start_once(50, [&] { loop_->stop(); });
  run();
  EXPECT_EQ(loop_->counters().longest_round_ns, 0u);
}

TEST(LoopWatchOwnTimeTest, WhatOthersTookIsNotTheLoops) {
  // Ready to run for all but a little of the round.
  EXPECT_LE(LoopWatch::own_time_ns(100 * kMs, {2 * kMs, 98 * kMs, 1}), 2 * kMs);
  // More waiting than the round was long: some of it came before.
  EXPECT_EQ(LoopWatch::own_time_ns(10 * kMs, {1 * kMs, 40 * kMs, 1}), 0u);
}

TEST(LoopWatchOwnTimeTest, ComputingCountsHoweverLongItWaitedBefore) {
  EXPECT_EQ(LoopWatch::own_time_ns(30 * kMs, {25 * kMs, 500 * kMs, 1}), 24 * kMs);
}

TEST(LoopWatchOwnTimeTest, BlockedIsWhatIsNeitherComputingNorWaiting) {
  EXPECT_EQ(LoopWatch::own_time_ns(1000 * kMs, {3 * kMs, 100 * kMs, 1}), 900 * kMs);
}

TEST(LoopWatchOwnTimeTest, WhoeverNeverSleptWasNotBlocked) {
  // Another guest had the processor for 90 ms.
  EXPECT_EQ(LoopWatch::own_time_ns(100 * kMs, {10 * kMs, 0, 0}), 9 * kMs);
  EXPECT_EQ(LoopWatch::own_time_ns(100 * kMs, {10 * kMs, 0, 1}), 100 * kMs);
}

TEST(LoopWatchOwnTimeTest, NoMoreThanTheRound) {
  EXPECT_EQ(LoopWatch::own_time_ns(6 * kMs, {50 * kMs, 0, 0}), 6 * kMs);
}

}  // namespace
}  // namespace braid
