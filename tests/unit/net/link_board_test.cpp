// SPDX-License-Identifier: Apache-2.0
#include "net/link_board.h"

#include "transport_testing.h"

namespace braid::testing {
namespace {

const std::vector<std::string> kRails = {"eth0", "eth1"};

TEST(LinkBoard, HasANodeAsLongAsSomebodyCountsInIt) {
  LinkBoard board(2);
  auto link = board.of("b");
  auto incoming = board.rail_of("b", 2);
  EXPECT_EQ(incoming.get(), &link->rail_of(0)) << "of two rails";
  EXPECT_NE(board.of("c"), link);
  link->rail_of(0).bytes_sent.add(5);
  link.reset();
  ASSERT_EQ(board.all().size(), 1u) << "c is gone: nobody holds it";
  EXPECT_EQ(board.all()[0]->rails()[0].bytes_sent.get(), 5u);
  incoming.reset();
  EXPECT_TRUE(board.all().empty());
  EXPECT_EQ(board.of("b")->rails()[0].bytes_sent.get(), 0u);
}

TEST(LinkBoard, JoinsTheLoopsByNodeAndRail) {
  LinkBoard first(2), second(2);
  const auto b0 = first.of("b"), b1 = second.of("b"), a1 = second.of("a");
  b0->rail_of(3).bytes_sent.add(10);  // flow 3 is on the second rail
  b1->rail_of(1).bytes_sent.add(20);
  b0->rail_of(0).oldest_ns.set(7);
  b1->rail_of(0).oldest_ns.set(5);
  b0->rail_of(1).flows_open.set(2);
  b0->queued_bytes.set(100);
  b1->set_trouble("nothing arrives");
  b1->queued_bytes.set(50);
  b0->show_rates({{1, 30.0}, {0, 9.0}});
  b1->show_rates({{1, 10.0}});
  a1->rail_of(0).chunks_returned.add(1);
  const auto links =
      join_links(std::vector<std::shared_ptr<const LinkNumbers>>{b0, b1, a1}, kRails);
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0].peer, "a");
  EXPECT_EQ(links[0].rails[0].chunks_returned, 1u);
  const LinkStatus& b = links[1];
  EXPECT_EQ(b.peer, "b");
  EXPECT_EQ(b.queued_bytes, 150u);
  EXPECT_EQ(b.trouble, "nothing arrives");
  EXPECT_EQ(links[0].trouble, "");
  EXPECT_EQ(b.rails[0].name, "eth0");
  EXPECT_EQ(b.rails[0].oldest_ns, 7u);
  EXPECT_EQ(b.rails[0].flow_rates, std::vector<double>{9.0});
  EXPECT_FALSE(b.rails[0].is_sent_on());
  EXPECT_EQ(b.rails[1].bytes_sent, 30u);
  EXPECT_EQ(b.rails[1].flow_rates, (std::vector<double>{10.0, 30.0}));
  EXPECT_TRUE(b.rails[1].is_sent_on());
}

// The link of node a, which has no other one.
LinkStatus link_of(TwoNodes& nodes) {
  const auto links = nodes.a->transport().link_statuses();
  return links.empty() ? LinkStatus{} : links.front();
}

TEST(LinkStatuses, CountWhatALinkCarriesAtBothEnds) {
  OpenNodes nodes;
  const auto source = nodes.submit(32 << 10, 100);
  ASSERT_TRUE(nodes.settles(*source, 100));
  const LinkStatus link = link_of(nodes);
  EXPECT_EQ(link.peer, "node2");
  ASSERT_EQ(link.rails.size(), 1u);
  EXPECT_EQ(link.rails[0].name, "lo");
  EXPECT_EQ(link.rails[0].bytes_sent, nodes.a->transport().counters().bytes_sent);
  EXPECT_EQ(link.rails[0].bytes_received, 0u);
  EXPECT_EQ(link.rails[0].flows_open, 4u);
  EXPECT_EQ(link.rails[0].flow_failures, 0u);
  const auto other = nodes.b->transport().link_statuses();
  ASSERT_EQ(other.size(), 1u);
  EXPECT_EQ(other[0].peer, "node1");
  EXPECT_EQ(other[0].rails[0].bytes_received, link.rails[0].bytes_sent);
  EXPECT_FALSE(other[0].rails[0].is_sent_on());
}

TEST(LinkStatuses, TellOfAFlowThatDiedWithItsChunks) {
  OpenNodes nodes;
  nodes.b_stands_still = true;
  const auto source = nodes.submit(1024, 8);
  ASSERT_TRUE(nodes.run_until([&] { return link_of(nodes).rails[0].oldest_ns > 0; }));
  EXPECT_GT(link_of(nodes).rails[0].unacknowledged_bytes, 8u * 1024);
  shut_all_connections();
  nodes.b_stands_still = false;
  ASSERT_TRUE(nodes.run_until([&] {
    const auto link = link_of(nodes);
    return source->settled.size() == 8 && link.rails[0].flows_open == 4;
  }));
  const LinkStatus::Rail rail = link_of(nodes).rails[0];
  EXPECT_GE(rail.flow_failures, 4u);
  EXPECT_EQ(rail.chunks_returned, nodes.a->transport().counters().chunks_resent);
  EXPECT_GE(rail.chunks_returned, 8u);
  ASSERT_TRUE(nodes.run_until([&] {
    const auto now = link_of(nodes).rails[0];
    return now.oldest_ns == 0 && now.unacknowledged_bytes == 0 && now.flow_rates.empty();
  })) << "nothing is on its way";
}

TEST(LinkStatuses, AreGoneWithTheLink) {
  OpenNodes nodes;
  ASSERT_EQ(nodes.a->transport().link_statuses().size(), 1u);
  EXPECT_FALSE(nodes.a->transport().close_idle_links({}, 0));
  EXPECT_TRUE(nodes.run_until([&] {
    return nodes.a->transport().link_statuses().empty() &&
           nodes.b->transport().link_statuses().empty();
  }));
}

}  // namespace
}  // namespace braid::testing
