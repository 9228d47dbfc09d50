// SPDX-License-Identifier: Apache-2.0
#include "timeline/node_timeline.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "timeline/timeline_rows.h"
#include "timeline/timelines.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using testing::two_steps;

TEST(NodeTimeline, ComesBackFromItsJson) {
  const NodeTimeline told = two_steps();
  const auto parsed = parse_node_timeline(to_json(told)).value();
  EXPECT_EQ(to_json(parsed), to_json(told));
  EXPECT_EQ(parsed.node, "a");
  EXPECT_EQ(parsed.origin_ns, 1'000'000u);
  ASSERT_EQ(parsed.chunks.size(), 2u);
  EXPECT_TRUE(parsed.chunks[1].is_resent);
  EXPECT_EQ(parsed.units[1].stream, NodeTimeline::kNoStream);
  EXPECT_EQ(parsed.unfinished[1].missing, 1u);
  ASSERT_EQ(parsed.work.size(), 2u);
  EXPECT_TRUE(parsed.work[1].is_wait);
}

TEST(NodeTimeline, AnEmptyOneIsOneToo) {
  const auto parsed = parse_node_timeline(to_json(NodeTimeline{})).value();
  EXPECT_TRUE(parsed.operations.empty());
}

TEST(NodeTimeline, FitsIntoAnyBoundThatIsLargeEnoughForNames) {
  NodeTimeline large = two_steps();
  for (uint64_t i = 0; i < 5000; ++i) {
    large.chunks.push_back({0, 2, 0, 0, 1, i, 0, 600 + i, 1'000'000'000 * i, 2048, false, false});
    large.submits.push_back({0, 1, i, i, true});
  }
  const size_t whole = to_json(large).size();
  for (const size_t bytes : {2000u, 5000u, 100'000u, 200'000u}) {
    NodeTimeline timeline = large;
    drop_to_fit(timeline, bytes);
    EXPECT_LE(to_json(timeline).size(), bytes);
    EXPECT_EQ(timeline.dropped, 5000u + 5000u + 2 + 2 + 2 + 1 + 4 + 2 + 2 - timeline.chunks.size() -
                                    timeline.submits.size() - timeline.operations.size() -
                                    timeline.unfinished.size() - timeline.units.size() -
                                    timeline.reduces.size() - timeline.work.size());
  }
  NodeTimeline timeline = large;
  drop_to_fit(timeline, whole + 2000);
  EXPECT_EQ(timeline.dropped, 0u);
}

TEST(NodeTimeline, ChunksAreDroppedFirstAndTheOldest) {
  NodeTimeline timeline = two_steps();
  for (uint64_t i = 0; i < 100; ++i)
    timeline.chunks.push_back({0, 2, 0, 0, 1, 7, 0, i, 2000 + i, 2048, false, false});
  drop_to_fit(timeline, 3000);
  EXPECT_EQ(timeline.operations.size(), 2u);
  EXPECT_EQ(timeline.units.size(), 2u);
  EXPECT_EQ(timeline.reduces.size(), 1u);
  ASSERT_LT(timeline.chunks.size(), 100u);
  ASSERT_FALSE(timeline.chunks.empty());
  EXPECT_EQ(timeline.chunks.back().end, 2099u);
  EXPECT_EQ(timeline.dropped, 102 - timeline.chunks.size());
}

TEST(NodeTimeline, HostileNamesKeepTheBound) {
  NodeTimeline timeline = two_steps();
  timeline.tensors = {std::string(1000, '\x01'), std::string(1000, '"') + "\xff\xfe"};
  drop_to_fit(timeline, 2000);
  const std::string text = to_json(timeline);
  EXPECT_LE(text.size(), 2000u);
  const auto parsed = parse_node_timeline(text).value();
  EXPECT_TRUE(parsed.tensors[1].ends_with("??")) << "the end of a name is kept";
}

TEST(NodeTimeline, AShortenedNameEndsNoCharacter) {
  NodeTimeline timeline;
  for (int i = 0; i < 100; ++i) {
    std::string name;
    for (int j = 0; j < 50 + i; ++j) name += "\xc3\xa4";
    timeline.tensors.push_back(name + (i % 2 == 0 ? "x" : ""));
  }
  drop_to_fit(timeline, 4000);
  for (const std::string& name : timeline.tensors) {
    EXPECT_LE(name.size(), 20u);
    EXPECT_NO_THROW((void)nlohmann::json(name).dump());
  }
}

TEST(NodeTimeline, ErrorsNameWhatIsWrong) {
  const auto error_of = [](const std::string& text) {
    const auto parsed = parse_node_timeline(text);
    return parsed ? std::string("none") : parsed.status().message();
  };
  EXPECT_THAT(error_of("nonsense"), HasSubstr("this is no timeline"));
  EXPECT_THAT(error_of("{}"), HasSubstr("format 0"));
  EXPECT_THAT(error_of(R"({"format":1,"submits":[[1,2]]})"), HasSubstr("row 0 of submits"));
  EXPECT_THAT(error_of(R"({"format":1,"submits":[[0,0,0,0,2]]})"), HasSubstr("row 0 of submits"));
  EXPECT_THAT(error_of(R"({"format":1,"submits":[[-1,0,0,0,1]]})"), HasSubstr("row 0 of submits"));
  EXPECT_THAT(error_of(R"({"format":1,"node":"x","submits":[[0,0,0,0,1]]})"),
              HasSubstr("node 'x' has spans whose tensor"));
  EXPECT_THAT(error_of(R"({"format":1,"operations":[[0,0,5,4,6,0,1,0]]})"),
              HasSubstr("row 0 of operations"))
      << "it goes before it begins";
  EXPECT_THAT(error_of(R"({"format":1,"node":"x","names":["a"],"work":[[0,0,1,-1,2,3,0]]})"),
              HasSubstr("node 'x' has spans whose"));
  EXPECT_THAT(error_of(R"({"format":1,"work":[[0,0,0,-1,3,2,0]]})"), HasSubstr("row 0 of work"));
  EXPECT_THAT(error_of(R"({"format":1,"chunks":[["a",0,0,0,0,0,0,0,0,0,0,0]]})"),
              HasSubstr("this is no timeline"));
}

TEST(NodeTimeline, JobsAreParsedWithTheirClocks) {
  const std::string text = R"([{"job":"train","first_step":7,"missing":["c"],"nodes":[)"
                           R"({"offset_ns":-5,"error_ns":2,"timeline":)" +
                           to_json(two_steps()) + "}]}]";
  const auto jobs = parse_job_timelines(text).value();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs.front().nodes.front().offset_ns, -5);
  EXPECT_EQ(jobs.front().missing, std::vector<std::string>{"c"});
  EXPECT_TRUE(parse_job_timelines("[]")->empty());
  EXPECT_FALSE(parse_job_timelines(R"([{"nodes":[]}])"));
}

}  // namespace
}  // namespace braid
