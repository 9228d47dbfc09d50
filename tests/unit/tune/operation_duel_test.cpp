// SPDX-License-Identifier: Apache-2.0
#include "tune/operation_duel.h"

#include <functional>
#include <random>

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint64_t kUs = 1'000;
constexpr uint64_t kSecond = 1'000'000'000;

// A job on a clock of its own: each operation takes what the test says of the side that holds.
class JobOnFakeClock {
 public:
  JobOnFakeClock(uint64_t usual, uint64_t rival, size_t nodes = 2)
      : duel(nodes), usual_ns(usual), rival_ns(rival) {}

  void run_operation() {
    const bool was_rival = duel.is_rivals_turn();
    const uint64_t took_ns = (was_rival ? rival_ns : usual_ns) + noise_ns(operations);
    now_ns += took_ns;
    spent_ns += took_ns;
    if (was_rival) rivals_ns += took_ns;
    ++operations;
    const OperationDuel::Finding found = duel.finding();
    const bool is_new = duel.on_operation(now_ns);
    EXPECT_EQ(is_new, was_rival != duel.is_rivals_turn() || found != duel.finding()) << operations;
  }
  void run_for(uint64_t ns) {
    for (const uint64_t end_ns = now_ns + ns; now_ns < end_ns;) run_operation();
  }
  void run_duels(uint32_t duels) {
    while (duel.finding().duels < duels) run_operation();
  }

  OperationDuel duel;
  uint64_t usual_ns;
  uint64_t rival_ns;
  std::function<uint64_t(uint64_t operation)> noise_ns = [](uint64_t) { return 0; };
  uint64_t now_ns = 1'000 * kSecond;
  uint64_t operations = 0;
  uint64_t spent_ns = 0;
  uint64_t rivals_ns = 0;
};

TEST(OperationDuel, AJobBeginsTheUsualWay) {
  JobOnFakeClock job(100 * kUs, 50 * kUs);
  EXPECT_FALSE(job.duel.is_rivals_turn());
  for (uint32_t i = 0; i < OperationDuel::kTurnOperationsMin; ++i) {
    job.run_operation();
    EXPECT_FALSE(job.duel.is_rivals_turn());
  }
  EXPECT_EQ(job.duel.finding(), OperationDuel::Finding{});
}

TEST(OperationDuel, ARivalThatHelpsHolds) {
  JobOnFakeClock job(100 * kUs, 50 * kUs);
  job.run_duels(1);
  EXPECT_TRUE(job.duel.finding().pays);
  EXPECT_NEAR(job.duel.finding().gain, 2, 0.01);
  EXPECT_LT(job.spent_ns, kSecond) << "soon";
  job.run_for(100 * kSecond);
  EXPECT_TRUE(job.duel.is_rivals_turn());
  EXPECT_GT(job.duel.finding().duels, 1u) << "it looks again";
}

TEST(OperationDuel, ARivalThatHarmsCostsNextToNothing) {
  JobOnFakeClock job(100 * kUs, 200 * kUs);
  job.run_for(100 * kSecond);
  EXPECT_FALSE(job.duel.is_rivals_turn());
  EXPECT_FALSE(job.duel.finding().pays);
  EXPECT_NEAR(job.duel.finding().gain, 0.5, 0.01);
  const double lost = static_cast<double>(job.rivals_ns) / 2 / static_cast<double>(job.spent_ns);
  EXPECT_LT(lost, 0.008);
}

TEST(OperationDuel, WhatIsNoBetterThanNoiseDoesNotHold) {
  for (const uint64_t rival_us : {98, 100, 102}) {
    JobOnFakeClock job(100 * kUs, rival_us * kUs);
    // Steps of seven operations, which fit no turn.
    job.noise_ns = [](uint64_t operation) { return operation % 7 == 0 ? 900 * kUs : 0; };
    job.run_for(60 * kSecond);
    EXPECT_FALSE(job.duel.finding().pays) << rival_us;
    EXPECT_NEAR(job.duel.finding().gain, 1, 0.05) << rival_us;
  }
}

TEST(OperationDuel, ATrainerThatComputesGainsNothingBySmallOperations) {
  JobOnFakeClock job(20'000 * kUs, 19'950 * kUs);
  job.run_for(600 * kSecond);
  EXPECT_GT(job.duel.finding().duels, 0u);
  EXPECT_FALSE(job.duel.finding().pays);
}

