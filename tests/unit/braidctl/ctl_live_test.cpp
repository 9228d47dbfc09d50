// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_live.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

LiveSet measured_set() {
  LiveSet set;
  set.plan = 2;
  set.from_step = 40;
  set.planner = "streams";
  set.streams = 4;
  set.steps_measured = 48;
  set.steps_ignored = 2;
  set.predicted_iteration_seconds = 0.5;
  set.measured_iteration_seconds = 0.6;
  set.cost = *FittedCost::create({{1024, 1 << 20, {1e-3, 4e-9}, 9, 0.015}}, {});
  set.trace.tensors = {{"first", 256, DataType::Float32, 0.1},
                       {"second", 512, DataType::Float32, 0.2},
                       {"third", 1, DataType::Float32, 0}};
  set.groups = {{"third", "second"}, {"first"}};
  return set;
}

std::string error_of(const auto& result) {
  EXPECT_FALSE(result.is_ok());
  return result.is_ok() ? "" : result.status().message();
}

TEST(FindLiveJob, ListsTheJobsThatRun) {
  EXPECT_TRUE(find_live_job({{"a", {}}, {"b", {}}}, "b").is_ok());
  EXPECT_EQ(error_of(find_live_job({{"b", {}}, {"a", {}}}, "c")),
            "no job 'c' runs on this node; there are 'a', 'b'");
  EXPECT_EQ(error_of(find_live_job({}, "c")), "no job 'c' runs on this node, nor any other one");
}

TEST(FindLiveSet, AsksWhichOfSeveral) {
  const LiveJob job{"j", {measured_set(), measured_set()}};
  EXPECT_EQ(error_of(find_live_set(job, {"j", std::nullopt})),
            "job 'j' has 2 sets of planned tensors: 1 (3 tensors, 3.0 KiB, from 'first' on), 2 (3 "
            "tensors, 3.0 KiB, from 'first' on); say which one with --set");
  EXPECT_TRUE(find_live_set(job, {"j", 2}).is_ok());
  EXPECT_NE(error_of(find_live_set(job, {"j", 3})).find("--set: job 'j' has no set 3"),
            std::string::npos);
  EXPECT_NE(error_of(find_live_set({"j", {}}, {"j", 1})).find("has no planned tensors"),
            std::string::npos);
}

TEST(CheckMeasured, SaysAfterHowManyStepsThereIsSomething) {
  LiveSet set = measured_set();
  EXPECT_TRUE(check_measured(set, "j").is_ok());
  set.steps_measured = 1;
  EXPECT_EQ(check_measured(set, "j").message(),
            "job 'j': nothing is measured yet: 1 steps are complete, and there is something after "
            "3");
}

TEST(LiveTable, ShowsPlanCostAndGroups) {
  EXPECT_EQ(live_table({"train", {measured_set()}}),
            "job train\n"
            "plan 2 by streams from step 40 on: 3 tensors, 3.0 KiB, in 2 groups\n"
            "iteration: predicted 500.000 ms, measured 600.000 ms (1.20 times the prediction); "
            "steps measured: 48\n"
            "\n"
            "BAND  FROM     TO       STARTUP   PER BYTE  Gbit/s  RESIDUAL\n"
            "1     1.0 KiB  1.0 MiB  1.000 ms  4.000 ns  2.000   1.5 %\n"
            "\n"
            "GROUP  TENSORS  BYTES    FROM   TO\n"
            "1      2        2.0 KiB  third  second\n"
            "2      1        1.0 KiB  first  first\n");
}

TEST(LiveTable, SaysWhichSetsShareTheNetwork) {
  LiveSet set = measured_set();
  set.beside = {{"kfac0/conv.A", 0.012, 0.1}};
  EXPECT_NE(live_table({"train", {set}})
                .find("steps measured: 48\n"
                      "beside the set of 'kfac0/conv.A', which began 12.000 ms before, in 10 % of "
                      "the steps\n\n"),
            std::string::npos);
}

// Two groups, of which the second one has lost its codec.
LiveSet coded_set() {
  LiveSet set = measured_set();
  set.cost.reset();
  set.codecs = {{"2bit:threshold=0.5", true, 2.25, std::nullopt, 0.125}, {"none"}};
  set.plain = {{{"first"}, "int8", 36, "cosine", 0.31234, 0.5}};
  set.sampled_every_steps = 64;
  set.coordinator = "node-a";
  return set;
}

std::string after_iteration(const LiveSet& set) {
  const std::string table = live_table({"train", {set}});
  return table.substr(table.find("GROUP"));
}

TEST(LiveTable, ShowsWhatCodecsLose) {
  LiveSet set = coded_set();
  set.is_coordinator = true;
  EXPECT_EQ(after_iteration(set),
            "GROUP  TENSORS  BYTES    FROM   TO      CODEC               RESIDUAL  COSINE  "
            "SATURATION\n"
            "1      2        2.0 KiB  third  second  2bit:threshold=0.5  2.25      -       0.125\n"
            "2      1        1.0 KiB  first  first   none                -         -       -\n"
            "\n"
            "plain from step 36 on: 1 tensor of int8, 'first' first: cosine 0.3123, limit 0.5\n"
            "what codecs lose is measured every 64 steps\n");
}

TEST(LiveTable, NamesTheNodeThatKnowsWhatCodecsLose) {
  LiveSet set = coded_set();
  EXPECT_NE(after_iteration(set).find(
                "what codecs lose is known to node 'node-a', which coordinates the job\n"),
            std::string::npos);
  set.sampled_every_steps = 0;
  EXPECT_NE(after_iteration(set).find("what codecs lose is not measured\n"), std::string::npos);
}

TEST(LiveTable, DoesWithoutCostAndTimes) {
  LiveSet set = measured_set();
  set.cost.reset();
  set.predicted_iteration_seconds = set.measured_iteration_seconds = 0;
  const std::string table = live_table({"train", {set, measured_set()}});
  EXPECT_NE(table.find("job train, set 1\n"), std::string::npos);
  EXPECT_NE(table.find("predicted nothing, measured nothing yet; steps"), std::string::npos);
}

TEST(Abbreviated, LeavesOutTheMiddle) {
  EXPECT_EQ(abbreviated("short", 10), "short");
  EXPECT_EQ(abbreviated("0123456789", 10), "0123456789");
  EXPECT_EQ(abbreviated("module.layer4.weight", 10), "mod...ight");
  EXPECT_EQ(abbreviated("ÄÖÜäöüÄÖÜäöü", 10), "ÄÖÜ...Üäöü");
}

}  // namespace
}  // namespace braid
