// SPDX-License-Identifier: Apache-2.0
#include "braidctl/sweep_updates.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace braid {
namespace {

// Backward: 4 s and 2 s; forward: 2 s; 64 bytes, or 16 elements, each.
Trace two_layers() {
  Trace trace;
  trace.model = "m";
  trace.tensors = {{"a", 16, DataType::Float32, 2}, {"b", 16, DataType::Float32, 4}};
  trace.forward_seconds = 2;
  return trace;
}

// Among two workers all-reduces of 64 bytes take 2 · 0.5 + 64 · 0.125 s.
SweepOptions with_updates(std::string_view methods) {
  SweepOptions options;
  options.algorithm = "ring";
  options.link = {0.5, 0.125, 0};
  options.workers = {2};
  options.planners = {*find_planner("wfbp")};
  options.updates = parse_update_methods(methods).value();
  return options;
}

std::vector<SweepRow> rows_of(const SweepOptions& options) {
  const auto rows = run_sweep(two_layers(), options);
  EXPECT_TRUE(rows) << rows.status().message();
  return rows ? *rows : std::vector<SweepRow>();
}

TEST(SweepUpdates, HasARowForEachMethod) {
  SweepOptions options = with_updates("od-sgd,sync,diloco:2");
  options.workers = {1, 2};
  options.planners.push_back(*find_planner("single"));
  const std::vector<SweepRow> rows = rows_of(options);
  ASSERT_EQ(rows.size(), 12u);
  EXPECT_EQ(rows[1].update->method.kind, UpdateKind::Sync);
  EXPECT_EQ(rows[1].planner, "wfbp");
  EXPECT_EQ(rows[3].planner, "single");
  EXPECT_EQ(rows[3].update->method.kind, UpdateKind::OdSgd);
  EXPECT_EQ(rows[5].workers, 1u);
  EXPECT_EQ(rows[6].workers, 2u);
}

TEST(SweepUpdates, ComparesWithSync) {
  const std::vector<SweepRow> rows = rows_of(with_updates("od-sgd,diloco:2"));
  // Sync: b from 4 to 13, a until 22, after 2 s of forward. od-sgd: 18 s of communication.
  EXPECT_DOUBLE_EQ(rows[0].iteration_seconds, 18);
  EXPECT_DOUBLE_EQ(rows[0].update->speedup_over_sync, 24.0 / 18);
  EXPECT_DOUBLE_EQ(rows[0].speedup, 2 * 8.0 / 18);
  EXPECT_DOUBLE_EQ(rows[1].iteration_seconds, 8 + 9);
  EXPECT_DOUBLE_EQ(rows[1].update->speedup_over_sync, 24.0 / 17);
}

TEST(SweepUpdates, SyncIsWhatASweepWithoutMethodsSays) {
  SweepOptions options = with_updates("sync");
  options.workers = {1, 2, 4, 8};
  options.planners.assign(planners().begin(), planners().end());
  options.simulator.streams = 2;
  options.simulator.jitter = 0.2;
  const std::vector<SweepRow> rows = rows_of(options);
  options.updates.clear();
  const std::vector<SweepRow> plain = rows_of(options);
  ASSERT_EQ(rows.size(), plain.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].iteration_seconds, plain[i].iteration_seconds);
    EXPECT_EQ(rows[i].speedup, plain[i].speedup);
    EXPECT_EQ(rows[i].groups, plain[i].groups);
    EXPECT_EQ(rows[i].update->speedup_over_sync, 1);
  }
}

TEST(SweepUpdates, CountsBytesAsTheAlgorithmSendsThem) {
  // 128 bytes of gradients; of 2bit, 4 bytes for 16 elements.
  const std::vector<SweepRow> ring = rows_of(with_updates("sync,ssd-sgd:4,cd-sgd:2,diloco:8"));
  EXPECT_DOUBLE_EQ(ring[0].update->wire_bytes, 128) << "2 (n - 1) / n of them";
  EXPECT_DOUBLE_EQ(ring[1].update->wire_bytes, 128 * 5 / 8.0);
  EXPECT_DOUBLE_EQ(ring[2].update->wire_bytes, ((8 + 128) / 2.0 + 128) / 2);
  EXPECT_DOUBLE_EQ(ring[3].update->wire_bytes, 16);
  SweepOptions options = with_updates("sync");
  options.algorithm = "recursive-doubling";
  options.workers = {8};
  EXPECT_DOUBLE_EQ(rows_of(options)[0].update->wire_bytes, 3 * 128);
  options.algorithm = "hierarchical";
  options.algorithm_options = {4, LinkCost{0, 1e-9, 1}};
  // 2 · 3/4 inside the groups of 4, and a quarter's 2 · 1/2 between the two.
  EXPECT_DOUBLE_EQ(rows_of(options)[0].update->wire_bytes, (1.5 + 0.25) * 128);
  options.workers = {1};
  EXPECT_EQ(rows_of(options)[0].update->wire_bytes, 0);
}

TEST(SweepUpdates, CountsAddingAsAPartOfThePush) {
  SweepOptions options = with_updates("ssd-sgd:2");
  // 64 bytes are sent in 8 s, of which a half is the push's, and added in 16 s.
  options.link = {0.5, 0.125, 0.5};
  EXPECT_DOUBLE_EQ(rows_of(options)[0].iteration_seconds, 2 * ((0.5 + 4 + 16) + (1 + 8 + 16)) / 2);
}

TEST(SweepUpdates, WhatCannotBeSimulatedSaysWhy) {
  const auto rows = run_sweep(two_layers(), with_updates("diloco:3,fragments=3"));
  ASSERT_FALSE(rows);
  EXPECT_NE(rows.status().message().find("2 tensors do not make 3 fragments"), std::string::npos);
}

TEST(SweepUpdates, JsonHasWhatTheMethodBrings) {
  const auto json =
      nlohmann::json::parse(sweep_json(rows_of(with_updates("diloco:2,overlap=1,sync"))));
  ASSERT_EQ(json.size(), 2u);
  const auto& row = json[0];
  EXPECT_EQ(row["update"], "diloco:2,overlap=1");
  EXPECT_DOUBLE_EQ(row["iteration_seconds"], (8 + 18) / 2.0);
  EXPECT_DOUBLE_EQ(row["compute_seconds"], 8);
  EXPECT_DOUBLE_EQ(row["communication_seconds"], 9);
  EXPECT_DOUBLE_EQ(row["exposed_seconds"], 5);
  EXPECT_DOUBLE_EQ(row["hidden_share"], 0.5);
  EXPECT_DOUBLE_EQ(row["wire_bytes"], 64);
  EXPECT_DOUBLE_EQ(row["wire_share"], 0.5);
  EXPECT_DOUBLE_EQ(row["speedup_over_sync"], 24.0 / 13);
  EXPECT_EQ(row["groups"], 2);
  EXPECT_EQ(json[1]["speedup_over_sync"], 1);
}

TEST(SweepUpdates, TheTableComparesMethods) {
  const SweepOptions options = with_updates("sync,od-sgd");
  const std::string table = sweep_table(two_layers(), options, rows_of(options));
  for (const char* part : {"means of a step; ", "OF SYNC  OVER SYNC\n", "100 %    1.33\n"})
    EXPECT_NE(table.find(part), std::string::npos) << table;
}

}  // namespace
}  // namespace braid
