// SPDX-License-Identifier: Apache-2.0
#include "planner/live_plan.h"

#include <gtest/gtest.h>

#include "base/errors_testing.h"

namespace braid {
namespace {

using testing::is_error;

constexpr const char* kAnswer = R"([{"job": "train", "sets": [{
  "plan": 3, "from_step": 40, "planner": "streams", "streams": 4, "nodes": 3, "io_threads": 2,
  "carry_seconds_per_byte": 3e-9,
  "steps_measured": 48,
  "steps_ignored": 2, "last_step": 47, "predicted_iteration_seconds": 0.5,
  "measured_iteration_seconds": 0.6,
  "cost": {"bands": [{"bytes_min": 1, "bytes_max": 9, "startup_seconds": 0.001,
                      "seconds_per_byte": 1e-9}]},
  "groups": [["c"], ["b", "a"]],
  "beside": [{"tensor": "d", "before_seconds": 0.25, "share": 0.1}],
  "trace": {"names": ["a", "b", "c"], "numel": [1, 2, 3], "tb": [0.1, 0.2, 0],
            "dtype": ["float32", "float32", "float16"], "forward_seconds": 0.3}}]}])";

TEST(ParseLivePlans, ReadsWhatTheDaemonSays) {
  const auto jobs = parse_live_plans(kAnswer);
  ASSERT_TRUE(jobs.is_ok()) << jobs.status().message();
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ(jobs->front().name, "train");
  const LiveSet& set = jobs->front().sets.at(0);
  EXPECT_EQ(set.plan, 3u);
  EXPECT_EQ(set.from_step, 40u);
  EXPECT_EQ(set.planner, "streams");
  EXPECT_EQ(set.streams, 4u);
  EXPECT_EQ(set.nodes, 3u);
  EXPECT_EQ(set.io_threads, 2u);
  EXPECT_EQ(set.carry_seconds_per_byte, 3e-9);
  EXPECT_TRUE(set.is_measured());
  EXPECT_EQ(set.predicted_iteration_seconds, 0.5);
  EXPECT_EQ(set.measured_iteration_seconds, 0.6);
  ASSERT_TRUE(set.cost);
  EXPECT_EQ(set.cost->bytes_max(), 9u);
  ASSERT_EQ(set.beside.size(), 1u);
  EXPECT_EQ(set.beside[0].tensor, "d");
  EXPECT_EQ(set.beside[0].before_seconds, 0.25);
  EXPECT_EQ(set.beside[0].share, 0.1);
  EXPECT_EQ(set.trace.model, "train");
  EXPECT_EQ(set.trace.tensors.at(2).dtype, DataType::Float16);
  EXPECT_EQ(set.groups, (std::vector<std::vector<std::string>>{{"c"}, {"b", "a"}}));
}

TEST(ParseLivePlans, IsNotMeasuredBeforeTheIgnoredStepsAreOver) {
  std::string text = kAnswer;
  text.replace(text.find("48"), 2, "2");
  EXPECT_FALSE(parse_live_plans(text)->front().sets.at(0).is_measured());
}

TEST(ParseLivePlans, SaysWhatMakesNoSense) {
  for (const char* text : {"", "{}", "[1]", R"([{"job": "a"}])", R"([{"job": 1, "sets": []}])",
                           R"([{"job": "a", "sets": [{}]}])"}) {
    const auto jobs = parse_live_plans(text);
    ASSERT_FALSE(jobs.is_ok()) << text;
    EXPECT_TRUE(is_error(jobs, StatusCode::Protocol, {"the daemon's answer"}));
  }
}

TEST(PlanOfGroups, FollowsTheOrderOfBackward) {
  const Trace trace = parse_live_plans(kAnswer)->front().sets.at(0).trace;
  EXPECT_EQ(*plan_of_groups({{"c"}, {"b", "a"}}, trace), (Plan{{{0, 1}, {1, 3}}}));
  EXPECT_EQ(*plan_of_groups({{"c", "a"}, {"b"}}, trace), (Plan{{{0, 1}, {1, 2}, {2, 3}}}));
}

TEST(PlanOfGroups, NamesATensorThatIsInNoGroup) {
  const Trace trace = parse_live_plans(kAnswer)->front().sets.at(0).trace;
  const auto plan = plan_of_groups({{"c"}, {"a"}}, trace);
  ASSERT_FALSE(plan.is_ok());
  EXPECT_NE(plan.status().message().find("'b'"), std::string::npos);
}

}  // namespace
}  // namespace braid
