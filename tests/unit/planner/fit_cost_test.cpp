// SPDX-License-Identifier: Apache-2.0
#include "planner/fit_cost.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "planner/timing_log.h"
#include "tests/unit/planner/shared_data.h"

namespace braid {
namespace {

constexpr double kStartup = 1e-4;
constexpr double kPerByte = 2e-9;

double line(uint64_t bytes) { return kStartup + kPerByte * static_cast<double>(bytes); }

std::vector<CostMeasurement> measure(double (*seconds)(uint64_t), double noise, int repeats = 1) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(0, noise);
  std::vector<CostMeasurement> out;
  for (uint64_t bytes = 4096; bytes <= 1 << 20; bytes += 4096) {
    for (int i = 0; i < repeats; ++i) {
      out.push_back({bytes, seconds(bytes) * std::exp(normal(random)), 1});
    }
  }
  return out;
}

FittedCost fit(const std::vector<CostMeasurement>& measurements) {
  auto cost = fit_cost(measurements);
  EXPECT_TRUE(cost) << cost.status().message();
  return std::move(cost).value();
}

std::string fit_error(const std::vector<CostMeasurement>& measurements) {
  const auto cost = fit_cost(measurements);
  return cost ? "no error" : cost.status().message();
}

TEST(FitCost, FindsALine) {
  const FittedCost cost = fit(measure(line, 0));
  ASSERT_EQ(cost.bands().size(), 1u);
  EXPECT_NEAR(cost.bands()[0].cost.startup_seconds, kStartup, 1e-9);
  EXPECT_NEAR(cost.bands()[0].cost.seconds_per_byte, kPerByte, 1e-15);
  EXPECT_EQ(cost.bytes_min(), 4096u);
  EXPECT_EQ(cost.bytes_max(), 1u << 20);
}

TEST(FitCost, TakesNoiseForNoStep) {
  for (const double noise : {0.01, 0.05, 0.2}) {
    EXPECT_EQ(fit(measure(line, noise)).bands().size(), 1u) << noise;
  }
}

TEST(FitCost, BearsOutliers) {
  std::vector<CostMeasurement> measurements = measure(line, 0.01);
  for (size_t i = 0; i < measurements.size(); i += 5) measurements[i].seconds *= 20;
  const FittedCost cost = fit(measurements);
  ASSERT_EQ(cost.bands().size(), 1u);
  EXPECT_NEAR(cost.bands()[0].cost.startup_seconds, kStartup, 0.1 * kStartup);
  EXPECT_NEAR(cost.bands()[0].cost.seconds_per_byte, kPerByte, 0.02 * kPerByte);
}

TEST(FitCost, BearsOutliersOfOneSize) {
  std::vector<CostMeasurement> measurements = measure(line, 0.01, 5);
  for (size_t i = 0; i < measurements.size(); i += 5) {
    measurements[i].seconds *= 100;
    measurements[i + 1].seconds *= 50;
  }
  const FittedCost cost = fit(measurements);
  ASSERT_EQ(cost.bands().size(), 1u);
  EXPECT_NEAR(cost.bands()[0].cost.seconds_per_byte, kPerByte, 0.02 * kPerByte);
}

TEST(FitCost, FindsStepsWhereTheyAre) {
  const auto stepped = [](uint64_t bytes) {
    return bytes < 200'704 ? line(bytes) : bytes < 602'112 ? 1.4 * line(bytes) : 3 * line(bytes);
  };
  for (const double noise : {0.0, 0.01, 0.03}) {
    const FittedCost cost = fit(measure(stepped, noise));
    ASSERT_EQ(cost.bands().size(), 3u) << noise;
    EXPECT_EQ(cost.bands()[1].bytes_min, 200'704u) << noise;
    EXPECT_EQ(cost.bands()[2].bytes_min, 602'112u) << noise;
  }
}

TEST(FitCost, FindsAStepAmongThousandsOfSizes) {
  std::vector<CostMeasurement> measurements;
  for (uint64_t bytes = 1000; bytes < 5000; ++bytes) {
    measurements.push_back({bytes, bytes < 3217 ? line(bytes) : 2 * line(bytes), 1});
  }
  const FittedCost cost = fit(measurements);
  ASSERT_EQ(cost.bands().size(), 2u);
  EXPECT_EQ(cost.bands()[1].bytes_min, 3217u);
}

TEST(FitCost, KeepsTheStartupAmongLargeMessages) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(0, 0.02);
  std::vector<CostMeasurement> measurements;
  for (double bytes = 1000; bytes < 1e9; bytes *= 1.1) {
    const auto whole = static_cast<uint64_t>(bytes);
    measurements.push_back({whole, line(whole) * std::exp(normal(random)), 1});
  }
  const FittedCost cost = fit(measurements);
  EXPECT_NEAR(cost.seconds(1000), line(1000), 0.03 * line(1000));
  EXPECT_NEAR(cost.seconds(900'000'000), line(900'000'000), 0.03 * line(900'000'000));
}

TEST(FitCost, NeverDecreases) {
  const auto falling = [](uint64_t bytes) {
    return bytes < 300'000 ? 2 * line(bytes) : bytes < 700'000 ? line(bytes) : 1e-3;
  };
  const FittedCost cost = fit(measure(falling, 0.05));
  double before = 0;
  for (uint64_t bytes = 0; bytes < 2 << 20; bytes += 1000) {
    EXPECT_GE(cost.seconds(bytes), before) << bytes;
    before = cost.seconds(bytes);
    EXPECT_GE(cost.phases(bytes).startup_seconds, 0) << bytes;
    EXPECT_GE(cost.phases(bytes).transfer_seconds, 0) << bytes;
  }
}

TEST(FitCost, BeginsNoEarlierThanNow) {
  const auto steep = [](uint64_t bytes) { return 1e-9 * static_cast<double>(bytes); };
  std::vector<CostMeasurement> measurements = measure(steep, 0);
  for (CostMeasurement& one : measurements) one.seconds -= 2e-6;  // a line through −2 µs
  EXPECT_GE(fit(measurements).bands()[0].cost.startup_seconds, 0);
}

// Timings of all kinds: noisy lines, steps, curves, outliers, and times that have nothing to do
// with sizes.
std::vector<CostMeasurement> random_timings(uint32_t seed) {
  std::mt19937 random(seed);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  const double noise = uniform(0, 1.5);
  const double power = uniform(0, 3);  // of the bytes; 1: a line
  const double step_at = uniform(1e3, 1e7);
  const double step = uniform(0.1, 10);
  std::normal_distribution<double> normal(0, noise);
  std::vector<CostMeasurement> timings;
  const int sizes = std::uniform_int_distribution<int>(2, 60)(random);
  for (int i = 0; i < sizes; ++i) {
    const double bytes = std::exp(uniform(std::log(1e3), std::log(1e7)));
    double seconds = uniform(0, 1e-3) + 1e-9 * std::pow(bytes / 1e4, power) * 1e4;
    if (bytes > step_at) seconds *= step;
    if (uniform(0, 1) < 0.1) seconds *= 100;
    timings.push_back({static_cast<uint64_t>(bytes), seconds * std::exp(normal(random)), 1});
  }
  timings.push_back({500, 1e-4, 1});  // two sizes at least
  return timings;
}

TEST(FitCost, IsNeverNegativeWhateverWasMeasured) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    const FittedCost cost = fit(random_timings(seed));
    for (const FittedCost::Band& band : cost.bands()) {
      EXPECT_GE(band.cost.startup_seconds, 0) << "seed " << seed;
      EXPECT_GE(band.cost.seconds_per_byte, 0) << "seed " << seed;
    }
    double before = 0;
    for (uint64_t bytes = 1; bytes < 100'000'000; bytes += 1 + bytes / 3) {
      EXPECT_GE(cost.phases(bytes).startup_seconds, 0) << "seed " << seed << ": " << bytes;
      EXPECT_GE(cost.phases(bytes).transfer_seconds, 0) << "seed " << seed << ": " << bytes;
      EXPECT_GE(cost.seconds(bytes), before * (1 - 1e-12)) << "seed " << seed << ": " << bytes;
      before = cost.seconds(bytes);
    }
  }
}