TEST(OperationDuel, HiccupsDoNotDecide) {
  JobOnFakeClock job(100 * kUs, 80 * kUs);
  job.noise_ns = [](uint64_t operation) { return operation % 2003 == 0 ? 30'000 * kUs : 0; };
  job.run_duels(3);
  EXPECT_TRUE(job.duel.finding().pays);
}

// As on a machine whose cores others use, too: one turn in three is slow, whosever it is.
std::function<uint64_t(uint64_t)> others_that_compute(uint32_t seed) {
  return [seed](uint64_t operation) {
    std::mt19937 random(seed + static_cast<uint32_t>(operation / 200));
    return random() % 3 == 0 ? 60 * kUs : 0;
  };
}

TEST(OperationDuel, OnABusyMachineItTakesLonger) {
  uint32_t won = 0;
  uint32_t chance = 0;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    JobOnFakeClock quicker(100 * kUs, 75 * kUs);
    quicker.noise_ns = others_that_compute(seed * 1'000);
    quicker.run_duels(1);
    won += quicker.duel.finding().pays ? 1 : 0;
    JobOnFakeClock same(100 * kUs, 100 * kUs);
    same.noise_ns = others_that_compute(seed * 1'000);
    same.run_duels(1);
    chance += same.duel.finding().pays ? 1 : 0;
  }
  EXPECT_GT(won, 30u);
  EXPECT_LT(chance, 3u);
}

TEST(OperationDuel, ALoadThatGrowsFavoursNeitherSide) {
  JobOnFakeClock job(100 * kUs, 100 * kUs);
  job.noise_ns = [](uint64_t operation) { return operation * kUs / 100; };
  job.run_duels(1);
  EXPECT_FALSE(job.duel.finding().pays);
}

TEST(OperationDuel, PausesGrowWhileTheVerdictStaysTheSame) {
  JobOnFakeClock job(100 * kUs, 100 * kUs);
  uint64_t pause_ns = OperationDuel::kPauseNsMin;
  for (uint32_t duels = 1; duels < 6; ++duels) {
    job.run_duels(duels);
    const uint64_t ended_ns = job.now_ns;
    job.run_duels(duels + 1);
    EXPECT_GE(job.now_ns - ended_ns, pause_ns) << duels;
    pause_ns *= 2;
  }
}

TEST(OperationDuel, AnotherLoadIsLookedAtSoon) {
  JobOnFakeClock job(100 * kUs, 50 * kUs);
  job.run_for(200 * kSecond);
  ASSERT_TRUE(job.duel.is_rivals_turn());
  const uint32_t before = job.duel.finding().duels;
  // Somebody else computes now.
  job.usual_ns = 150 * kUs;
  job.rival_ns = 300 * kUs;
  job.run_duels(before + 1);
  EXPECT_FALSE(job.duel.is_rivals_turn());
  const uint64_t changed_ns = job.now_ns;
  // And no more.
  job.usual_ns = 100 * kUs;
  job.rival_ns = 50 * kUs;
  job.run_duels(before + 2);
  EXPECT_TRUE(job.duel.is_rivals_turn());
  EXPECT_LT(job.now_ns - changed_ns, 30 * kSecond);
}

TEST(OperationDuel, ManyNodesChangeSidesMoreSeldom) {
  JobOnFakeClock few(100 * kUs, 150 * kUs, 2);
  JobOnFakeClock many(100 * kUs, 150 * kUs, 500);
  few.run_duels(1);
  many.run_duels(1);
  EXPECT_GT(many.spent_ns, 10 * few.spent_ns);
}

TEST(OperationDuel, ARivalThatIsSeveralTimesSlowerIsGivenUpWithinOneTurn) {
  // A quarter of the network, and operations that it is all about.
  JobOnFakeClock job(160'000 * kUs, 640'000 * kUs);
  job.run_duels(1);
  EXPECT_FALSE(job.duel.is_rivals_turn());
  EXPECT_FALSE(job.duel.finding().pays);
  EXPECT_NEAR(job.duel.finding().gain, 0.25, 0.01);
  EXPECT_LT(job.rivals_ns, 10 * job.rival_ns);
  const uint64_t ended_ns = job.now_ns;
  job.run_duels(2);
  EXPECT_GT(job.now_ns - ended_ns, 300 * kSecond);
}

TEST(OperationDuel, ATurnInWhichTheTrainerStoppedOnceIsNotGivenUp) {
  JobOnFakeClock job(1'000 * kUs, 900 * kUs);
  uint32_t stops = 0;
  job.noise_ns = [&](uint64_t) {
    if (!job.duel.is_rivals_turn() || stops != 0) return uint64_t{0};
    ++stops;
    return OperationDuel::kLateNsMax - kUs;
  };
  job.run_duels(1);
  EXPECT_EQ(stops, 1u);
  EXPECT_TRUE(job.duel.finding().pays);
}

TEST(OperationDuel, AnotherOnesTrialsDoNotCount) {
  JobOnFakeClock job(100 * kUs, 50 * kUs);
  for (uint32_t i = 0; i < 10; ++i) job.run_operation();
  for (int i = 0; i < 10'000; ++i) job.duel.pass_over(job.now_ns += 1'000 * kUs);
  EXPECT_FALSE(job.duel.is_on());
  EXPECT_EQ(job.duel.finding(), OperationDuel::Finding{});
  job.run_duels(1);
  EXPECT_NEAR(job.duel.finding().gain, 2, 0.01);
}

TEST(OperationDuel, AClockThatStandsStillIsNoTrouble) {
  JobOnFakeClock job(0, 0);
  for (int i = 0; i < 100'000; ++i) job.run_operation();
  EXPECT_FALSE(job.duel.finding().pays);
}

}  // namespace
}  // namespace braid
