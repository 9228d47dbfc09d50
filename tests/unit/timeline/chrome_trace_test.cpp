// SPDX-License-Identifier: Apache-2.0
#include "timeline/chrome_trace.h"

#include <map>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "timeline/timelines.h"

namespace braid {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using testing::two_steps;

JobTimeline job_of(const NodeTimeline& node) {
  JobTimeline job;
  job.job = "train";
  job.nodes = {{0, 0, node}};
  return job;
}

// The names of spans by the name of their track.
std::map<std::string, std::vector<std::string>> spans_of(const json& document) {
  std::map<int, std::string> tracks;
  std::map<std::string, std::vector<std::string>> spans;
  for (const json& event : document["traceEvents"]) {
    if (event["name"] == "thread_name") tracks[event["tid"]] = event["args"]["name"];
  }
  for (const json& event : document["traceEvents"]) {
    if (event["ph"] == "X") spans[tracks.at(event["tid"])].push_back(event["name"]);
  }
  return spans;
}

TEST(ChromeTrace, HasATrackForEachThing) {
  const json document = json::parse(to_chrome_trace(job_of(two_steps())));
  const auto spans = spans_of(document);
  EXPECT_THAT(spans.at("rank 0: trainer"),
              ElementsAre("step 7: backward", "step 7: waits for the network",
                          "optimizer, input, forward", "step 8: backward"));
  EXPECT_THAT(spans.at("rank 0: inverses"), ElementsAre("layer0.A", "waits for layer1.A"));
  EXPECT_THAT(spans.at("operations"), ElementsAre("layer1", "waits for other nodes"));
  EXPECT_THAT(spans.at("operations (2)"), ElementsAre("layer0")) << "they overlap";
  EXPECT_THAT(spans.at("unfinished operations"), ElementsAre("layer1"));
  EXPECT_THAT(spans.at("local reduce, I/O loop 0"), ElementsAre("layer1"));
  EXPECT_THAT(spans.at("stream 0, I/O loop 0"), ElementsAre("layer1"));
  EXPECT_THAT(spans.at("units without a stream, I/O loop 0"), ElementsAre("layer0"));
  EXPECT_THAT(spans.at("flow 2 to b on eth0, I/O loop 0"), ElementsAre("layer1"));
  EXPECT_THAT(spans.at("flow 2 to b on eth0, I/O loop 0 (2)"), ElementsAre("layer1"));
}

TEST(ChromeTrace, TimesAreMicroseconds) {
  const json document = json::parse(to_chrome_trace(job_of(two_steps())));
  for (const json& event : document["traceEvents"]) {
    if (event["ph"] != "X" || event["name"] != "step 7: waits for the network") continue;
    EXPECT_DOUBLE_EQ(event["ts"].get<double>(), 1.0);
    EXPECT_DOUBLE_EQ(event["dur"].get<double>(), 3.0);
    EXPECT_EQ(event["args"]["step"], 7);
    return;
  }
  FAIL() << "the span is not there";
}

TEST(ChromeTrace, NodesAreOnOneClock) {
  JobTimeline job = job_of(two_steps());
  NodeTimeline other = two_steps();
  other.node = "b";
  other.origin_ns = 500;  // its clock is behind; its spans began 250 ns earlier
  job.nodes.push_back({static_cast<int64_t>(500) - (1'000'000 - 250), 40, other});
  const json document = json::parse(to_chrome_trace(job));
  std::map<int, double> first;
  for (const json& event : document["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const int process = event["pid"];
    const double ts = event["ts"];
    first[process] = first.contains(process) ? std::min(first[process], ts) : ts;
  }
  EXPECT_DOUBLE_EQ(first.at(1), 0.25);
  EXPECT_DOUBLE_EQ(first.at(2), 0);
  EXPECT_EQ(document["otherData"]["nodes"][1]["clock_error_ns"], 40);
  EXPECT_EQ(document["otherData"]["begin_ns"], 1'000'000 - 250) << "by the clock of the first one";
}

TEST(ChromeTrace, NeighboursOnATrackDoNotOverlap) {
  NodeTimeline node = two_steps();
  node.chunks.clear();
  for (uint64_t i = 0; i < 50; ++i)
    node.chunks.push_back({0, 1, 0, 0, 0, i, 0, i * 10, i * 10 + 35, 1, false, false});
  const json document = json::parse(to_chrome_trace(job_of(node)));
  std::map<int, double> end;
  size_t chunks = 0;
  for (const json& event : document["traceEvents"]) {
    if (event["ph"] != "X" || !event["args"].contains("carries")) continue;
    ++chunks;
    const int track = event["tid"];
    EXPECT_GE(event["ts"].get<double>() + 1e-6, end[track]);
    end[track] = event["ts"].get<double>() + event["dur"].get<double>();
  }
  EXPECT_EQ(chunks, 50u);
  EXPECT_EQ(end.size(), 4u) << "as many as were on their way at once";
}

TEST(ChromeTrace, StepsThatOverlapDoNotCrossEachOther) {
  NodeTimeline node = two_steps();
  node.operations = {{0, 7, 0, 0, 6500, 1, 1, 0}};  // after the next step's first gradient
  const json document = json::parse(to_chrome_trace(job_of(node)));
  for (const json& event : document["traceEvents"]) {
    if (event["ph"] == "X" && event["name"] == "step 7: waits for the network") {
      EXPECT_DOUBLE_EQ(event["ts"].get<double>() + event["dur"].get<double>(), 6.0);
    }
    EXPECT_NE(event["name"], "optimizer, input, forward");
  }
}

TEST(ChromeTrace, HostileNamesAreText) {
  NodeTimeline node = two_steps();
  node.tensors = {"\",\"ph\":\"X", std::string("\x01\xff", 2)};
  node.operations[0].tensors = 4;
  node.names = {"\",\"ph\":\"X", "\"", std::string("\x01\xff", 2)};
  JobTimeline job = job_of(node);
  job.job = "</script>\n\"";
  job.failure = "\"because\"";
  const json document = json::parse(to_chrome_trace(job));
  EXPECT_EQ(document["otherData"]["job"], "</script>\n\"");
  EXPECT_EQ(document["otherData"]["failure"], "\"because\"");
  EXPECT_TRUE(spans_of(document).at("operations")[0].ends_with(" and 3 more"));
}

TEST(ChromeTrace, OfNobodyIsADocument) {
  JobTimeline job;
  job.job = "train";
  job.missing = {"a"};
  const json document = json::parse(to_chrome_trace(job));
  EXPECT_TRUE(document["traceEvents"].empty());
  EXPECT_EQ(document["otherData"]["missing"][0], "a");
}

}  // namespace
}  // namespace braid
