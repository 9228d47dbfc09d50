// SPDX-License-Identifier: Apache-2.0
// What a job may use of a link, and flows that come later.
#include "net/transport.h"
#include "transport_testing.h"

namespace braid::testing {
namespace {

constexpr uint64_t kJob = 0;  // of a RecordingSource's chunks
constexpr uint32_t kChunkBytes = 32 << 10;

TransportOptions options_with(uint32_t flows) {
  auto options = TwoNodes::default_options();
  options.flows_per_link = flows;
  options.window_bytes = 4 * kChunkBytes;
  return options;
}

size_t flows_used(TwoNodes& nodes) {
  size_t used = 0;
  for (const FlowStatus& flow : nodes.flows(*nodes.a)) {
    if (flow.outgoing && flow.bytes_sent > 0) ++used;
  }
  return used;
}

TEST(TransportLimits, FlowsAreAddedWhileChunksAreOnTheirWay) {
  OpenNodes nodes(options_with(1));
  const auto source = nodes.submit(kChunkBytes, 500);
  nodes.a->transport().add_flows(nodes.b->id(), 4);
  nodes.a->transport().add_flows(nodes.b->id(), 2);  // has them
  ASSERT_TRUE(nodes.settles(*source, 500));
  ASSERT_TRUE(nodes.run_until([&] { return nodes.a->transport().counters().flows_open == 4; }));
  EXPECT_EQ(flows_used(nodes), 1u) << "nobody was given more";
  EXPECT_TRUE(each_exactly(nodes.b->sink.arrived, 500, 1));
  EXPECT_EQ(nodes.a->transport().counters().flow_failures, 0u);
  EXPECT_EQ(nodes.a->transport().counters().chunks_resent, 0u);

  nodes.a->transport().links(0).limit(kJob, {4, 0});
  nodes.submit(source, 500, 500);
  ASSERT_TRUE(nodes.settles(*source, 1000));
  EXPECT_EQ(flows_used(nodes), 4u);
  EXPECT_TRUE(each_exactly(nodes.b->sink.arrived, 1000, 1));
}

TEST(TransportLimits, WithoutALinkThereAreNoFlowsToAdd) {
  TwoNodes nodes(options_with(1));
  nodes.a->transport().add_flows(nodes.b->id(), 4);
  nodes.a->transport().add_flows(12345, 4);
  ASSERT_TRUE(nodes.open());
  EXPECT_EQ(open_flows(nodes), 1u);
}

TEST(TransportLimits, AJobKeepsToItsFlowsAndItsWindow) {
  OpenNodes nodes(options_with(4));
  nodes.a->transport().links(0).limit(kJob, {2, kChunkBytes});
  nodes.b_stands_still = true;
  const auto source = nodes.submit(kChunkBytes, 100);
  for (int i = 0; i < 500; ++i) nodes.step();
  EXPECT_EQ(source->given, 2u);  // a chunk fills a window

  nodes.a->transport().links(0).limit(kJob, {3, 2 * kChunkBytes});
  for (int i = 0; i < 500; ++i) nodes.step();
  EXPECT_EQ(source->given, 3u * 2);

  nodes.a->transport().links(0).limit(kJob, {});
  for (int i = 0; i < 500; ++i) nodes.step();
  EXPECT_EQ(source->given, 4u * 4);
  nodes.b_stands_still = false;
  nodes.expect_delivered_once(*source, 100);
}

TEST(TransportLimits, AJobThatHasToWaitHoldsUpNoOther) {
  OpenNodes nodes(options_with(2));
  nodes.a->transport().links(0).limit(kJob, {1, kChunkBytes});
  nodes.b_stands_still = true;
  const auto limited = nodes.submit(kChunkBytes, 20);
  const auto other = std::make_shared<RecordingSource>(kChunkBytes);
  other->job_key = kJob + 1;
  nodes.submit(other, 0, 20);
  for (int i = 0; i < 500; ++i) nodes.step();
  EXPECT_LE(limited->given, 1u);
  EXPECT_GE(other->given, 7u);
  nodes.b_stands_still = false;
  ASSERT_TRUE(nodes.run_until(
      [&] { return limited->settled.size() == 20 && other->settled.size() == 20; }));
}

TEST(TransportLimits, JobsShareALinkByTheirWeights) {
  OpenNodes nodes(options_with(4));
  nodes.a->transport().links(0).limit(kJob, {0, 0, 3});
  nodes.b_stands_still = true;
  const auto heavy = nodes.submit(kChunkBytes, 40);
  const auto light = std::make_shared<RecordingSource>(kChunkBytes);
  light->job_key = kJob + 1;
  nodes.submit(light, 0, 40);
  for (int i = 0; i < 500; ++i) nodes.step();
  EXPECT_EQ(heavy->given, 12u);  // the windows of four flows have room for 16
  EXPECT_EQ(light->given, 4u);
  nodes.b_stands_still = false;
  ASSERT_TRUE(
      nodes.run_until([&] { return heavy->settled.size() == 40 && light->settled.size() == 40; }));
}

}  // namespace
}  // namespace braid::testing
