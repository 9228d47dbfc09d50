// SPDX-License-Identifier: Apache-2.0
#include "planner/fitted_cost.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

FittedCost two_bands() {
  auto cost = FittedCost::create(
      {{100, 1000, {1, 0.001}, 4, 0.01}, {2000, 9000, {-1, 0.002}, 5, 0.02}}, {{2, 1.5}});
  EXPECT_TRUE(cost) << cost.status().message();
  return std::move(cost).value();
}

std::string cost_error(std::string_view text) {
  const auto cost = parse_cost(text, "c.json");
  return cost ? "no error" : cost.status().message();
}

TEST(FittedCost, HoldsEachBandsLine) {
  const FittedCost cost = two_bands();
  EXPECT_DOUBLE_EQ(cost.seconds(500), 1.5);
  EXPECT_DOUBLE_EQ(cost.seconds(5000), 9);
}

TEST(FittedCost, GivesSizesBetweenBandsToTheUpperOne) {
  EXPECT_DOUBLE_EQ(two_bands().seconds(1800), 2.6);
}

TEST(FittedCost, FallsNowhere) {
  EXPECT_DOUBLE_EQ(two_bands().seconds(1001), 2) << "the upper band's line alone would give 1.002";
}

TEST(FittedCost, HasNoNegativePhase) {
  const CostModel::Phases phases = two_bands().phases(5000);
  EXPECT_EQ(phases.startup_seconds, 0);
  EXPECT_DOUBLE_EQ(phases.transfer_seconds, 9);
}

TEST(FittedCost, KnowsWhatItWasMeasuredAt) {
  const FittedCost cost = two_bands();
  EXPECT_FALSE(cost.covers(99));
  EXPECT_TRUE(cost.covers(100));
  EXPECT_TRUE(cost.covers(1500));
  EXPECT_TRUE(cost.covers(9000));
  EXPECT_FALSE(cost.covers(9001));
}

// The upper band's line alone would begin at 1.002 seconds: it is flat until it reaches the 2 of
// the band below.
TEST(FittedCost, ConsistsOfLines) {
  std::vector<uint64_t> bytes_max;
  for (const CostModel::Line& line : two_bands().lines()) bytes_max.push_back(line.bytes_max);
  EXPECT_EQ(bytes_max, (std::vector<uint64_t>{1000, 1499, UINT64_MAX}));
}

// Were 9 of the first band's 10 seconds a startup, then ten units side by side would get ten times
// out of the network what one large unit gets.
TEST(FittedCost, NoBandsTransfersAreQuickerThanTheLargestSizesOnes) {
  const auto cost =
      FittedCost::create({{1, 1000, {9, 0.001}, 2, 0}, {1001, 9000, {2, 0.008}, 2, 0}}, {});
  ASSERT_TRUE(cost);
  EXPECT_DOUBLE_EQ(cost->seconds(1000), 10);
  EXPECT_DOUBLE_EQ(cost->phases(1000).startup_seconds, 2);
  EXPECT_DOUBLE_EQ(cost->phases(500).startup_seconds, 2);
  EXPECT_DOUBLE_EQ(cost->phases(9000).startup_seconds, 2);
}

TEST(FittedCost, IsOneLineWithOneBand) {
  const auto cost = FittedCost::create({{1, 2, {3, 4}, 2, 0}}, {});
  ASSERT_TRUE(cost);
  ASSERT_EQ(cost->lines().size(), 1u);
  EXPECT_EQ(cost->lines()[0].phases(5).startup_seconds, 3);
  EXPECT_EQ(cost->lines()[0].phases(5).transfer_seconds, 20);
}

TEST(FittedCost, ReadsWhatToJsonWrites) {
  const auto again = parse_cost(to_json(two_bands()), "c.json");
  ASSERT_TRUE(again) << again.status().message();
  EXPECT_EQ(*again, two_bands());
}

TEST(ParseCost, ErrorsNameTheEntry) {
  const std::string band =
      R"({"bytes_min": 1, "bytes_max": 2, "startup_seconds": 1, "seconds_per_byte": 1})";
  EXPECT_EQ(cost_error(R"({"bands": [)" + band + "]}"), "no error");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "c.json: parse error"},
      {"{}", "c.json: bands: 0 of them; right are 1 to 64"},
      {R"({"bands": 1})", "c.json: bands: 1 is no list"},
      {R"({"bands": [1]})", "c.json: bands[0]: 1 is no object"},
      {R"({"bands": [{}]})", "c.json: bands[0].bytes_min is missing"},
      {R"({"bands": [{"bytes": 1}]})", "c.json: bands[0].\"bytes\" is not known"},
      {R"({"bands": [)" + band + "," + band + "]}", "bands[1].bytes_min: 1 does not fit"},
      {R"({"bands": [{"bytes_min": 1, "bytes_max": 0, "startup_seconds": 1,
                      "seconds_per_byte": 1}]})",
       "bands[0].bytes_max: 0 does not fit"},
      {R"({"bands": [{"bytes_min": 1, "bytes_max": 2, "startup_seconds": -1,
                      "seconds_per_byte": 1}]})",
       "bands[0].startup_seconds: -1 does not fit"},
      {R"({"bands": [{"bytes_min": 1, "bytes_max": 2, "startup_seconds": 1,
                      "seconds_per_byte": -1}]})",
       "bands[0].seconds_per_byte: -1 does not fit"},
      {R"({"bands": [{"bytes_min": 1, "bytes_max": 2, "startup_seconds": "1",
                      "seconds_per_byte": 1}]})",
       "bands[0].startup_seconds: \"1\" is no number"},
      {R"({"bands": [)" + band + R"(], "slowdowns": [{"transfers": 1, "factor": 1}]})",
       "slowdowns[0].transfers: 1 does not fit"},
      {R"({"bands": [)" + band + R"(], "slowdowns": [{"transfers": 2, "factor": 2.5}]})",
       "slowdowns[0].factor: 2.5 does not fit"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_NE(cost_error(text).find(expected), std::string::npos)
        << text << "\n  gives: " << cost_error(text) << "\n  expected: " << expected;
  }
}

}  // namespace
}  // namespace braid