// Times that grow faster than sizes: lines through the origin, in as many bands as that takes.
TEST(FitCost, FollowsASteepCurve) {
  const auto steep = [](uint64_t bytes) {
    return bytes < 100'000 ? line(bytes) : line(bytes) * static_cast<double>(bytes) / 1e5;
  };
  const FittedCost cost = fit(measure(steep, 0.01));
  for (uint64_t bytes = 8192; bytes <= 1 << 20; bytes += 8192)
    EXPECT_NEAR(cost.seconds(bytes), steep(bytes), 0.25 * steep(bytes)) << bytes;
}

TEST(FitCost, TakesTwoSizes) {
  const FittedCost cost = fit({{1000, 2, 1}, {2000, 3, 1}});
  EXPECT_DOUBLE_EQ(cost.seconds(1500), 2.5);
  EXPECT_FALSE(cost.covers(999));
  EXPECT_TRUE(cost.covers(1000));
  EXPECT_FALSE(cost.covers(2001));
}

TEST(FitCost, MeasuresTheSlowdownOfSeveralUnits) {
  std::vector<CostMeasurement> measurements = measure(line, 0.01);
  for (uint64_t bytes = 4096; bytes <= 1 << 20; bytes += 4096) {
    const double transfer = kPerByte * static_cast<double>(bytes);
    measurements.push_back({bytes, kStartup + 1.5 * transfer, 2});
    measurements.push_back({bytes, kStartup + 3 * transfer, 4});
    if (bytes % 5 == 0) measurements.back().seconds *= 10;
  }
  const FittedCost cost = fit(measurements);
  EXPECT_EQ(cost.slowdown(1), 1);
  EXPECT_NEAR(cost.slowdown(2), 1.5, 0.03);
  EXPECT_NEAR(cost.slowdown(3), 2.25, 0.05) << "on the straight line between the neighbours";
  EXPECT_NEAR(cost.slowdown(4), 3, 0.06);
  EXPECT_NEAR(cost.slowdown(6), 4.5, 0.1) << "as the last two go on";
}

