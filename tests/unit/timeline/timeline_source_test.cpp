// SPDX-License-Identifier: Apache-2.0
#include "timeline/timeline_source.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TimelineEvent span(SpanKind kind, uint64_t begin, uint64_t end) {
  TimelineEvent event;
  event.kind = kind;
  event.tensor = 11;
  event.step = 4;
  event.begin_ns = begin;
  event.end_ns = end;
  event.bytes = 100;
  return event;
}

TEST(TimelineSource, BecomesANodesTimeline) {
  TimelineSource source;
  source.head.node = "a";
  source.head.rails = {"eth0", "eth1"};
  source.told_ns = 5000;
  source.name_of_tensor = [](uint64_t hash) {
    return hash == 11 ? std::make_shared<const std::string>("layer") : nullptr;
  };
  source.peers[77] = "b";
  TimelineEvent operation = span(SpanKind::Operation, 1200, 2000);
  operation.go_or_peer = 1500;
  operation.number = 3;
  operation.slot = 9;
  TimelineEvent chunk = span(SpanKind::Chunk, 1600, 1700);
  chunk.go_or_peer = 77;
  chunk.slot = 5;
  chunk.is_resent = true;
  TimelineEvent submit = span(SpanKind::Submit, 1000, 1000);
  submit.number = 6;
  submit.is_planned = true;
  TimelineEvent other = chunk;
  other.tensor = 12;
  other.go_or_peer = 78;
  other.end_ns = 1650;
  source.pieces = {{0, {submit, operation}}, {1, {chunk, other, span(SpanKind::Unit, 1500, 1900)}}};
  source.unfinished = {span(SpanKind::Operation, 4000, 0)};

  const NodeTimeline timeline = make_node_timeline(std::move(source));
  EXPECT_EQ(timeline.origin_ns, 1000u);
  EXPECT_EQ(timeline.told, 4000u);
  ASSERT_EQ(timeline.submits.size(), 1u);
  EXPECT_EQ(timeline.submits[0].rank, 6u);
  EXPECT_EQ(timeline.tensors[timeline.submits[0].tensor], "layer");
  ASSERT_EQ(timeline.operations.size(), 1u);
  EXPECT_EQ(timeline.operations[0].begin, 200u);
  EXPECT_EQ(timeline.operations[0].go, 500u);
  EXPECT_EQ(timeline.operations[0].end, 1000u);
  EXPECT_EQ(timeline.operations[0].tensors, 3u);
  EXPECT_EQ(timeline.operations[0].plan, 9);
  ASSERT_EQ(timeline.chunks.size(), 2u);
  EXPECT_EQ(timeline.chunks[0].end, 650u) << "in the order of their ends";
  EXPECT_EQ(timeline.tensors[timeline.chunks[0].tensor], "tensor 000000000000000c");
  EXPECT_EQ(timeline.peers[timeline.chunks[0].peer], "node 000000000000004e");
  EXPECT_EQ(timeline.peers[timeline.chunks[1].peer], "b");
  EXPECT_EQ(timeline.rails[timeline.chunks[1].rail], "eth1") << "flow 5";
  EXPECT_TRUE(timeline.chunks[1].is_resent);
  ASSERT_EQ(timeline.units.size(), 1u);
  EXPECT_EQ(timeline.units[0].io_loop, 1u);
  EXPECT_EQ(timeline.units[0].stream, NodeTimeline::kNoStream);
  ASSERT_EQ(timeline.unfinished.size(), 1u);
  EXPECT_EQ(timeline.unfinished[0].go, NodeTimeline::Unfinished::kNotGone);
  EXPECT_TRUE(parse_node_timeline(to_json(timeline)));
}

TEST(TimelineSource, PlacedWorkInTheTimeThatIsWantedIsInIt) {
  WorkSpans told;
  told.rank = 3;
  told.work = "inverses";
  told.items = {{"layer0.A", 3}, {"layer1.A", 1}, {"layer2.A", WorkSpans::kEverybody}};
  told.spans = {
      {100, 199, 0, false}, {250, 300, 0, false}, {300, 350, 1, true}, {180, 220, 2, false}};
  TimelineSource source;
  source.told_ns = 1000;
  source.wanted.begin_ns = 200;
  source.wanted.end_ns = 320;
  source.work = {std::make_shared<const WorkSpans>(told)};
  const NodeTimeline timeline = make_node_timeline(std::move(source));
  EXPECT_EQ(timeline.origin_ns, 180u);
  ASSERT_EQ(timeline.work.size(), 3u) << "all but the first one";
  EXPECT_EQ(timeline.names[timeline.work[0].item], "layer2.A") << "in the order of their ends";
  EXPECT_EQ(timeline.work[0].owner, NodeTimeline::kEverybody);
  EXPECT_EQ(timeline.work[1].begin, 70u);
  EXPECT_EQ(timeline.names[timeline.work[1].work], "inverses");
  EXPECT_EQ(timeline.work[2].owner, 1);
  EXPECT_TRUE(timeline.work[2].is_wait);
  EXPECT_TRUE(parse_node_timeline(to_json(timeline)));
}

TEST(TimelineSource, OfNothingIsATimeline) {
  TimelineSource source;
  source.told_ns = 10;
  const NodeTimeline timeline = make_node_timeline(std::move(source));
  EXPECT_EQ(timeline.origin_ns, 10u);
  EXPECT_TRUE(parse_node_timeline(to_json(timeline)));
}

}  // namespace
}  // namespace braid
