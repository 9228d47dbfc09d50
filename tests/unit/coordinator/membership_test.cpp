// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership.h"

#include <cstring>

#include <gtest/gtest.h>

#include "base/errors_testing.h"
#include "coordinator/coordinator.h"

namespace braid {
namespace {

using testing::is_error;

MemberNode node(NodeId id, std::vector<uint32_t> ranks) {
  return {{id, "node-" + std::to_string(id), "10.0.0." + std::to_string(id), 7410},
          std::move(ranks)};
}

Result<Membership> parse(const std::vector<MemberNode>& nodes, uint32_t world_size, NodeId self,
                         uint64_t key = 5, const Algorithms& algorithms = {}, uint32_t weight = 1) {
  auto buffer = make_job_start("train", world_size, 3, key, nodes, algorithms, weight);
  return parse_job_start(*proto::GetControlMessage(buffer.GetBufferPointer())->body_as_JobStart(),
                         self);
}

Membership parsed(const std::vector<MemberNode>& nodes, uint32_t world_size, NodeId self,
                  uint64_t key = 5, const Algorithms& algorithms = {}, uint32_t weight = 1) {
  auto membership = parse(nodes, world_size, self, key, algorithms, weight);
  EXPECT_TRUE(membership.is_ok()) << membership.status().message();
  return std::move(membership).value();
}

void expect_protocol_error(const Result<Membership>& membership, std::string_view name) {
  EXPECT_TRUE(is_error(membership, StatusCode::Protocol, {"'train'", name}));
}

TEST(MembershipTest, FindsThisNodesPlace) {
  const Membership membership = parsed({node(7, {0, 3}), node(8, {1}), node(9, {2, 4, 5})}, 6, 8);
  EXPECT_EQ(membership.name, "train");
  EXPECT_EQ(membership.key, 5u);
  EXPECT_EQ(membership.epoch, 3u);
  EXPECT_EQ(membership.local_ranks, (std::vector<uint32_t>{1}));
  const Ring& ring = *membership.ring;
  EXPECT_EQ(ring.nodes, 3u);
  EXPECT_EQ(ring.self, 1u);
  EXPECT_EQ(ring.world_size, 6u);
  EXPECT_EQ(ring.routes->all_reduce.place, 1u);
  EXPECT_EQ(ring.ranks_of_node, (std::vector<uint32_t>{2, 1, 3}));
  // Blocks lie in ring order: node 7's ranks, then node 8's, then node 9's.
  EXPECT_EQ(ring.block_of_rank, (std::vector<uint32_t>{0, 2, 3, 1, 4, 5}));
  ASSERT_EQ(membership.targets().size(), 1u);
  EXPECT_EQ(membership.targets()[0]->peer.address, "10.0.0.9");
}

TEST(MembershipTest, KnowsWhichStepsAreSampled) {
  const std::vector<MemberNode> nodes = {node(7, {0})};
  for (const uint32_t every : {0u, 64u}) {
    auto buffer = make_job_start("train", 1, 3, 5, nodes, {}, 1, {}, every);
    const auto membership = parse_job_start(
        *proto::GetControlMessage(buffer.GetBufferPointer())->body_as_JobStart(), 7);
    ASSERT_TRUE(membership.is_ok()) << membership.status().message();
    EXPECT_EQ(membership->sample_every_steps, every);
  }
}

TEST(MembershipTest, HasTheJobsWeight) {
  const Membership membership = parsed({node(7, {0})}, 1, 7, 5, {}, 42);
  EXPECT_EQ(membership.weight, 42u);
  for (const uint32_t weight : {0u, kJobWeightMax + 1})
    expect_protocol_error(parse({node(7, {0})}, 1, 7, 5, {}, weight), "right are 1 to 100");
}

TEST(MembershipTest, TheRingClosesAtItsEnds) {
  const std::vector<MemberNode> nodes = {node(7, {0}), node(8, {1}), node(9, {2})};
  const Membership first = parsed(nodes, 3, 7);
  EXPECT_EQ(first.neighbours().back()->peer.id, 9u);
  const Membership last = parsed(nodes, 3, 9);
  ASSERT_EQ(last.targets().size(), 1u);
  EXPECT_EQ(last.targets()[0]->peer.id, 7u);
}

std::vector<NodeId> ids(const std::vector<const MemberNode*>& nodes) {
  std::vector<NodeId> found;
  for (const MemberNode* one : nodes) found.push_back(one->peer.id);
  return found;
}

TEST(MembershipTest, DirectOperationsNeedLinksToAllOthers) {
  const std::vector<MemberNode> nodes = {node(7, {0}), node(8, {1}), node(9, {2}), node(5, {3})};
  const Membership around = parsed(nodes, 4, 9);
  EXPECT_EQ(ids(around.targets()), (std::vector<NodeId>{5}));
  const Membership direct = parsed(nodes, 4, 9, 5, {4096});
  EXPECT_EQ(direct.ring->direct_bytes, 4096u);
  EXPECT_EQ(direct.ring->members, (std::vector<NodeId>{7, 8, 9, 5}));
  EXPECT_EQ(ids(direct.targets()), (std::vector<NodeId>{5, 7, 8}));
  const Membership alone = parsed({node(7, {0})}, 1, 7, 5, {4096});
  EXPECT_TRUE(alone.targets().empty() && alone.neighbours().empty());
}

// Place 1 of six: the extra node at place 5 hands it what it has, 0 and 3 are its partners.
TEST(MembershipTest, HalvingNeedsLinksToItsTargets) {
  std::vector<MemberNode> nodes;
  for (uint32_t place = 0; place < 6; ++place) nodes.push_back(node(10 + place, {place}));
  const Membership membership = parsed(nodes, 6, 11, 5, {0, 4096});
  EXPECT_EQ(membership.ring->halving_bytes, 4096u);
  EXPECT_EQ(membership.ring->hierarchical, nullptr);
  EXPECT_EQ(ids(membership.targets()), (std::vector<NodeId>{12, 13, 15, 10}));  // and its successor
  EXPECT_EQ(ids(membership.neighbours()), (std::vector<NodeId>{12, 13, 15, 10}));
  const Membership around = parsed(nodes, 6, 11);
  EXPECT_EQ(around.ring->halving, nullptr);
  EXPECT_EQ(ids(around.neighbours()), (std::vector<NodeId>{12, 10}));
}

TEST(MembershipTest, TwoHopsNeedLinksToAllOthers) {
  std::vector<MemberNode> nodes;
  for (uint32_t place = 0; place < 5; ++place) nodes.push_back(node(10 + place, {place}));
  const Membership membership = parsed(nodes, 5, 11, 5, {0, 0, false, 4096});
  EXPECT_EQ(membership.ring->two_hops_bytes, 4096u);
  EXPECT_EQ(ids(membership.targets()), (std::vector<NodeId>{12, 13, 14, 10}));
  const Membership around = parsed(nodes, 5, 11);
  EXPECT_EQ(around.ring->two_hops, nullptr);
}

std::vector<MemberNode> in_racks(const std::string& racks) {
  std::vector<MemberNode> nodes;
  for (const char rack : racks) {
    nodes.push_back(node(10 + nodes.size(), {static_cast<uint32_t>(nodes.size())}));
    nodes.back().rack = std::string(1, rack);
  }
  return nodes;
}

TEST(MembershipTest, AHierarchyNeedsLinksWithinTheRackAndToTheNextOne) {
  const Membership membership = parsed(in_racks("aaabbbccc"), 9, 14, 5, {0, 0, true});
  EXPECT_EQ(membership.nodes[4].rack, "b");
  ASSERT_NE(membership.ring->hierarchical, nullptr);
  EXPECT_EQ(membership.ring->hierarchical->segments.size(), 9u);
  EXPECT_EQ(ids(membership.targets()), (std::vector<NodeId>{15, 17}));
  EXPECT_EQ(ids(membership.neighbours()), (std::vector<NodeId>{15, 17, 11, 13}));
}

TEST(MembershipTest, RefusesAHierarchyWithoutRacksForIt) {
  for (const char* racks : {"aabbb", "abab", "aaaa"})
    expect_protocol_error(
        parse(in_racks(racks), static_cast<uint32_t>(strlen(racks)), 11, 5, {0, 0, true}),
        "racks of one size");
  EXPECT_TRUE(parse(in_racks("abab"), 4, 11, 5, {0, 0, false}).is_ok());
}

TEST(MembershipTest, RefusesImpossibleNumbers) {
  expect_protocol_error(parse({node(7, {0})}, 0, 7), "world size 0");
  expect_protocol_error(parse({node(7, {0})}, Coordinator::kWorldSizeMax + 1, 7),
                        "world size 65537");
  expect_protocol_error(parse({node(7, {0})}, 1, 7, 0), "makes no sense");
  expect_protocol_error(parse({node(7, {0}), node(8, {2})}, 2, 7), "rank 2 of 2 to node 'node-8'");
}

TEST(MembershipTest, RefusesRanksThatAreNotEachThereOnceAndInOrder) {
  expect_protocol_error(parse({node(7, {0, 1}), node(8, {1})}, 3, 7),
                        "rank 1 of 3 to node 'node-8'");
  expect_protocol_error(parse({node(7, {0, 0})}, 2, 7), "rank 0 of 2 to node 'node-7'");
  expect_protocol_error(parse({node(7, {0}), node(8, {2})}, 3, 7), "does not fit");
  expect_protocol_error(parse({node(7, {0}), node(8, {})}, 1, 7), "node 'node-8' has no rank");
  expect_protocol_error(parse({node(7, {1, 0})}, 2, 7), "out of order");
}

TEST(MembershipTest, RefusesANodeThatIsThereTwice) {
  expect_protocol_error(parse({node(7, {0}), node(7, {1})}, 2, 7),
                        "node 'node-7' is in the ring twice");
}

TEST(MembershipTest, RefusesAJobThatIsNotThisNodes) {
  expect_protocol_error(parse({node(7, {0}), node(8, {1})}, 2, 9), "does not fit");
  expect_protocol_error(parse({}, 1, 9), "does not fit");
}

}  // namespace
}  // namespace braid
