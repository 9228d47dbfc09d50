// SPDX-License-Identifier: Apache-2.0
#include "tune/duel.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/unit/tune/tuner_surfaces.h"

namespace braid {
namespace {

struct Outcome {
  bool wins = false;
  double gain = 1;
  uint32_t turns = 0;
};

// The challenger takes `ratio` times as long.
Outcome fight(double ratio, const Disturbance& disturbance, uint64_t seed, uint32_t rounds = 5) {
  const auto space = SearchSpace::create({{"a", {1, 2}}});
  FakeJob job(
      *space, [=](auto v) { return v[0] == 1 ? 1 : ratio; }, disturbance, seed);
  Duel duel(rounds, disturbance.noise);
  Outcome outcome;
  while (!duel.is_done()) {
    duel.report(job.step(space->at(duel.is_challengers_turn() ? 1 : 0)));
    ++outcome.turns;
  }
  return {duel.challenger_wins(), duel.gain(), outcome.turns};
}

double share_of_wins(double ratio, const Disturbance& disturbance) {
  int wins = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) wins += fight(ratio, disturbance, seed).wins;
  return wins / 400.0;
}

TEST(Duel, AlternatesAsABBA) {
  Duel duel(2, 0.05);
  std::string order;
  while (!duel.is_done()) {
    order += duel.is_challengers_turn() ? 'B' : 'A';
    duel.report(1);
  }
  EXPECT_EQ(order, "ABBAABBA");
  EXPECT_FALSE(duel.challenger_wins());
  EXPECT_EQ(duel.gain(), 1);
}

TEST(Duel, IsOverAfterOneRoundWhereAllIsClear) {
  const Outcome win = fight(0.5, {}, 1);
  EXPECT_TRUE(win.wins);
  EXPECT_EQ(win.turns, Duel::kTurnsPerRound);
  EXPECT_NEAR(win.gain, 2, 0.3);
  const Outcome loss = fight(2, {}, 1);
  EXPECT_FALSE(loss.wins);
  EXPECT_EQ(loss.turns, Duel::kTurnsPerRound);
}

TEST(Duel, SaysHowManyRoundsShowAGain) {
  EXPECT_EQ(Duel::rounds_to_show(1.05, 0.05), 7u);
  EXPECT_LE(Duel::rounds_to_show(1.5, 0.05), 1u);
  EXPECT_GT(Duel::rounds_to_show(1.05, 0.15), 50u);
  EXPECT_GT(Duel::rounds_to_show(1 + 1e-9, 0.15), 100'000u);
  int wins = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) wins += fight(1 / 1.05, {}, seed, 7).wins;
  EXPECT_GT(wins, 160);
  EXPECT_LT(wins, 300);
}

TEST(Duel, IsLostAtHalfTimeByWhatIsNoBetter) {
  Duel duel(6, 0.05);
  uint32_t turns = 0;
  for (; !duel.is_done(); ++turns) duel.report(1);
  EXPECT_EQ(turns, 3 * Duel::kTurnsPerRound);
  EXPECT_FALSE(duel.challenger_wins());
}

TEST(Duel, IsNotWonByNoise) {
  Disturbance loud;
  loud.noise = 0.15;
  Disturbance outliers;
  outliers.outlier_chance = 0.08;
  EXPECT_LT(share_of_wins(1, {}), 0.05);
  EXPECT_LT(share_of_wins(1, loud), 0.05);
  EXPECT_LT(share_of_wins(1, outliers), 0.05);
  EXPECT_EQ(share_of_wins(1.1, {}), 0);
}

TEST(Duel, IsWonByWhatIsClearlyBetter) { EXPECT_GT(share_of_wins(1 / 1.15, {}), 0.95); }

TEST(Duel, IsFairWhileTheNetworkGetsSlower) {
  Disturbance drift;
  drift.noise = 0.01;
  drift.drift_per_step = 0.02;
  EXPECT_LT(share_of_wins(1, drift), 0.05);
  EXPECT_GT(share_of_wins(1 / 1.05, drift), 0.5);
}

}  // namespace
}  // namespace braid
