// SPDX-License-Identifier: Apache-2.0
#include "explain/pending.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace braid {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Ranks = std::vector<uint32_t>;

NodeFacts::Pending waits(std::string tensor, uint64_t seconds, Ranks submitted, uint64_t step = 7) {
  return {std::move(tensor),       step, "all-reduce",        1, 4'000'000,
          seconds * 1'000'000'000, true, std::move(submitted)};
}

// Ranks 0 and 1 on a, 2 and 3 on b.
JobFacts job_of_two() {
  JobFacts facts;
  facts.job = "train";
  for (const std::string name : {"a", "b"}) {
    NodeFacts node;
    node.node = name;
    node.world_size = 4;
    node.ranks = name == "a" ? Ranks{0, 1} : Ranks{2, 3};
    facts.nodes.push_back(std::move(node));
  }
  return facts;
}

Ranks missing_of(const PendingOperation& operation) {
  Ranks ranks;
  for (const auto& one : operation.missing) ranks.push_back(one.rank);
  return ranks;
}

void add(NodeFacts& node, NodeFacts::Pending pending) {
  node.pending.push_back(std::move(pending));
  node.operations_pending = std::max<uint64_t>(node.operations_pending, node.pending.size());
}

TEST(Pending, NamesWhoHasNotSubmitted) {
  JobFacts facts = job_of_two();
  add(facts.nodes[0], waits("w", 12, {0, 1}));
  add(facts.nodes[1], waits("w", 3, {2}));
  const auto operations = pending_operations(facts);
  ASSERT_EQ(operations.size(), 1u);
  const PendingOperation& one = operations[0];
  EXPECT_EQ(one.since_ns, 12'000'000'000u) << "on the node that has it for the longest time";
  EXPECT_THAT(one.submitted, ElementsAre(0, 1, 2));
  EXPECT_THAT(missing_of(one), ElementsAre(3));
  EXPECT_EQ(one.missing[0].node, "b");
  EXPECT_THAT(one.unknown, IsEmpty());
  EXPECT_EQ(describe_operation(one), "all-reduce of 'w', step 7 (3.8 MiB)");
  EXPECT_EQ(describe_missing_ranks(one.missing), "rank 3 on b has");
}

TEST(Pending, ANodeThatTellsNothingOfItHasNotSubmittedIt) {
  JobFacts facts = job_of_two();
  add(facts.nodes[0], waits("w", 12, {0, 1}));
  EXPECT_THAT(missing_of(pending_operations(facts)[0]), ElementsAre(2, 3));
}

TEST(Pending, ANodeOnWhichItHasEndedHasSubmittedIt) {
  JobFacts facts = job_of_two();
  add(facts.nodes[0], waits("w", 12, {0, 1}));
  facts.nodes[1].ended = {{"w", 6}, {"w", 7}};
  const auto operations = pending_operations(facts);
  EXPECT_THAT(missing_of(operations[0]), IsEmpty());
  EXPECT_THAT(operations[0].submitted, ElementsAre(0, 1, 2, 3));
  facts.nodes[1].ended = {{"w", 6}, {"v", 7}};
  EXPECT_THAT(missing_of(pending_operations(facts)[0]), ElementsAre(2, 3)) << "another one";
}

TEST(Pending, WhatIsNotToldIsNotKnown) {
  JobFacts facts = job_of_two();
  add(facts.nodes[0], waits("w", 12, {0, 1}));
  facts.nodes[1].operations_pending = 65;
  auto operations = pending_operations(facts);
  EXPECT_THAT(operations[0].unknown, ElementsAre(2, 3)) << "b has more than it tells of";
  facts.nodes[1].operations_pending = 0;
  facts.nodes[1].held = {3};
  operations = pending_operations(facts);
  EXPECT_THAT(operations[0].unknown, ElementsAre(3)) << "its submissions wait for a plan";
  EXPECT_THAT(missing_of(operations[0]), ElementsAre(2));
  facts.nodes.pop_back();
  facts.missing = {"b"};
  operations = pending_operations(facts);
  EXPECT_THAT(operations[0].unknown, ElementsAre(2, 3)) << "b has not answered";
  EXPECT_THAT(operations[0].missing, IsEmpty());
}

TEST(Pending, TheLongestComesFirst) {
  JobFacts facts = job_of_two();
  add(facts.nodes[0], waits("young", 1, {0}));
  add(facts.nodes[0], waits("old", 30, {0}));
  add(facts.nodes[1], waits("middle", 10, {2}));
  add(facts.nodes[1], waits("old", 2, {2}, 8));
  std::vector<std::string> order;
  for (const auto& one : pending_operations(facts))
    order.push_back(one.tensor + ' ' + std::to_string(one.step));
  EXPECT_THAT(order, ElementsAre("old 7", "middle 7", "old 8", "young 7"));
}

TEST(Pending, NamesAFewOfManyRanks) {
  std::vector<PendingOperation::Rank> missing;
  for (uint32_t rank = 0; rank < 2; ++rank) missing.push_back({rank, "a"});
  EXPECT_EQ(describe_missing_ranks(missing), "ranks 0 on a and 1 on a have");
  for (uint32_t rank = 2; rank < 10; ++rank) missing.push_back({rank, "b"});
  EXPECT_EQ(describe_missing_ranks(missing),
            "ranks 0 on a, 1 on a, 2 on b, 3 on b, 4 on b, 5 on b, 6 on b, 7 on b and 2 more have");
}

TEST(Pending, IsJsonWhateverNamesAre) {
  JobFacts facts = job_of_two();
  facts.job = "\xff\"";
  NodeFacts::Pending hostile = waits("\xfe\n", 1, {0});
  hostile.tensors = 4;
  add(facts.nodes[0], hostile);
  const auto operations = pending_operations(facts);
  const auto json = nlohmann::json::parse(pending_json(facts, operations));
  EXPECT_EQ(json["world_size"], 4);
  EXPECT_EQ(json["operations_pending"], 1);
  EXPECT_EQ(json["operations"][0]["missing"][0], (nlohmann::json{{"rank", 1}, {"node", "a"}}));
  EXPECT_EQ(describe_operation(operations[0]),
            "all-reduce of '\xfe\n' and 3 more, step 7 (3.8 MiB)");
}

TEST(Pending, AnImpossibleWorldSizeIsNoTrouble) {
  JobFacts facts = job_of_two();
  facts.nodes[0].world_size = UINT32_MAX;
  add(facts.nodes[0], waits("w", 1, {0}));
  EXPECT_LE(pending_operations(facts)[0].unknown.size(), 65'536u);
}

TEST(Pending, EndsOfMessagesNameBothRanks) {
  JobFacts facts = job_of_two();
  facts.nodes[0].messages = {{true, 0, 3, 7, 300, 2'000'000'000, false},
                             {false, 1, NodeFacts::Message::kAnyRank, 8, 64, 1'000'000'000, false}};
  facts.nodes[1].messages = {{false, 3, 9, 7, 64, 5'000'000'000, true}};
  facts.nodes[0].messages_pending = 2;
  facts.nodes[1].messages_pending = 1;
  const auto messages = waiting_messages(facts);
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(describe_message(messages[0]), "receive of 64 B at rank 3 on b from rank 9, tag 7")
      << "of a node that has not answered";
  EXPECT_EQ(describe_message(messages[1]), "send of 300 B from rank 0 on a to rank 3 on b, tag 7");
  EXPECT_EQ(describe_message(messages[2]), "receive of 64 B at rank 1 on a from any rank, tag 8");
  const auto json = nlohmann::json::parse(pending_json(facts, {}));
  EXPECT_EQ(json["messages_pending"], 3);
  EXPECT_EQ(json["messages"][1]["peer"], 3);
  EXPECT_EQ(json["messages"][1]["peer_node"], "b");
  EXPECT_EQ(json["messages"][2]["peer"], -1);
}

}  // namespace
}  // namespace braid
