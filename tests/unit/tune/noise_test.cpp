// SPDX-License-Identifier: Apache-2.0
#include "tune/noise.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "tune/random_generator.h"

namespace braid {
namespace {

double gaussian(RandomGenerator& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.unit()));
  return radius * std::cos(2 * std::numbers::pi * random.unit());
}

Noise measured(double deviation, double outlier_chance, double slope) {
  RandomGenerator random(5);
  Noise noise;
  double level = 0;
  for (int turn = 0; turn < 100; ++turn) {
    std::vector<double> logs;
    for (int step = 0; step < 3; ++step) {
      level += slope;
      const double outlier = random.unit() < outlier_chance ? 1.1 : 0;
      logs.push_back(level + deviation * gaussian(random) + outlier);
    }
    noise.add(logs);
  }
  return noise;
}

TEST(Noise, IsTheStepsStandardDeviation) {
  EXPECT_NEAR(measured(0.05, 0, 0).of_step(), 0.05, 0.008);
  EXPECT_NEAR(measured(0.15, 0, 0).of_step(), 0.15, 0.024);
}

TEST(Noise, BelievesNoOutliersAndNoDrift) {
  EXPECT_NEAR(measured(0.05, 0.08, 0).of_step(), 0.055, 0.015);
  EXPECT_NEAR(measured(0.05, 0, 0.01).of_step(), 0.05, 0.01);
}

TEST(Noise, IsGuessedAsLongAsNothingIsMeasured) { EXPECT_NEAR(Noise().of_step(), 0.05, 1e-9); }

TEST(Noise, IsNeverNothing) {
  Noise noise;
  for (int i = 0; i < 10; ++i) noise.add({1, 1, 1});
  EXPECT_GT(noise.of_step(), 0);
}

TEST(Noise, OfAMedianFallsWithItsSteps) {
  const Noise noise;
  EXPECT_EQ(noise.of_median(1), noise.of_step());
  EXPECT_LT(noise.of_median(2), noise.of_median(1));
  EXPECT_LT(noise.of_median(3), noise.of_median(2));
  EXPECT_NEAR(noise.of_median(100), noise.of_step() * 0.125, 0.001);
}

}  // namespace
}  // namespace braid
