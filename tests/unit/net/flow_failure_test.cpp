// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <sys/socket.h>

#include "transport_testing.h"

namespace braid::testing {
namespace {

TEST(FlowFailure, ChunksOfADeadFlowGoOverTheOthersAndItIsOpenedAgain) {
  OpenNodes nodes;
  ASSERT_EQ(open_flows(nodes), 4u);
  constexpr uint64_t kChunks = 2000;
  const auto source = nodes.submit(32 << 10, kChunks);
  ASSERT_TRUE(nodes.run_until([&] { return source->settled.size() > 100; }));
  const auto sockets = connected_sockets();
  ASSERT_EQ(sockets.size(), 8u) << "four flows, both ends";
  ::shutdown(sockets.front(), SHUT_RDWR);

  nodes.expect_delivered(*source, kChunks);
  ASSERT_TRUE(nodes.run_until([&] {
    return open_flows(nodes) == 4 && nodes.a->transport().counters().flow_failures == 1;
  }));
  const auto flows = nodes.flows(*nodes.a);
  EXPECT_EQ(std::count_if(flows.begin(), flows.end(),
                          [](const FlowStatus& flow) { return flow.failures == 1; }),
            1);
}

TEST(FlowFailure, FlowsAreCountedByTheirState) {
  auto options = TwoNodes::default_options();
  options.open_timeout_ms = 1000;
  TwoNodes nodes(options);
  ASSERT_TRUE(nodes.open_eventually());
  const auto reach = [&](uint64_t open, uint64_t opening, uint64_t failed) {
    return nodes.run_until([&] {
      const TransportCounters now = nodes.a->transport().counters();
      return now.flows_open == open && now.flows_opening == opening && now.flows_failed == failed;
    });
  };
  ASSERT_TRUE(reach(4, 0, 0));
  nodes.b->control.is_silent = true;
  ::shutdown(connected_sockets().front(), SHUT_RDWR);
  EXPECT_TRUE(reach(3, 0, 1)) << "it waits for its next try";
  EXPECT_TRUE(reach(3, 1, 0)) << "and for the other side's answer";
  nodes.b->control.is_silent = false;
  EXPECT_TRUE(reach(4, 0, 0));
  nodes.a->transport().on_peer_lost(nodes.b->id());
  EXPECT_TRUE(reach(0, 0, 0));
}

TEST(FlowFailure, SurvivesTheLossOfEveryFlowAtOnceAgainAndAgain) {
  OpenNodes nodes;
  constexpr uint64_t kChunks = 3000;
  const auto source = nodes.submit(32 << 10, kChunks);
  for (size_t round = 1; round <= 3; ++round) {
    ASSERT_TRUE(nodes.run_until([&] { return source->settled.size() > round * 500; }));
    shut_all_connections();
  }
  nodes.expect_delivered(*source, kChunks);
  EXPECT_GE(nodes.a->transport().counters().flow_failures, 3u);
  EXPECT_GT(nodes.a->transport().counters().chunks_resent, 0u);
}

TEST(FlowFailure, ChunksSentButNotAcknowledgedAreSentAgain) {
  OpenNodes nodes;
  nodes.b_stands_still = true;
  const auto source = nodes.submit(1024, 8);
  ASSERT_TRUE(nodes.run_until([&] { return source->given == 8; }));
  shut_all_connections();
  nodes.b_stands_still = false;
  nodes.expect_delivered(*source, 8);
}

TEST(FlowFailure, AChunkThatWasOutIsSettledEvenIfItsOperationIsOverByThen) {
  OpenNodes nodes;
  nodes.b_stands_still = true;
  const auto source = nodes.submit(1024, 8);
  ASSERT_TRUE(nodes.run_until([&] { return source->given == 8; }));
  source->is_over = true;
  shut_all_connections();
  nodes.b_stands_still = false;
  ASSERT_TRUE(
      nodes.run_until([&] { return source->settled.size() + source->not_settled.size() == 8; }));
}

TEST(FlowFailure, ALinkThatCannotBeOpenedAgainIsLost) {
  auto options = TwoNodes::default_options();
  options.open_timeout_ms = options.lost_timeout_ms = 400;
  TwoNodes nodes(options);
  ASSERT_TRUE(nodes.open_eventually());
  std::string lost;
  Status reason;
  nodes.a->transport().set_link_lost_callback([&](const Peer& peer, const Status& why) {
    lost = peer.name;
    reason = why;
  });
  nodes.b_stands_still = true;
  const auto source = nodes.submit(64 << 10, 50);
  for (int i = 0; i < 100; ++i) nodes.step();
  nodes.b->control.is_silent = true;
  shut_all_connections();
  ASSERT_TRUE(nodes.run_until([&] { return !lost.empty(); }));
  EXPECT_EQ(lost, "node2");
  EXPECT_NE(reason.message().find("node2"), std::string::npos);
  EXPECT_TRUE(each_exactly(source->not_settled, 50, 1));
  EXPECT_EQ(nodes.a->link_to(*nodes.b), nullptr);
  nodes.b_stands_still = false;
  nodes.b->control.is_silent = false;
  EXPECT_TRUE(nodes.open_eventually());
}

TEST(FlowFailure, ALinkWithoutFlowsIsKeptForAsLongAsItsPeerMayBeSilent) {
  auto options = TwoNodes::default_options();
  options.open_timeout_ms = 200;
  options.lost_timeout_ms = 600'000;
  TwoNodes nodes(options);
  ASSERT_TRUE(nodes.open_eventually());
  bool is_lost = false;
  nodes.a->transport().set_link_lost_callback([&](const Peer&, const Status&) { is_lost = true; });
  nodes.b_stands_still = true;
  const auto source = nodes.submit(1024, 8);
  ASSERT_TRUE(nodes.run_until([&] { return source->given == 8; }));
  nodes.b->control.is_silent = true;
  shut_all_connections();
  // Each of the flows was tried in vain three times: longer than a link may take to open.
  const uint64_t before = nodes.a->transport().counters().flow_failures;
  ASSERT_TRUE(nodes.run_until(
      [&] { return nodes.a->transport().counters().flow_failures >= before + 4 * 4; }));
  EXPECT_EQ(open_flows(nodes), 0u);
  nodes.b_stands_still = false;
  nodes.b->control.is_silent = false;
  nodes.expect_delivered(*source, 8);
  EXPECT_FALSE(is_lost);
}

TEST(FlowFailure, AnIncomingFlowThatNobodyUsesIsGivenUp) {
  auto options = TwoNodes::default_options();
  options.open_timeout_ms = 200;
  TwoNodes nodes(options);
  nodes.b->control.is_silent = true;
  ASSERT_FALSE(nodes.open());
  ASSERT_TRUE(nodes.run_until([&] { return nodes.flows(*nodes.b).empty(); }));
}

}  // namespace
}  // namespace braid::testing
