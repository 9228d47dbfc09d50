// SPDX-License-Identifier: Apache-2.0
#include "bench/collective_report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace braid::bench {
namespace {

Measurement sample() {
  Measurement measurement;
  measurement.bytes = 1 << 20;
  measurement.count = 1 << 18;
  measurement.seconds = {0.003, 0.001, 0.0005};
  measurement.wrong = 0;
  measurement.cpu_seconds = 1.25;
  measurement.checking_cpu_seconds = 0.5;
  return measurement;
}

CollectiveSetup kind_setup(Collective collective) {
  CollectiveSetup setup;
  setup.world_size = 4;
  setup.root = 3;
  for (const CollectiveKind& kind : collective_kinds()) {
    if (kind.collective == collective) setup.kind = kind;
  }
  return setup;
}

const Surroundings kAround{2, 8, "UCX 1.13.1, tcp on eth0"};

DaemonStatus status_of_job(std::vector<DaemonStatus::JobNode> nodes) {
  DaemonStatus status;
  status.node.name = "b";
  status.transport = "UCX";
  status.jobs.resize(2);
  status.jobs[0].name = "other";
  status.jobs[1].name = "bench";
  status.jobs[1].nodes = std::move(nodes);
  const auto flow = [](const char* peer, const char* direction, const char* state) {
    return DaemonStatus::Flow{peer, direction, 0, 0, "eth0", state, 0, 0, 0};
  };
  status.flows = {flow("a", "out", "open"), flow("a", "out", "open"), flow("a", "out", "failed"),
                  flow("a", "in", "open"), flow("c", "out", "open")};
  return status;
}

TEST(Names, OfNcclTestsAndOfBraid) {
  for (const char* name : {"half", "float16"})
    EXPECT_EQ(parse_datatype(name).value(), DataType::Float16);
  EXPECT_STREQ(nccl_name(DataType::Float64), "double");
  for (const char* name : {"avg", "average"}) EXPECT_EQ(parse_op(name).value(), Reduction::Average);
  EXPECT_STREQ(nccl_name(Reduction::Product), "prod");
  EXPECT_EQ(parse_datatype("int8").status().message(),
            "'int8' is none of float, double, half, bfloat16, int32, int64, uint8");
}

TEST(Bandwidth, IsOfTheMean) {
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(sample()), (1 << 20) / 1e9 / 0.0015);
  EXPECT_DOUBLE_EQ(bus_bandwidth(kind_setup(Collective::AllReduce), sample()),
                   algorithm_bandwidth(sample()) * 1.5);
}

TEST(Bandwidth, WithoutATimeThereIsNone) {
  Measurement measurement = sample();
  measurement.seconds = {0};
  EXPECT_EQ(algorithm_bandwidth(measurement), 0);
}

TEST(Table, LooksAsNcclTestsDo) {
  const Course course{{8, 1 << 20}, "minBytes 8 maxBytes 1048576 step: 2(factor)", 3, 20, 1};
  const std::string heading = table_heading(kind_setup(Collective::AllReduce), course, kAround);
  EXPECT_NE(heading.find("# Collective test starting: all_reduce\n"
                         "# ranks 4 nodes 2 minBytes 8 maxBytes 1048576 step: 2(factor) warmup "
                         "iters: 3 iters: 20 validation: 1\n"),
            std::string::npos)
      << heading;
  const std::string columns =
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)";
  EXPECT_TRUE(heading.ends_with(columns)) << heading;
  EXPECT_EQ(
      table_row(kind_setup(Collective::AllReduce), sample()),
      "     1048576        262144     float     sum      -1  1500.00    0.70    1.05       0");
}

TEST(Table, ARootAndNothingChecked) {
  Measurement measurement = sample();
  measurement.wrong.reset();
  measurement.seconds = {12.5};
  EXPECT_EQ(
      table_row(kind_setup(Collective::Broadcast), measurement),
      "     1048576        262144     float    none       3  1.2e+07    0.00    0.00     N/A");
}

