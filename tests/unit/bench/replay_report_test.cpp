// SPDX-License-Identifier: Apache-2.0
#include "bench/replay_report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace braid::bench {
namespace {

ReplayResult result_of(const char* planner, double seconds) {
  ReplayResult result;
  result.planner = planner;
  result.streams = 4;
  result.groups = 3;
  result.seconds.assign(2 * kTurnSteps, seconds);
  result.predicted_seconds = 0.5;
  return result;
}

TEST(PairedRatio, ComparesTurnsThatStandSideBySide) {
  // The machine became three times as slow in the second turn; the ratio did not change.
  std::vector<double> base(kTurnSteps, 1.0);
  base.resize(2 * kTurnSteps, 3.0);
  std::vector<double> other(kTurnSteps, 2.0);
  other.resize(2 * kTurnSteps, 6.0);
  EXPECT_DOUBLE_EQ(paired_ratio(other, base), 2);
}

TEST(PairedRatio, TakesATurnThatIsShorter) { EXPECT_DOUBLE_EQ(paired_ratio({3, 3}, {2, 2}), 1.5); }

TEST(ReplayJson, HasTheKeysInOrder) {
  const auto one = result_of("exact", 0.6);
  EXPECT_EQ(to_json(one, one, false),
            R"({"planner":"exact","streams":4,"steps":10,"groups":3,"measured_seconds":0.6,)"
            R"("p99_seconds":0.6,"predicted_seconds":0.5,"ratio":1.2})");
}

TEST(ReplayJson, HasNoPredictionWhereNothingWasPredicted) {
  auto one = result_of("live", 0.6);
  one.predicted_seconds = 0;
  const auto json = nlohmann::json::parse(to_json(one, one, false));
  EXPECT_FALSE(json.contains("predicted_seconds"));
  EXPECT_FALSE(json.contains("ratio"));
  EXPECT_NE(replay_table({&one, 1}).find(" - "), std::string::npos);
}

TEST(ReplayJson, NamesPlanAndBase) {
  auto live = result_of("live", 0.6);
  live.plan = 7;
  const auto json = nlohmann::json::parse(to_json(live, result_of("wfbp", 1.2), true));
  EXPECT_EQ(json["plan"], 7);
  EXPECT_EQ(json["settled"], true);
  EXPECT_EQ(json["base"], "wfbp");
  EXPECT_DOUBLE_EQ(json["paired_ratio"], 0.5);
}

}  // namespace
}  // namespace braid::bench
