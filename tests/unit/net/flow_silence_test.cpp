// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include <gtest/gtest.h>

#include "transport_testing.h"

namespace braid::testing {
namespace {

bool all_arrived(TwoNodes& nodes, uint64_t count) {
  const auto& arrived = nodes.b->sink.arrived;
  return arrived.size() == count && arrived.rbegin()->first == count - 1;
}

enum class Silence : uint8_t { OneEnd, OtherEnd, Both };

class FlowSilence : public ::testing::TestWithParam<Silence> {
 protected:
  static std::vector<int> silent_sockets(const Connection& connection) {
    switch (GetParam()) {
      case Silence::OneEnd:
        return {connection.one_end};
      case Silence::OtherEnd:
        return {connection.other_end};
      case Silence::Both:
        return {connection.one_end, connection.other_end};
    }
    return {};
  }
};

INSTANTIATE_TEST_SUITE_P(Directions, FlowSilence,
                         ::testing::Values(Silence::OneEnd, Silence::OtherEnd, Silence::Both));

TEST_P(FlowSilence, AFlowWhosePacketsAreDroppedIsGivenUpAndOpenedAgain) {
  TwoNodes nodes;
  ASSERT_TRUE(nodes.open());
  for (const int socket : silent_sockets(connections().front())) drop_what_arrives(socket);
  constexpr uint64_t kChunks = 200;
  const auto source = std::make_shared<RecordingSource>(32 << 10);
  nodes.submit(source, 0, kChunks);
  ASSERT_TRUE(nodes.run_until([&] { return source->settled.size() == kChunks; }));
  EXPECT_TRUE(each_exactly(source->settled, kChunks, 1));
  EXPECT_TRUE(source->not_settled.empty());
  EXPECT_TRUE(all_arrived(nodes, kChunks));
  EXPECT_EQ(nodes.b->sink.corrupt, 0u);
  const TransportCounters counters = nodes.a->transport().counters();
  EXPECT_EQ(counters.flows_silent, 1u);
  EXPECT_EQ(counters.flow_failures, 1u);
  ASSERT_TRUE(nodes.run_until([&] { return open_flows(nodes) == 4; }));
  EXPECT_EQ(nodes.flows(*nodes.b).size(), 4u) << "the other half has been replaced, too";
}

TEST(FlowOverdue, ChunksGoOverAnotherFlowAndEachIsSettledOnce) {
  auto options = TwoNodes::default_options();
  options.twice_sent_percent = 100;
  TwoNodes nodes(options);
  ASSERT_TRUE(nodes.open());
  const auto source = std::make_shared<RecordingSource>(4 << 10);
  nodes.submit(source, 0, 100);
  ASSERT_TRUE(nodes.run_until([&] { return source->settled.size() == 100; }));
  const Connection stuck = connections().front();
  drop_what_arrives(stuck.one_end);
  drop_what_arrives(stuck.other_end);
  nodes.submit(source, 100, 20);
  ASSERT_TRUE(nodes.run_until([&] { return source->settled.size() == 120; }));
  EXPECT_GT(nodes.a->transport().counters().chunks_sent_twice, 0u);
  // The first copies come back when their flow is given up: nobody hears of them again.
  ASSERT_TRUE(nodes.run_until([&] { return nodes.a->transport().counters().flows_silent == 1; }));
  ASSERT_TRUE(nodes.run_until([&] { return open_flows(nodes) == 4; }));
  nodes.submit(source, 120, 20);
  ASSERT_TRUE(nodes.run_until([&] { return source->settled.size() == 140; }));
  EXPECT_TRUE(each_exactly(source->settled, 140, 1));
  EXPECT_TRUE(source->not_settled.empty());
  EXPECT_TRUE(all_arrived(nodes, 140));
  EXPECT_EQ(nodes.b->sink.corrupt, 0u);
}

TEST(FlowOverdue, CopiesThatAreStuckAsWellAreSettledOnce) {
  auto options = TwoNodes::default_options();
  options.twice_sent_percent = 100;
  TwoNodes nodes(options);
  ASSERT_TRUE(nodes.open());
  const std::vector<Connection> all = connections();
  for (const Connection& stuck : std::span(all).first(3)) {
    drop_what_arrives(stuck.one_end);
    drop_what_arrives(stuck.other_end);
  }
  const auto source = std::make_shared<RecordingSource>(4 << 10);
  nodes.submit(source, 0, 40);
  ASSERT_TRUE(nodes.run_until([&] { return source->settled.size() == 40; }));
  EXPECT_TRUE(each_exactly(source->settled, 40, 1));
  EXPECT_TRUE(source->not_settled.empty());
  EXPECT_TRUE(all_arrived(nodes, 40));
  EXPECT_EQ(nodes.b->sink.corrupt, 0u);
}

TEST(FlowOverdue, ALinkThatIsClosedSettlesBothCopiesOnce) {
  auto options = TwoNodes::default_options();
  options.twice_sent_percent = 100;
  TwoNodes nodes(options);
  ASSERT_TRUE(nodes.open());
  const Connection stuck = connections().front();
  drop_what_arrives(stuck.one_end);
  drop_what_arrives(stuck.other_end);
  const auto source = std::make_shared<RecordingSource>(4 << 10);
  nodes.submit(source, 0, 20);
  ASSERT_TRUE(
      nodes.run_until([&] { return nodes.a->transport().counters().chunks_sent_twice > 0; }));
  nodes.a->transport().on_peer_lost(nodes.b->id());
  ASSERT_TRUE(
      nodes.run_until([&] { return source->settled.size() + source->not_settled.size() == 20; }));
  for (int i = 0; i < 100; ++i) nodes.step();
  for (const auto& [number, times] : source->settled)
    EXPECT_EQ(times + source->not_settled[number], 1) << number;
}

TEST(FlowSilenceText, SaysWhichFlowAndForHowLong) {
  TwoNodes nodes;
  ASSERT_TRUE(nodes.open());
  for (const auto& connection : connections()) {
    drop_what_arrives(connection.one_end);
    break;
  }
  const auto source = std::make_shared<RecordingSource>(32 << 10);
  nodes.submit(source, 0, 100);
  ASSERT_TRUE(nodes.run_until([&] { return source->settled.size() == 100; }));
  std::string error;
  for (const FlowStatus& flow : nodes.flows(*nodes.a)) {
    if (flow.failures > 0) error = flow.error;
  }
  EXPECT_NE(error.find("to node 'node2'"), std::string::npos) << error;
  EXPECT_NE(error.find("on rail lo"), std::string::npos) << error;
  EXPECT_NE(error.find("nothing acknowledged for "), std::string::npos) << error;
}

TEST(FlowSilenceOfANode, ThatStandsStillForASecondCostsNoFlow) {
  TwoNodes nodes;
  ASSERT_TRUE(nodes.open());
  const auto source = std::make_shared<RecordingSource>(32 << 10);
  nodes.submit(source, 0, 100);
  nodes.b_stands_still = true;
  const SystemClock clock;
  const uint64_t end_ms = clock.now_ms() + 1500;
  ASSERT_TRUE(nodes.run_until([&] { return clock.now_ms() > end_ms; }));
  nodes.b_stands_still = false;
  ASSERT_TRUE(nodes.run_until([&] { return source->settled.size() == 100; }));
  EXPECT_EQ(nodes.a->transport().counters().flow_failures, 0u);
}

TEST(FlowSilenceOfAll, IsOvercomeOnceThePathIsWell) {
  TwoNodes nodes;
  ASSERT_TRUE(nodes.open());
  for (const Connection& connection : connections()) {
    drop_what_arrives(connection.one_end);
    drop_what_arrives(connection.other_end);
  }
  const auto source = std::make_shared<RecordingSource>(32 << 10);
  nodes.submit(source, 0, 100);
  ASSERT_TRUE(nodes.run_until([&] { return source->settled.size() == 100; }));
  EXPECT_TRUE(each_exactly(source->settled, 100, 1));
  EXPECT_TRUE(source->not_settled.empty());
  EXPECT_TRUE(all_arrived(nodes, 100));
}

TEST(FlowSilenceOfALink, ThatIsAskedForIsFoundBeforeAChunkIsSent) {
  TwoNodes nodes;
  ASSERT_TRUE(nodes.open());
  drop_what_arrives(connections().front().other_end);
  ASSERT_TRUE(nodes.open());  // a second job
  ASSERT_TRUE(nodes.run_until(
      [&] { return nodes.a->transport().counters().flows_silent == 1 && open_flows(nodes) == 4; }));
}

}  // namespace
}  // namespace braid::testing
