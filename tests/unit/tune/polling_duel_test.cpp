// SPDX-License-Identifier: Apache-2.0
#include "tune/polling_duel.h"

#include <functional>

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint64_t kUs = 1'000;
constexpr uint64_t kSecond = 1'000'000'000;

// A job on a clock of its own: each operation takes what the test says of the side that holds.
class JobOnFakeClock {
 public:
  JobOnFakeClock(uint64_t sleeping, uint64_t polling, size_t nodes = 2)
      : duel(nodes), sleeping_ns(sleeping), polling_ns(polling) {}

  void run_operation() {
    const uint64_t took_ns = (duel.polls() ? polling_ns : sleeping_ns) + noise_ns(operations);
    now_ns += took_ns;
    spent_ns += took_ns;
    if (duel.polls()) polled_ns += took_ns;
    ++operations;
    const bool polled = duel.polls();
    const PollingDuel::Finding found = duel.finding();
    const bool is_new = duel.on_operation(now_ns);
    EXPECT_EQ(is_new, polled != duel.polls() || found != duel.finding()) << operations;
  }
  void run_for(uint64_t ns) {
    for (const uint64_t end_ns = now_ns + ns; now_ns < end_ns;) run_operation();
  }
  void run_duels(uint32_t duels) {
    while (duel.finding().duels < duels) run_operation();
  }

  PollingDuel duel;
  uint64_t sleeping_ns;
  uint64_t polling_ns;
  std::function<uint64_t(uint64_t operation)> noise_ns = [](uint64_t) { return 0; };
  uint64_t now_ns = 1'000 * kSecond;
  uint64_t operations = 0;
  uint64_t spent_ns = 0;
  uint64_t polled_ns = 0;
};

TEST(PollingDuel, AJobBeginsWithoutPolling) {
  JobOnFakeClock job(100 * kUs, 50 * kUs);
  EXPECT_FALSE(job.duel.polls());
  for (uint32_t i = 0; i < PollingDuel::kTurnOperationsMin; ++i) {
    job.run_operation();
    EXPECT_FALSE(job.duel.polls());
  }
  EXPECT_EQ(job.duel.finding(), PollingDuel::Finding{});
}

TEST(PollingDuel, PollingThatHelpsHolds) {
  JobOnFakeClock job(100 * kUs, 50 * kUs);
  job.run_duels(1);
  EXPECT_TRUE(job.duel.finding().pays);
  EXPECT_NEAR(job.duel.finding().gain, 2, 0.01);
  EXPECT_LT(job.spent_ns, kSecond) << "soon";
  job.run_for(100 * kSecond);
  EXPECT_TRUE(job.duel.polls());
  EXPECT_GT(job.duel.finding().duels, 1u) << "it looks again";
}

TEST(PollingDuel, PollingThatHarmsCostsNextToNothing) {
  JobOnFakeClock job(100 * kUs, 200 * kUs);
  job.run_for(100 * kSecond);
  EXPECT_FALSE(job.duel.polls());
  EXPECT_FALSE(job.duel.finding().pays);
  EXPECT_NEAR(job.duel.finding().gain, 0.5, 0.01);
  const double lost = static_cast<double>(job.polled_ns) / 2 / static_cast<double>(job.spent_ns);
  EXPECT_LT(lost, 0.016);
}

TEST(PollingDuel, WhatIsNoBetterThanNoiseDoesNotHold) {
  for (const uint64_t polling_us : {98, 100, 102}) {
    JobOnFakeClock job(100 * kUs, polling_us * kUs);
    // Steps of seven operations, which fit no turn.
    job.noise_ns = [](uint64_t operation) { return operation % 7 == 0 ? 900 * kUs : 0; };
    job.run_for(60 * kSecond);
    EXPECT_FALSE(job.duel.finding().pays) << polling_us;
    EXPECT_NEAR(job.duel.finding().gain, 1, 0.05) << polling_us;
  }
}

TEST(PollingDuel, ATrainerThatComputesGainsNothingBySmallOperations) {
  JobOnFakeClock job(20'000 * kUs, 19'950 * kUs);
  job.run_for(600 * kSecond);
  EXPECT_GT(job.duel.finding().duels, 0u);
  EXPECT_FALSE(job.duel.finding().pays);
}

TEST(PollingDuel, HiccupsDoNotDecide) {
  JobOnFakeClock job(100 * kUs, 80 * kUs);
  job.noise_ns = [](uint64_t operation) { return operation % 1009 == 0 ? 30'000 * kUs : 0; };
  job.run_duels(3);
  EXPECT_TRUE(job.duel.finding().pays);
}

TEST(PollingDuel, ALoadThatGrowsFavoursNeitherSide) {
  JobOnFakeClock job(100 * kUs, 100 * kUs);
  job.noise_ns = [](uint64_t operation) { return operation * kUs / 100; };
  job.run_duels(1);
  EXPECT_FALSE(job.duel.finding().pays);
}

TEST(PollingDuel, PausesGrowWhileTheVerdictStaysTheSame) {
  JobOnFakeClock job(100 * kUs, 100 * kUs);
  uint64_t pause_ns = PollingDuel::kPauseNsMin;
  for (uint32_t duels = 1; duels < 6; ++duels) {
    job.run_duels(duels);
    const uint64_t ended_ns = job.now_ns;
    job.run_duels(duels + 1);
    EXPECT_GE(job.now_ns - ended_ns, pause_ns) << duels;
    pause_ns *= 2;
  }
}

TEST(PollingDuel, AnotherLoadIsLookedAtSoon) {
  JobOnFakeClock job(100 * kUs, 50 * kUs);
  job.run_for(200 * kSecond);
  ASSERT_TRUE(job.duel.polls());
  const uint32_t before = job.duel.finding().duels;
  // Somebody else computes now.
  job.sleeping_ns = 150 * kUs;
  job.polling_ns = 300 * kUs;
  job.run_duels(before + 1);
  EXPECT_FALSE(job.duel.polls());
  const uint64_t changed_ns = job.now_ns;
  // And no more.
  job.sleeping_ns = 100 * kUs;
  job.polling_ns = 50 * kUs;
  job.run_duels(before + 2);
  EXPECT_TRUE(job.duel.polls());
  EXPECT_LT(job.now_ns - changed_ns, 30 * kSecond);
}

TEST(PollingDuel, ManyNodesChangeSidesMoreSeldom) {
  JobOnFakeClock few(100 * kUs, 150 * kUs, 2);
  JobOnFakeClock many(100 * kUs, 150 * kUs, 500);
  few.run_duels(1);
  many.run_duels(1);
  EXPECT_GT(many.spent_ns, 10 * few.spent_ns);
}

TEST(PollingDuel, AClockThatStandsStillIsNoTrouble) {
  JobOnFakeClock job(0, 0);
  for (int i = 0; i < 100'000; ++i) job.run_operation();
  EXPECT_FALSE(job.duel.finding().pays);
}

}  // namespace
}  // namespace braid
