// SPDX-License-Identifier: Apache-2.0
#include "braidctl/plan_report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace braid {
namespace {

const LinearCostModel kCost({4, 1});

// The paper's counterexample: its planner merges the two last layers.
Trace counterexample() {
  Trace trace;
  trace.model = "m";
  trace.tensors = {{"first", 1, DataType::Uint8, 4},
                   {"second", 1, DataType::Uint8, 3},
                   {"third", 4, DataType::Uint8, 1}};
  return trace;
}

RenderedPlan report_of(const Plan& plan, uint32_t streams = 1) {
  return RenderedPlan::make(counterexample(), plan, kCost, "mgwfbp", streams);
}

TEST(PlanTable, ShowsGroupsInSendingOrder) {
  EXPECT_EQ(plan_table(report_of({{{0, 2}, {2, 3}}})),
            "m: 3 tensors, 6 B; planner mgwfbp, streams: 1\n"
            "iteration 18.000 s = forward 0.0 us + backward 8.000 s + exposed communication "
            "10.000 s\n"
            "\n"
            "GROUP  TENSORS  FROM   TO      BYTES  PIECES  READY    START     END\n"
            "1      2        third  second  5 B    1       4.000 s  4.000 s   13.000 s\n"
            "2      1        first  first   1 B    1       8.000 s  13.000 s  18.000 s\n");
}

TEST(PlanTable, KeepsControlCharactersFromTheTerminal) {
  Trace trace = counterexample();
  trace.tensors[0].name = "a\x1b[31m";
  const auto report = RenderedPlan::make(trace, {{{0, 3}}}, kCost, "single", 1);
  EXPECT_EQ(plan_table(report).find('\x1b'), std::string::npos);
}

TEST(PlanJson, HoldsWhatToolsNeed) {
  RenderedPlan report = report_of({{{0, 2}, {2, 3}}});
  report.warnings = {"careful"};
  const auto json = nlohmann::json::parse(plan_json(report));
  EXPECT_EQ(json["planner"], "mgwfbp");
  EXPECT_EQ(json["groups"],
            (std::vector<std::vector<std::string>>{{"third", "second"}, {"first"}}));
  EXPECT_EQ(json["iteration_seconds"], 18.0);
  EXPECT_EQ(json["backward_seconds"], 8.0);
  EXPECT_EQ(json["exposed_seconds"], 10.0);
  EXPECT_EQ(json["pieces"], (std::vector<int>{1, 1}));
  EXPECT_EQ(json["model"], "m");
  EXPECT_EQ(json["ready_seconds"], (std::vector<double>{4, 8}));
  ASSERT_EQ(json["units"].size(), 2u);
  const nlohmann::json second = {{"group", 1},
                                 {"piece", 0},
                                 {"bytes", 1},
                                 {"start_seconds", 13.0},
                                 {"startup_seconds", 4.0},
                                 {"end_seconds", 18.0}};
  EXPECT_EQ(json["units"][1], second);
  EXPECT_EQ(json["warnings"], std::vector<std::string>{"careful"});
}

TEST(RenderedPlan, CountsTheBytesOfPieces) {
  EXPECT_EQ(report_of({{{0, 3, 4}}}, 2).message_bytes(), (std::vector<uint64_t>{2, 2, 1, 1}));
}

}  // namespace
}  // namespace braid
