// SPDX-License-Identifier: Apache-2.0
// What a node says of its plans: to the coordinator, and to people.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "planner/live_plan.h"
#include "planner/trace.h"
#include "planning/plan_book.h"
#include "planning/plan_book_testing.h"
#include "planning/plan_testing.h"

namespace braid {
namespace {

using testing::hash_of;
using testing::planned;
using testing::planned_tensors;
using Json = nlohmann::json;

class PlanBookReportTest : public testing::PlanBookTest {
 protected:
  std::vector<PlanReport> reports() const {
    std::vector<PlanReport> parsed;
    for (const auto* message : sent_as<proto::PlanReport>())
      parsed.push_back(parse_plan_report(*message).value());
    return parsed;
  }
};

TEST_F(PlanBookReportTest, ReportsWhenSoManyStepsAreComplete) {
  make_with(2);
  for (uint64_t step = 0; step < 3 * PlannedSet::kStepsPerReport; ++step) {
    submit_step(step, 2);
    EXPECT_EQ(reports().size(), (step + 1) / PlannedSet::kStepsPerReport) << step;
  }
}

TEST_F(PlanBookReportTest, AStepIsCompleteWhenAllLocalRanksHaveSubmittedIt) {
  make({0, 1});
  add(0, kSet, planned_tensors(1));
  for (uint64_t step = 0; step < PlannedSet::kStepsPerReport; ++step) {
    EXPECT_TRUE(reports().empty());
    ASSERT_TRUE(submit(0, step, 0).is_ok());
    EXPECT_TRUE(reports().empty());
    ASSERT_TRUE(submit(0, step, 1).is_ok());
  }
  EXPECT_EQ(reports().size(), 1u);
}

TEST_F(PlanBookReportTest, SaysWhatWasMeasured) {
  make_with(2);
  for (uint64_t step = 0; step < PlannedSet::kStepsPerReport; ++step) {
    submit_step(step, 2);
    const OperationKey key{kJob, hash_of(0), step};
    book_->on_start(key, 800);
    book_->on_go(key, now_ns_ += 5, 0);
    EXPECT_TRUE(book_->on_done(key, now_ns_ += 100, 900).is_ok());
    const OperationKey stranger{kJob, 12345, step};
    book_->on_start(stranger, 9'999);
    book_->on_go(stranger, now_ns_, 0);
    EXPECT_TRUE(book_->on_done(stranger, now_ns_ + 1, 0).is_ok());
    now_ns_ += 1000;
  }
  ASSERT_EQ(reports().size(), 1u);
  const PlanReport report = reports()[0];
  EXPECT_EQ(report.job_key, kJob);
  EXPECT_EQ(report.set, kSet);
  EXPECT_EQ(report.plan, 0u);
  EXPECT_EQ(report.step, PlannedSet::kStepsPerReport - 1);
  EXPECT_EQ(report.tensors, (std::vector<uint64_t>{hash_of(0), hash_of(1)}));
  EXPECT_EQ(report.counts, (std::vector<uint64_t>{100, 100}));
  EXPECT_EQ(report.dtypes, (std::vector<DataType>{DataType::Float32, DataType::Float32}));
  EXPECT_EQ(report.ready_ns, (std::vector<uint64_t>{0, 10}));
  EXPECT_EQ(report.forward_ns, 1010u);
  EXPECT_EQ(report.iteration_ns, 1125u);
  // The last one is still running, and those of the first steps say little.
  ASSERT_EQ(report.operations.size(), PlannedSet::kStepsPerReport - 1 - PlanMeter::kStepsIgnored);
  EXPECT_EQ(report.operations[0].bytes, 900u);
  EXPECT_EQ(report.operations[0].nanoseconds, 100u);
}

TEST_F(PlanBookReportTest, MeasurementsAreReportedOnce) {
  make_with(1);
  const OperationKey key{kJob, hash_of(0), 0};
  for (uint64_t step = 0; step < 2 * PlannedSet::kStepsPerReport; ++step) {
    submit_step(step, 1);
    if (step != PlanMeter::kStepsIgnored) continue;
    book_->on_start(key, 800);
    book_->on_go(key, 10, 0);
    EXPECT_TRUE(book_->on_done(key, 20, 800).is_ok());
  }
  ASSERT_EQ(reports().size(), 2u);
  EXPECT_EQ(reports()[0].operations.size(), 1u);
  EXPECT_TRUE(reports()[1].operations.empty());
}

// A plan begins with its step, not with the verdict: what is measured until then is of the one
// before.
TEST_F(PlanBookReportTest, NamesThePlanThatTheMeasuredStepsFollowed) {
  make_with(2);
  uint64_t step = 0;
  for (; step < 4; ++step) submit_step(step, 2);
  agree(3, 13, {{0}, {1}});
  for (; step < 13; ++step) {
    now_ns_ += 1000;
    submit_step(step, 2);
  }
  for (; step < 24; ++step) submit_step(step, 2);
  ASSERT_EQ(reports().size(), 4u);
  EXPECT_EQ(reports()[1].plan, 0u);
  EXPECT_EQ(reports()[1].iteration_ns, 1020u);
  EXPECT_EQ(reports()[2].plan, 3u);
  EXPECT_EQ(reports()[2].iteration_ns, 20u);  // none of the old plan
  EXPECT_EQ(reports()[3].plan, 3u);
}

TEST_F(PlanBookReportTest, WaitingForAVerdictIsNoPartOfReadiness) {
  make_with(2);
  uint64_t step = 0;
  for (; step < 4; ++step) submit_step(step, 2);
  ASSERT_TRUE(propose(3, 4, {{0}, {1}}).is_ok());
  for (; step < 8; ++step) submit_step(step, 2);
  now_ns_ += 1'000'000;
  EXPECT_TRUE(reports().empty());
  ASSERT_TRUE(decide(3, true).is_ok());
  ASSERT_EQ(reports().size(), 1u);
  EXPECT_EQ(reports()[0].ready_ns, (std::vector<uint64_t>{0, 10}));
}

TEST_F(PlanBookReportTest, SaysWhichSetBeganAStepBefore) {
  make();
  const PlanSet::Tensors all = planned_tensors(3);
  constexpr uint64_t kOther = 6;
  add(0, kSet, {all[0], all[1]});
  add(0, kOther, {all[2]});
  for (uint64_t step = 0; step < PlannedSet::kStepsPerReport; ++step) {
    ASSERT_TRUE(pass(submission(2, step), kOther, now_ns_ += 10).is_ok());
    submit_step(step, 2);
  }
  ASSERT_EQ(reports().size(), 2u);
  EXPECT_EQ(reports()[0].set, kOther);
  EXPECT_EQ(reports()[0].beside.size(), 1u);
  EXPECT_EQ(reports()[1].beside, (std::vector<PlanReport::Beside>{{kOther, 10, 1}}));
  const Json sets = Json::parse(book_->to_json({4, 1}))["sets"];
  EXPECT_EQ(sets[0]["beside"],
            (Json::array({{{"tensor", "t2"}, {"before_seconds", 1e-8}, {"share", 1.0}}})));
  EXPECT_EQ(sets[1]["beside"][0]["tensor"], "t0");
  EXPECT_EQ(sets[1]["beside"][0]["before_seconds"], 2e-8);
  book_->remove(0, kOther);
  EXPECT_EQ(Json::parse(book_->to_json({4, 1}))["sets"][0]["beside"], Json::array());
}

// --- for people and tools ---

TEST_F(PlanBookReportTest, JsonOfAJobWithoutPlans) {
  make();
  EXPECT_EQ(Json::parse(book_->to_json({4, 1})), (Json{{"job", "train"}, {"sets", Json::array()}}));
}

TEST_F(PlanBookReportTest, JsonHoldsThePlan) {
  make_with(3);
  Json set = Json::parse(book_->to_json({4, 1}))["sets"][0];
  EXPECT_EQ(set["plan"], 0);
  EXPECT_EQ(set["planner"], "first");
  EXPECT_TRUE(set["cost"].is_null());
  EXPECT_EQ(set["groups"], (Json{{"t0", "t1", "t2"}}));
  for (uint64_t step = 0; step < 4; ++step) submit_step(step, 3);
  agree(2, 9, {{2}, {0, 1}});
  set = Json::parse(book_->to_json({4, 1}))["sets"][0];
  EXPECT_EQ(set["plan"], 2);
  EXPECT_EQ(set["from_step"], 9);
  EXPECT_EQ(set["planner"], "streams");
  EXPECT_EQ(set["steps_measured"], 4);
  EXPECT_EQ(set["last_step"], 3);
  EXPECT_DOUBLE_EQ(set["predicted_iteration_seconds"], 2e-3);
  EXPECT_DOUBLE_EQ(set["measured_iteration_seconds"], 30e-9);
  EXPECT_EQ(set["cost"], (Json{{"bands", {1}}}));
  EXPECT_EQ(set["groups"], (Json::array({Json::array({"t2"}), Json::array({"t0", "t1"})})));
}

TEST_F(PlanBookReportTest, TheTraceIsOneThatPlannersTake) {
  make();
  ASSERT_TRUE(testing::register_planned(*book_, 0, kSet,
                                        {planned("a", 1), planned("b", 2), planned("c", 3)}));
  for (uint64_t step = 0; step < 8; ++step) {
    for (const auto& [name, after] : {std::pair{"b", 0u}, {"c", 1000u}, {"a", 500u}}) {
      Submission one = submission(0, step);
      one.tensor = testing::test_job().of_name(name);
      ASSERT_TRUE(pass(one, kSet, now_ns_ += after).is_ok());
    }
    now_ns_ += 10'000;
  }
  const Json set = Json::parse(book_->to_json({4, 1}))["sets"][0];
  const Json& trace = set["trace"];
  // The first layer's gradient is ready last.
  EXPECT_EQ(trace["names"], (Json{"a", "c", "b"}));
  EXPECT_EQ(trace["numel"], (Json{1, 3, 2}));
  EXPECT_EQ(trace["dtype"], (Json{"float32", "float32", "float32"}));
  ASSERT_EQ(trace["tb"].size(), 3u);
  EXPECT_DOUBLE_EQ(trace["tb"][0], 500e-9);
  EXPECT_DOUBLE_EQ(trace["tb"][1], 1000e-9);
  EXPECT_DOUBLE_EQ(trace["tb"][2], 0);
  const auto parsed = parse_trace(trace.dump(), "trace");
  EXPECT_TRUE(parsed.is_ok()) << parsed.status().message();
}

// Names and models come from outside; what is said of them is still JSON.
TEST_F(PlanBookReportTest, JsonTakesAnyBytes) {
  make();
  add(0, kSet, {planned("\xff\"\n", 1), planned("t0", 1)});
  PlanProposal strange = proposal(1, 5, {{0}});
  strange.groups.push_back({testing::test_job().of_name("\xff\"\n")});
  strange.cost = "{";
  ASSERT_TRUE(book_->on_proposal(strange).is_ok());
  ASSERT_TRUE(decide(1, true).is_ok());
  const Json parsed = Json::parse(book_->to_json({4, 1}), nullptr, false);
  ASSERT_FALSE(parsed.is_discarded());
  EXPECT_TRUE(parsed["sets"][0]["cost"].is_null());
  EXPECT_EQ(parsed["sets"][0]["groups"][1][0], "\xEF\xBF\xBD\"\n");
}

TEST_F(PlanBookReportTest, JsonIsWhatToolsRead) {
  make();
  add(0, kSet, {planned("last", 10), planned("first", 20), planned("empty", 0)});
  const auto jobs = parse_live_plans("[" + book_->to_json({3, 2}) + "]");
  ASSERT_TRUE(jobs.is_ok()) << jobs.status().message();
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ(jobs->at(0).name, "train");
  ASSERT_EQ(jobs->at(0).sets.size(), 1u);
  const LiveSet& set = jobs->at(0).sets[0];
  EXPECT_EQ(set.planner, "first");
  EXPECT_EQ(set.streams, 3u);
  EXPECT_EQ(set.nodes, 2u);
  EXPECT_EQ(set.io_threads, 2u);
  EXPECT_FALSE(set.is_measured());
  ASSERT_EQ(set.trace.tensors.size(), 2u) << "without the empty one";
  EXPECT_EQ(set.trace.tensors[0].name, "first");
  EXPECT_EQ(set.groups, (std::vector<std::vector<std::string>>{{"last", "first", "empty"}}));
}

}  // namespace
}  // namespace braid