TEST(FitCost, KeepsSlowdownsWithinTheirBounds) {
  std::vector<CostMeasurement> measurements = measure(line, 0);
  for (uint64_t bytes = 4096; bytes <= 1 << 20; bytes += 4096) {
    measurements.push_back({bytes, 10 * line(bytes), 2});
    measurements.push_back({bytes, 0.5 * line(bytes), 3});
  }
  const FittedCost cost = fit(measurements);
  EXPECT_EQ(cost.slowdown(2), 2);
  EXPECT_EQ(cost.slowdown(3), 2);
}

TEST(FitCost, SharesTheNetworkWhereNothingWasMeasured) {
  EXPECT_EQ(fit(measure(line, 0)).slowdown(5), 5);
}

TEST(FitCost, IsPure) {
  std::vector<CostMeasurement> measurements = measure(line, 0.1, 3);
  const FittedCost once = fit(measurements);
  std::mt19937_64 random(2);
  std::shuffle(measurements.begin(), measurements.end(), random);
  EXPECT_EQ(fit(measurements), once) << "whatever the order";
}

TEST(FitCost, ErrorsNameTheMeasurement) {
  EXPECT_EQ(fit_error({{1, 1, 1}, {2, -1, 1}}),
            "measurement 1 (2 bytes): -1 seconds; right is more than 0");
  EXPECT_NE(fit_error({{1, NAN, 1}}).find("measurement 0"), std::string::npos);
  EXPECT_NE(fit_error({{1, INFINITY, 1}}).find("measurement 0"), std::string::npos);
  EXPECT_NE(fit_error({{0, 1, 1}}).find("0 bytes"), std::string::npos);
  EXPECT_NE(fit_error({{1, 1, 0}}).find("0 units at the same time"), std::string::npos);
  EXPECT_NE(fit_error({{1, 1, 5000}}).find("5000 units"), std::string::npos);
  EXPECT_NE(fit_error({}).find("0 distinct sizes"), std::string::npos);
  EXPECT_NE(fit_error({{7, 1, 1}, {7, 2, 1}, {9, 3, 2}}).find("1 distinct sizes"),
            std::string::npos);
}

TEST(FitCost, ReproducesThePublishedFit) {
  const std::string path = shared_data("allreduce_logs/allreduce8.log");
  BRAID_SKIP_WITHOUT(path);
  auto log = load_timing_logs({path});
  ASSERT_TRUE(log) << log.status().message();
  std::erase_if(log->measurements, [](const CostMeasurement& one) {
    return one.bytes < 200'000 || one.bytes > 500'000;
  });
  const FittedCost cost = fit(log->measurements);
  ASSERT_EQ(cost.bands().size(), 1u);
  EXPECT_NEAR(cost.bands()[0].cost.startup_seconds, 1.11e-3, 0.005e-3);
  EXPECT_NEAR(cost.bands()[0].cost.seconds_per_byte, 1.99e-9, 0.005e-9);
}

TEST(FitCost, FindsTheStepOfThePublishedLog) {
  const std::string path = shared_data("allreduce_logs/allreduce8.log");
  BRAID_SKIP_WITHOUT(path);
  const auto log = load_timing_logs({path});
  ASSERT_TRUE(log) << log.status().message();
  const FittedCost cost = fit(log->measurements);
  EXPECT_TRUE(std::any_of(cost.bands().begin(), cost.bands().end(),
                          [](const auto& band) { return band.bytes_min == 512 << 10; }));
  EXPECT_NEAR(cost.seconds(520'192), 2160e-6, 60e-6);
  EXPECT_NEAR(cost.seconds(524'288), 3121e-6, 60e-6);
}

}  // namespace
}  // namespace braid
