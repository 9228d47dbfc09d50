// SPDX-License-Identifier: Apache-2.0
#include "braidctl/sweep.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace braid {
namespace {

using Workers = std::vector<uint32_t>;

Workers workers_of(std::string_view text) {
  const auto workers = parse_workers(text);
  EXPECT_TRUE(workers) << workers.status().message();
  return workers ? *workers : Workers{};
}

TEST(ParseWorkers, ReadsLists) {
  EXPECT_EQ(workers_of("1"), Workers{1});
  EXPECT_EQ(workers_of("4,8,24"), (Workers{4, 8, 24}));
}

TEST(ParseWorkers, DoublesWhereDotsStand) {
  EXPECT_EQ(workers_of("4,8,...,64"), (Workers{4, 8, 16, 32, 64}));
  EXPECT_EQ(workers_of("4,8,…,64,100"), (Workers{4, 8, 16, 32, 64, 100}));
  EXPECT_EQ(workers_of("3,…,12"), (Workers{3, 6, 12}));
}

TEST(ParseWorkers, ErrorsSayWhatWouldBeRight) {
  for (const char* text : {"", ",", "0", "-1", "4,", "4,4", "8,4", "...", "...,4", "4,...", "x",
                           "4,...,...,8", "4,...,7", "4,...,4", "65537", "99999999999", "4 ,8"}) {
    const auto workers = parse_workers(text);
    ASSERT_FALSE(workers) << text;
    EXPECT_NE(workers.status().message().find("right is a list such as 4,8,16"), std::string::npos)
        << workers.status().message();
  }
}

Trace trace() {
  Trace trace;
  trace.model = "m";
  trace.tensors = {{"a", 1000, DataType::Uint8, 1}, {"b", 1000, DataType::Uint8, 2}};
  trace.forward_seconds = 1;
  return trace;
}

SweepOptions options() {
  SweepOptions options;
  options.algorithm = "ring";
  options.link = {0.5, 0.001, 0};
  options.workers = {1, 2, 4};
  options.planners = {*find_planner("wfbp"), *find_planner("single")};
  return options;
}

TEST(RunSweep, GoesThroughWorkersAndPlanners) {
  const auto rows = run_sweep(trace(), options()).value();
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[0].speedup, 1) << "one worker does not communicate";
  // Two workers: T(1000) = 1 + 1, T(2000) = 1 + 2. b is sent from 2 to 4, a from 4 to 6.
  EXPECT_EQ(rows[2].planner, "wfbp");
  EXPECT_DOUBLE_EQ(rows[2].iteration_seconds, 7);
  EXPECT_DOUBLE_EQ(rows[2].speedup, 2 * 4.0 / 7);
  EXPECT_EQ(rows[2].groups, 2u);
  EXPECT_DOUBLE_EQ(rows[3].iteration_seconds, 7);
  EXPECT_EQ(rows[3].groups, 1u);
}

TEST(RunSweep, IsTheSameForTheSameSeed) {
  SweepOptions noisy = options();
  noisy.simulator.jitter = 0.3;
  noisy.simulator.straggle = 0.5;
  const std::string once = sweep_json(*run_sweep(trace(), noisy));
  EXPECT_EQ(sweep_json(*run_sweep(trace(), noisy)), once);
  noisy.simulator.seed = 2;
  EXPECT_NE(sweep_json(*run_sweep(trace(), noisy)), once);
}

TEST(SweepJson, IsAList) {
  const auto json = nlohmann::json::parse(sweep_json(*run_sweep(trace(), options())));
  ASSERT_EQ(json.size(), 6u);
  EXPECT_EQ(json[2].size(), 5u) << "nothing of update methods";
  EXPECT_EQ(json[2]["workers"], 2);
  EXPECT_EQ(json[2]["planner"], "wfbp");
  EXPECT_EQ(json[2]["groups"], 2);
  EXPECT_TRUE(json[2].contains("iteration_seconds"));
  EXPECT_TRUE(json[2].contains("speedup"));
}

TEST(SweepTable, SaysWhatSpeedUpIs) {
  const std::string table = sweep_table(trace(), options(), *run_sweep(trace(), options()));
  EXPECT_TRUE(
      table.starts_with("ring, α 0.5 s, β 0.001 s/byte, γ 0 s/byte; streams: 1; one "
                        "worker: 4.000 s\n"
                        "speed-up: workers · iteration of one worker / iteration\n"))
      << table;
  EXPECT_NE(table.find("2        wfbp     7.000 s    1.14      2"), std::string::npos) << table;
}

}  // namespace
}  // namespace braid
