// SPDX-License-Identifier: Apache-2.0
#include "bench/report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace braid::bench {
namespace {

Measurement sample() {
  Measurement measurement;
  measurement.bytes = 25'000'000;
  measurement.dtype = "float32";
  measurement.ranks = 4;
  measurement.seconds = {0.3, 0.1, 0.2};
  measurement.cpu_seconds = 1.25;
  measurement.checking_cpu_seconds = 0.5;
  measurement.nodes = 2;
  measurement.flows = 8;
  measurement.transport = "UCX 1.13.1, tcp on eth0";
  return measurement;
}

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

TEST(Median, IsTheMiddle) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({5, 1, 3}), 3);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

TEST(P99, IsTheNearestRank) {
  EXPECT_EQ(p99({3}), 3);
  EXPECT_EQ(p99({5, 1, 3}), 5);
  std::vector<double> values;
  for (int i = 1; i <= 100; ++i) values.push_back(i);
  EXPECT_EQ(p99(values), 99);
  for (int i = 101; i <= 1000; ++i) values.push_back(i);
  EXPECT_EQ(p99(values), 990);
}

TEST(BusBandwidth, FollowsItsDefinition) {
  EXPECT_DOUBLE_EQ(bus_gbit_per_second(1'000'000'000, 2, 8), 1);
  EXPECT_DOUBLE_EQ(bus_gbit_per_second(1'000'000'000, 4, 8), 1.5);
  EXPECT_EQ(bus_gbit_per_second(1'000'000'000, 1, 8), 0);
  EXPECT_EQ(bus_gbit_per_second(1, 4, 0), 0);
}

TEST(ToJson, HasExactlyTheDocumentedFields) {
  const std::string line = to_json(sample());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json.size(), 11u);
  EXPECT_EQ(json["bytes"], 25'000'000);
  EXPECT_EQ(json["dtype"], "float32");
  EXPECT_EQ(json["ranks"], 4);
  EXPECT_EQ(json["nodes"], 2);
  EXPECT_EQ(json["median_seconds"], 0.2);
  EXPECT_EQ(json["p99_seconds"], 0.3);
  EXPECT_DOUBLE_EQ(json["bus_gbit_per_second"], 1.5);
  EXPECT_EQ(json["cpu_seconds"], 1.25);
  EXPECT_EQ(json["checking_cpu_seconds"], 0.5);
  EXPECT_EQ(json["flows"], 8);
  EXPECT_EQ(json["transport"], "UCX 1.13.1, tcp on eth0");
}

TEST(Describe, CountsOpenFlowsToTheNextNode) {
  Measurement measurement;
  const auto status = status_of_job({{"c", "", {0}}, {"b", "", {1}}, {"a", "", {2}}});
  ASSERT_TRUE(describe(status, "bench", measurement).is_ok());
  EXPECT_EQ(measurement.nodes, 3u);
  EXPECT_EQ(measurement.flows, 2u);
  EXPECT_EQ(measurement.transport, "UCX");
}

TEST(Describe, TheRingIsClosed) {
  Measurement measurement;
  ASSERT_TRUE(describe(status_of_job({{"c", "", {0}}, {"a", "", {2}}, {"b", "", {1}}}), "bench",
                       measurement)
                  .is_ok());
  EXPECT_EQ(measurement.flows, 1u);
}

TEST(Describe, OneNodeNeedsNoFlows) {
  Measurement measurement;
  ASSERT_TRUE(describe(status_of_job({{"b", "", {0, 1}}}), "bench", measurement).is_ok());
  EXPECT_EQ(measurement.nodes, 1u);
  EXPECT_EQ(measurement.flows, 0u);
}

TEST(Describe, AnUnknownJobIsAnError) {
  Measurement measurement;
  EXPECT_EQ(describe(status_of_job({}), "lost", measurement).message(),
            "braidd on node 'b' does not know the job 'lost'");
  EXPECT_FALSE(
      describe(status_of_job({{"a", "", {0}}, {"c", "", {1}}}), "bench", measurement).is_ok());
}

}  // namespace
}  // namespace braid::bench
