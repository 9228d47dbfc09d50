// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include "transport_testing.h"

namespace braid::testing {
namespace {

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
  OpenNodes nodes;
  for (const int socket : silent_sockets(connections().front())) drop_what_arrives(socket);
  constexpr uint64_t kChunks = 200;
  const auto source = nodes.submit(32 << 10, kChunks);
  nodes.expect_delivered(*source, kChunks);
  const TransportCounters counters = nodes.a->transport().counters();
  EXPECT_EQ(counters.flows_silent, 1u);
  EXPECT_EQ(counters.flow_failures, 1u);
  const auto flows = nodes.flows(*nodes.a);
  const auto failed =
      std::ranges::find_if(flows, [](const FlowStatus& flow) { return flow.failures > 0; });
  ASSERT_NE(failed, flows.end());
  for (const char* part : {"'node2'", "rail lo", "nothing acknowledged for "})
    EXPECT_NE(failed->error.find(part), std::string::npos) << failed->error;
  ASSERT_TRUE(nodes.run_until([&] { return open_flows(nodes) == 4; }));
  EXPECT_EQ(nodes.flows(*nodes.b).size(), 4u) << "the other half has been replaced, too";
}

TEST(FlowOverdue, ChunksGoOverAnotherFlowAndEachIsSettledOnce) {
  auto options = TwoNodes::default_options();
  options.twice_sent_percent = 100;
  OpenNodes nodes(options);
  const auto source = nodes.submit(4 << 10, 100);
  ASSERT_TRUE(nodes.settles(*source, 100));
  drop_both_ways(connections().front());
  nodes.submit(source, 100, 20);
  ASSERT_TRUE(nodes.settles(*source, 120));
  EXPECT_GT(nodes.a->transport().counters().chunks_sent_twice, 0u);
  // The first copies come back when their flow is given up: nobody hears of them again.
  ASSERT_TRUE(nodes.run_until([&] { return nodes.a->transport().counters().flows_silent == 1; }));
  ASSERT_TRUE(nodes.run_until([&] { return open_flows(nodes) == 4; }));
  nodes.submit(source, 120, 20);
  nodes.expect_delivered(*source, 140);
}

TEST(FlowOverdue, CopiesThatAreStuckAsWellAreSettledOnce) {
  auto options = TwoNodes::default_options();
  options.twice_sent_percent = 100;
  OpenNodes nodes(options);
  const std::vector<Connection> all = connections();
  for (const Connection& stuck : std::span(all).first(3)) drop_both_ways(stuck);
  const auto source = nodes.submit(4 << 10, 40);
  nodes.expect_delivered(*source, 40);
}

TEST(FlowSilenceOfAll, IsOvercomeOnceThePathIsWell) {
  OpenNodes nodes;
  for (const Connection& connection : connections()) drop_both_ways(connection);
  const auto source = nodes.submit(32 << 10, 100);
  nodes.expect_delivered(*source, 100);
}

TEST(FlowSilenceOfALink, ThatIsAskedForIsFoundBeforeAChunkIsSent) {
  OpenNodes nodes;
  drop_what_arrives(connections().front().other_end);
  ASSERT_TRUE(nodes.open());  // a second job
  ASSERT_TRUE(nodes.run_until(
      [&] { return nodes.a->transport().counters().flows_silent == 1 && open_flows(nodes) == 4; }));
}

}  // namespace
}  // namespace braid::testing
