// SPDX-License-Identifier: Apache-2.0
#include "tune/gaussian_process.h"

#include <gtest/gtest.h>

#include "tune/expected_improvement.h"
#include "tune/random_generator.h"

namespace braid {
namespace {

using Point = GaussianProcess::Point;

TEST(GaussianProcess, GoesThroughPointsWithoutNoise) {
  const std::vector<Point> points = {{{0.0}, 1, 0}, {{0.4}, 3, 0}, {{1.0}, 2, 0}};
  const GaussianProcess process(points, {{0.5}, 1});
  for (const Point& point : points) {
    EXPECT_NEAR(process.predict(point.x).mean, point.y, 1e-6);
    EXPECT_NEAR(process.predict(point.x).deviation, 0, 1e-3);
  }
}

TEST(GaussianProcess, IsLessSureFartherAway) {
  const GaussianProcess process({{{0.0}, 1, 0}, {{0.2}, 1.1, 0}}, {{0.3}, 1});
  const double near = process.predict(std::vector<double>{0.3}).deviation;
  const double far = process.predict(std::vector<double>{1.0}).deviation;
  EXPECT_GT(near, 0);
  EXPECT_GT(far, near);
  EXPECT_LE(far, 1);
}

TEST(GaussianProcess, DoesNotFollowNoise) {
  std::vector<Point> points;
  for (int i = 0; i < 8; ++i) points.push_back({{0.1 * i}, i % 2 == 0 ? 0.1 : -0.1, 0.1});
  const GaussianProcess process(points, {{1.0}, 0.1});
  for (const Point& point : points) EXPECT_LT(std::abs(process.predict(point.x).mean), 0.06);
}

TEST(GaussianProcess, PredictsASmoothFunctionBetweenItsPoints) {
  const auto function = [](double x, double y) { return std::cos(2 * x) + 0.5 * y; };
  RandomGenerator random(3);
  std::vector<Point> points;
  for (int i = 0; i < 30; ++i) {
    const double x = random.unit();
    const double y = random.unit();
    points.push_back({{x, y}, function(x, y), 0.01});
  }
  const GaussianProcess process = GaussianProcess::fit(points);
  for (int i = 0; i < 30; ++i) {
    const std::vector<double> at = {0.1 + 0.8 * random.unit(), 0.1 + 0.8 * random.unit()};
    EXPECT_NEAR(process.predict(at).mean, function(at[0], at[1]), 0.05);
  }
}

TEST(GaussianProcess, FitFindsTheCoordinateThatMatters) {
  RandomGenerator random(4);
  std::vector<Point> points;
  for (int i = 0; i < 40; ++i) {
    const double x = random.unit();
    points.push_back({{x, random.unit()}, std::sin(6 * x), 0.02});
  }
  const GaussianProcess process = GaussianProcess::fit(points);
  EXPECT_LT(process.kernel().length_scales[0], process.kernel().length_scales[1]);
}

TEST(GaussianProcess, FitLivesWithOnePointAndWithEqualOnes) {
  EXPECT_NEAR(GaussianProcess::fit({{{0.5}, 2, 0.1}}).predict(std::vector<double>{0.1}).mean, 2,
              1e-9);
  const GaussianProcess equal = GaussianProcess::fit({{{0.5}, 2, 0.1}, {{0.5}, 2, 0.1}});
  EXPECT_NEAR(equal.predict(std::vector<double>{0.9}).mean, 2, 1e-9);
}

TEST(ExpectedImprovement, IsTheGainWhereAllIsSure) {
  EXPECT_EQ(expected_improvement(1, 0, 3), 2);
  EXPECT_EQ(expected_improvement(3, 0, 1), 0);
}

TEST(ExpectedImprovement, PrefersTheLowerMeanAndTheLargerDoubt) {
  EXPECT_GT(expected_improvement(1, 0.5, 2), expected_improvement(1.5, 0.5, 2));
  EXPECT_GT(expected_improvement(2.5, 1, 2), expected_improvement(2.5, 0.5, 2));
  EXPECT_NEAR(expected_improvement(2, 1, 2), 0.39894, 1e-5) << "half the mean of |normal|";
}

}  // namespace
}  // namespace braid
