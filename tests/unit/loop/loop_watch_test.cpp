// SPDX-License-Identifier: Apache-2.0
#include "loop/loop_watch.h"

#include <time.h>

#include "loop_testing.h"

namespace braid {
namespace {

constexpr uint64_t kMs = 1'000'000;

// What a thread does, told instead of done.
class ToldTimes final : public LoopWatch::Times {
 public:
  uint64_t now_ns() const override { return now_ns_; }
  uint64_t sleeps() const override { return used_.sleeps; }
  LoopWatch::ThreadTimes used() const override { return used_; }

  void compute(uint64_t ns) {
    now_ns_ += ns;
    used_.computing_ns += ns;
  }
  void sleep(uint64_t ns) {
    now_ns_ += ns;
    ++used_.sleeps;
  }
  void wait_for_processor(uint64_t ns) {
    now_ns_ += ns;
    used_.waiting_ns += ns;
  }

 private:
  uint64_t now_ns_ = 3'600'000 * kMs;
  LoopWatch::ThreadTimes used_;
};

class LoopWatchTest : public ::testing::Test {
 protected:
  LoopWatchTest() { watch_.begin(); }

  // A round of the loop: its poll sleeps, its calls do something.
  void round(uint64_t poll_ns, const std::function<void()>& calls) {
    if (poll_ns > 0) times_.sleep(poll_ns);
    watch_.on_polled(times_.now_ns() / kMs);
    calls();
    watch_.on_round_end();
  }
  uint64_t long_rounds() const { return watch_.counters().long_rounds; }
  uint64_t longest_ms() const { return watch_.counters().longest_round_ns / kMs; }

  ToldTimes& times_ = *new ToldTimes();
  LoopWatch watch_{"test", std::unique_ptr<LoopWatch::Times>(&times_)};
};

TEST_F(LoopWatchTest, ACallThatComputesForLongIsCounted) {
  round(0, [&] { times_.compute(20 * kMs); });
  EXPECT_EQ(long_rounds(), 1u);
  EXPECT_GE(longest_ms(), 18u) << "all but what may have come before, and the clock's millisecond";
  EXPECT_LE(longest_ms(), 20u);
}

TEST_F(LoopWatchTest, ACallThatBlocksIsCounted) {
  round(0, [&] { times_.sleep(20 * kMs); });
  EXPECT_EQ(long_rounds(), 1u);
  EXPECT_EQ(longest_ms(), 19u);
}

TEST_F(LoopWatchTest, ACallThatBlocksAfterALongPollIsCounted) {
  round(20 * kMs, [&] { times_.sleep(20 * kMs); });
  EXPECT_EQ(long_rounds(), 1u);
}

TEST_F(LoopWatchTest, WhatOthersTakeMeanwhileIsNotCounted) {
  round(20 * kMs, [&] {
    times_.compute(kMs);
    times_.wait_for_processor(100 * kMs);
  });
  EXPECT_EQ(long_rounds(), 0u);
}

TEST_F(LoopWatchTest, SleepingInThePollIsNoCall) {
  for (int i = 0; i < 3; ++i) round(50 * kMs, [&] { times_.compute(kMs); });
  EXPECT_EQ(long_rounds(), 0u);
  EXPECT_EQ(longest_ms(), 0u);
}

TEST_F(LoopWatchTest, TheLongestIsKept) {
  round(0, [&] { times_.sleep(20 * kMs); });
  round(0, [&] { times_.sleep(40 * kMs); });
  round(0, [&] { times_.sleep(10 * kMs); });
  EXPECT_EQ(long_rounds(), 3u);
  EXPECT_EQ(longest_ms(), 39u);
}

TEST_F(LoopWatchTest, SwitchedOffNothingIsCounted) {
  watch_.end();
  round(0, [&] { times_.sleep(20 * kMs); });
  EXPECT_EQ(long_rounds(), 0u);
}

// With the times of the system, and in a loop's own rounds.
class WatchedLoopTest : public testing::LoopTest {};

// However long that takes.
void compute_more_than_a_round_may() {
  const auto used = [] {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
  };
  const uint64_t begin = used();
  while (used() - begin < 4 * LoopWatch::kLongRoundNs) {
  }
}

TEST_F(WatchedLoopTest, LongRoundsAreCountedAlsoWhereATimerIsStartedMeanwhile) {
  Timer other(*loop_);
  Timer timer(*loop_);
  timer.start_once(0, [&] {
    compute_more_than_a_round_may();
    other.start_once(1000, [] {});
    // Not yet: the round is measured at its end.
    timer.start_once(0, [&] { loop_->stop(); });
  });
  run();
  EXPECT_GE(loop_->counters().long_rounds, 1u);
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