TEST(Table, NumbersKeepTheirWidth) {
  Measurement measurement = sample();
  measurement.wrong = 262'144;
  measurement.seconds = {0.123456};
  const std::string row = table_row(kind_setup(Collective::AllReduce), measurement);
  EXPECT_TRUE(row.ends_with("   123456    0.01    0.01  262144")) << row;
  measurement.seconds = {0.0123456};
  EXPECT_NE(table_row(kind_setup(Collective::AllReduce), measurement).find("  12345.6  "),
            std::string::npos);
}

TEST(Table, EndsWithTheAverageAndWhetherAllWasRight) {
  EXPECT_EQ(table_end({1, 2}, 0), "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.5\n#");
  EXPECT_EQ(table_end({0.25}, 3),
            "# Out of bounds values : 3 FAILED\n# Avg bus bandwidth    : 0.25\n#");
}

TEST(CollectiveJson, HasExactlyTheDocumentedFields) {
  const std::string line = to_json(kind_setup(Collective::AllReduce), sample(), kAround);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json.size(), 18u);
  EXPECT_EQ(json["collective"], "all_reduce");
  EXPECT_EQ(json["bytes"], 1 << 20);
  EXPECT_EQ(json["count"], 1 << 18);
  EXPECT_EQ(json["dtype"], "float32");
  EXPECT_EQ(json["reduction"], "sum");
  EXPECT_TRUE(json["root"].is_null());
  EXPECT_EQ(json["ranks"], 4);
  EXPECT_EQ(json["nodes"], 2);
  EXPECT_DOUBLE_EQ(json["mean_seconds"], 0.0015);
  EXPECT_EQ(json["median_seconds"], 0.001);
  EXPECT_EQ(json["p99_seconds"], 0.003);
  EXPECT_EQ(json["busbw_gigabytes_per_second"],
            json["algbw_gigabytes_per_second"].get<double>() * 1.5);
  EXPECT_EQ(json["wrong"], 0);
  EXPECT_EQ(json["cpu_seconds"], 1.25);
  EXPECT_EQ(json["checking_cpu_seconds"], 0.5);
  EXPECT_EQ(json["flows"], 8);
  EXPECT_EQ(json["transport"], "UCX 1.13.1, tcp on eth0");
}

TEST(CollectiveJson, WhatACollectiveHasNotGotIsNull) {
  Measurement measurement = sample();
  measurement.wrong.reset();
  const auto json =
      nlohmann::json::parse(to_json(kind_setup(Collective::Scatter), measurement, kAround));
  EXPECT_TRUE(json["reduction"].is_null());
  EXPECT_TRUE(json["wrong"].is_null());
  EXPECT_EQ(json["root"], 3);
}

TEST(SurroundingsOf, CountsOpenFlowsToTheNextNode) {
  const auto around =
      surroundings_of(status_of_job({{"c", "", {0}}, {"b", "", {1}}, {"a", "", {2}}}), "bench")
          .value();
  EXPECT_EQ(around.nodes, 3u);
  EXPECT_EQ(around.flows, 2u);
  EXPECT_EQ(around.transport, "UCX");
}

TEST(SurroundingsOf, TheRingIsClosed) {
  const auto status = status_of_job({{"c", "", {0}}, {"a", "", {2}}, {"b", "", {1}}});
  EXPECT_EQ(surroundings_of(status, "bench").value().flows, 1u);
}

TEST(SurroundingsOf, OneNodeNeedsNoFlows) {
  const auto around = surroundings_of(status_of_job({{"b", "", {0, 1}}}), "bench").value();
  EXPECT_EQ(around.nodes, 1u);
  EXPECT_EQ(around.flows, 0u);
}

TEST(SurroundingsOf, AnUnknownJobIsAnError) {
  EXPECT_EQ(surroundings_of(status_of_job({}), "lost").status().message(),
            "braidd on node 'b' does not know the job 'lost'");
  EXPECT_FALSE(surroundings_of(status_of_job({{"a", "", {0}}, {"c", "", {1}}}), "bench").is_ok());
}

}  // namespace
}  // namespace braid::bench
