// SPDX-License-Identifier: Apache-2.0
#include "timeline/loop_timeline.h"

#include <gmock/gmock.h>

namespace braid {
namespace {

using ::testing::ElementsAre;

TimelineEvent event_of(uint64_t job, uint64_t begin, uint64_t end,
                       SpanKind kind = SpanKind::Operation) {
  TimelineEvent event;
  event.job_key = job;
  event.begin_ns = begin;
  event.end_ns = end;
  event.kind = kind;
  return event;
}

std::vector<uint64_t> begins(const std::vector<TimelineEvent>& events) {
  std::vector<uint64_t> begins;
  for (const TimelineEvent& event : events) begins.push_back(event.begin_ns);
  return begins;
}

std::vector<uint64_t> copy_all(const EventRing& ring, const TimelineFilter& wanted) {
  std::vector<TimelineEvent> events;
  const uint64_t end = ring.copy(wanted, 0, ring.written(), SIZE_MAX, events);
  EXPECT_EQ(end, ring.written());
  return begins(events);
}

TEST(EventRing, KeepsTheLatest) {
  EventRing ring(3);
  EXPECT_EQ(ring.capacity(), 4u);
  for (uint64_t i = 0; i < 11; ++i) ring.record(event_of(1, i, i));
  EXPECT_EQ(ring.written(), 11u);
  EXPECT_EQ(ring.overwritten(), 7u);
  EXPECT_THAT(copy_all(ring, {1}), ElementsAre(7, 8, 9, 10));
}

TEST(EventRing, CopiesWhatTouchesTheSpanOfTime) {
  EventRing ring(16);
  ring.record(event_of(1, 0, 9));
  ring.record(event_of(1, 5, 10));
  ring.record(event_of(2, 12, 13));
  ring.record(event_of(1, 15, 40));
  ring.record(event_of(1, 20, 50));
  ring.record(event_of(1, 21, 22));
  EXPECT_THAT(copy_all(ring, {1, 10, 20}), ElementsAre(5, 15, 20));
  EXPECT_THAT(copy_all(ring, {2}), ElementsAre(12));
  EXPECT_THAT(copy_all(ring, {3}), ElementsAre());
}

TEST(EventRing, ACopyInPiecesPassesOverWhatIsOverwrittenMeanwhile) {
  EventRing ring(4);
  for (uint64_t i = 0; i < 4; ++i) ring.record(event_of(1, i, i));
  std::vector<TimelineEvent> events;
  const uint64_t end = ring.written();
  uint64_t at = ring.copy({1}, 0, end, 1, events);
  EXPECT_EQ(at, 1u);
  for (uint64_t i = 4; i < 7; ++i) ring.record(event_of(1, i, i));
  at = ring.copy({1}, at, end, 2, events);
  EXPECT_EQ(at, end);
  EXPECT_THAT(begins(events), ElementsAre(0, 3));
  for (uint64_t i = 7; i < 20; ++i) ring.record(event_of(1, i, i));
  EXPECT_EQ(ring.copy({1}, 1, end, 2, events), end);
  EXPECT_THAT(begins(events), ElementsAre(0, 3));
}

TEST(EventRing, KnowsWhenTheLatestOperationsBegan) {
  EventRing ring(4);
  EXPECT_EQ(ring.begin_of_latest(1, SpanKind::Operation, 2), 0u);
  for (uint64_t i = 1; i < 7; ++i) ring.record(event_of(i % 3 == 0 ? 2 : 1, i * 10, i * 10 + 5));
  EXPECT_EQ(ring.begin_of_latest(1, SpanKind::Operation, 1), 50u);
  EXPECT_EQ(ring.begin_of_latest(1, SpanKind::Operation, 2), 40u);
  EXPECT_EQ(ring.begin_of_latest(1, SpanKind::Operation, 100), 40u) << "older ones are gone";
  EXPECT_EQ(ring.begin_of_latest(1, SpanKind::Submit, 1), 0u);
}

TEST(LoopTimeline, ChunksNeverPushOperationsOut) {
  LoopTimeline timeline(8);
  timeline.record(event_of(1, 1, 2));
  for (uint64_t i = 0; i < 100; ++i) timeline.record(event_of(1, 10 + i, 20 + i, SpanKind::Chunk));
  std::vector<TimelineEvent> events;
  auto cursor = timeline.begin();
  while (!cursor.is_at_end()) timeline.copy({1}, cursor, events);
  EXPECT_THAT(begins(events), ElementsAre(1, 106, 107, 108, 109));
  EXPECT_EQ(timeline.overwritten(), 96u);
}

TEST(LoopTimeline, ACopyLooksAtABoundedNumberAtATime) {
  LoopTimeline timeline(6 * LoopTimeline::kLookedAtMax);
  for (size_t i = 0; i < 2 * LoopTimeline::kLookedAtMax + 1; ++i)
    timeline.record(event_of(1, i, i));
  auto cursor = timeline.begin();
  size_t calls = 0;
  for (std::vector<TimelineEvent> events; !cursor.is_at_end(); ++calls) {
    const size_t before = events.size();
    timeline.copy({1}, cursor, events);
    EXPECT_LE(events.size() - before, LoopTimeline::kLookedAtMax);
  }
  EXPECT_EQ(calls, 3u);
}

}  // namespace
}  // namespace braid
