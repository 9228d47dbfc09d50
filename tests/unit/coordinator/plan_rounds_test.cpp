// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan_rounds.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr double kIterationNs = 10'000'000;
constexpr uint32_t kRounds = 500;
// Without any noise: 2, 4, 8, 16, 32 and then 64 rounds each.
constexpr uint32_t kQuietPlans = 12;

PlanRound round_of(double iteration_ns) {
  PlanRound round;
  round.reports.emplace_back().iteration_ns = static_cast<uint64_t>(iteration_ns);
  return round;
}

// Iterations and all-reduces of one network, on a machine that has other things to do as well.
struct RoundNoise {
  double spread = 0;          // of the logarithm
  double outliers = 0;        // their share
  double outlier_factor = 1;  // how much longer they take
};

class PlanRoundsTest : public ::testing::Test {
 protected:
  double noisy(double value, const RoundNoise& noise) {
    const double factor = std::exp(std::normal_distribution<double>(0, noise.spread)(random_));
    const bool is_outlier = std::uniform_real_distribution<double>(0, 1)(random_) < noise.outliers;
    return value * factor * (is_outlier ? noise.outlier_factor : 1);
  }
  // Whether a round brings another plan, if each that may be replaced is.
  bool run_round(double iteration_ns, double slowness) {
    const bool has_changed = rounds_.has_changed(round_of(iteration_ns), slowness);
    rounds_.note_slowness(slowness);
    if (!has_changed && !rounds_.may_replace()) return false;
    rounds_.begin_plan();
    return true;
  }
  uint32_t count_plans(const RoundNoise& noise) {
    uint32_t plans = 0;
    for (uint32_t i = 0; i < kRounds; ++i)
      plans += run_round(noisy(kIterationNs, noise), noisy(1, noise)) ? 1 : 0;
    return plans;
  }
  // Rounds until there is another plan.
  uint32_t rounds_until_plan(double iteration_ns, double slowness) {
    for (uint32_t i = 1; i <= 2 * PlanRounds::kRoundsMax; ++i) {
      if (run_round(iteration_ns, slowness)) return i;
    }
    return 0;
  }
  // Rounds until there is a change; 0: there was none in `rounds_max`.
  uint32_t rounds_until_change(double iteration_ns, uint32_t rounds_max) {
    for (uint32_t i = 1; i <= rounds_max; ++i) {
      if (rounds_.has_changed(round_of(iteration_ns), 1)) return i;
    }
    return 0;
  }

  PlanRounds rounds_;
  std::mt19937 random_;
};

TEST_F(PlanRoundsTest, OnAQuietMachinePlansBecomeRare) { EXPECT_EQ(count_plans({}), kQuietPlans); }

// Twice as many plans as without noise, and a few more: each change that noise looks like makes the
// next one harder to believe.
TEST_F(PlanRoundsTest, WhateverTheNoiseIsPlansBecomeRare) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    random_.seed(seed);
    rounds_ = {};
    const auto uniform = [this](double low, double high) {
      return std::uniform_real_distribution<double>(low, high)(random_);
    };
    const RoundNoise noise{uniform(0, 1), uniform(0, 0.5), uniform(1, 10)};
    EXPECT_LE(count_plans(noise), 2 * kQuietPlans + 6) << "seed " << seed;
  }
}

TEST_F(PlanRoundsTest, AfterTheFirstChangeSingleRoundsThatDifferSayNothing) {
  EXPECT_EQ(rounds_until_change(kIterationNs, 10), 0u);
  EXPECT_EQ(rounds_until_change(2 * kIterationNs, 1), 1u);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(rounds_until_change(kIterationNs, 1), 0u);
    EXPECT_EQ(rounds_until_change(2 * kIterationNs, 1), 0u);
  }
}

TEST_F(PlanRoundsTest, AChangeThatLastsIsNoticedHoweverLongThePlanWouldHold) {
  for (const auto& [iterations, slowness] :
       {std::pair{2.0, 1.0}, std::pair{0.5, 1.0}, std::pair{1.0, 2.0}}) {
    rounds_ = {};
    count_plans({});
    run_round(kIterationNs, 1);  // a plan may have begun with the last one
    EXPECT_EQ(rounds_until_plan(iterations * kIterationNs, slowness), 1u);
    // And the plans that follow are soon refined.
    EXPECT_EQ(rounds_until_plan(iterations * kIterationNs, slowness), 2u);
  }
}

TEST_F(PlanRoundsTest, EachChangeMustLastForTwiceAsLongUntilNothingHasChangedForLong) {
  rounds_until_change(kIterationNs, PlanRounds::kRoundsMax);
  bool is_slow = false;
  for (const uint32_t rounds : {1, 2, 4, 8, 16, 32, 64, 64}) {
    is_slow = !is_slow;
    EXPECT_EQ(rounds_until_change(is_slow ? 2 * kIterationNs : kIterationNs, 100), rounds);
  }
  const double now = is_slow ? 2 * kIterationNs : kIterationNs;
  EXPECT_EQ(rounds_until_change(now, PlanRounds::kAlikeRoundsMin), 0u);
  EXPECT_EQ(rounds_until_change(3 * now, 100), 1u);
}

}  // namespace
}  // namespace braid
