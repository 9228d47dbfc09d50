// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job_algorithms.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "planner/algorithm_sizes.h"

namespace braid {
namespace {

constexpr uint32_t kChunkBytes = 128 << 10;

// For a job of one rank on each of as many nodes as there are letters: their racks.
Algorithms choice(const std::string& racks, const ConfiguredAlgorithms& configured,
                  double round_trip_seconds = 0) {
  std::vector<MemberNode> nodes;
  for (const char rack : racks) {
    MemberNode& node = nodes.emplace_back();
    node.peer.id = nodes.size();
    if (rack != '-') node.rack = rack;
  }
  return job_algorithms(nodes, kChunkBytes, configured, round_trip_seconds);
}

AlgorithmSizes automatic(uint32_t nodes, double round_trip_seconds) {
  const Algorithms chosen =
      choice(std::string(nodes, '-'), {{}, {}, false, {}}, round_trip_seconds);
  return {chosen.direct_bytes, chosen.two_hops_bytes, chosen.halving_bytes};
}

TEST(JobAlgorithmsTest, SizesThatAreCutAreTold) {
  const auto told = [](size_t nodes, uint64_t direct_bytes) {
    ::testing::internal::CaptureStdout();
    warn_of_cut({"train", 0}, nodes, {direct_bytes});
    const std::string output = ::testing::internal::GetCapturedStdout();
    const size_t at = output.find("collective.direct_bytes");
    return at == std::string::npos ? "" : output.substr(at, output.find(':', at + 30) - at);
  };
  EXPECT_EQ(told(2, 4 << 20), "");
  EXPECT_EQ(told(3, 4 << 20), "collective.direct_bytes is 4194304, and 1048576 is used");
  EXPECT_EQ(told(3, 1 << 20), "");
  EXPECT_EQ(told(8, 85'599), "collective.direct_bytes is 85599, and 85598 is used");
  EXPECT_EQ(told(8, 85'598), "");
  EXPECT_EQ(told(1, 4 << 20), "");  // one node sends to nobody
}

TEST(JobAlgorithmsTest, ConfiguredSizesHoldForSomeNumbersOfNodes) {
  const auto chosen = [](size_t nodes) {
    return choice(std::string(nodes, '-'), {4096, 4096, false, 4096});
  };
  for (const auto& [nodes, direct, two_hops, halving] : {std::tuple{2, 4096, 0, 0},
                                                         {3, 4096, 4096, 0},
                                                         {4, 4096, 4096, 4096},
                                                         {8, 4096, 4096, 4096},
                                                         {9, 0, 4096, 4096},
                                                         {32, 0, 4096, 4096},
                                                         {33, 0, 0, 4096}}) {
    const Algorithms algorithms = chosen(static_cast<size_t>(nodes));
    EXPECT_EQ(algorithms.direct_bytes, static_cast<uint64_t>(direct)) << nodes;
    EXPECT_EQ(algorithms.two_hops_bytes, static_cast<uint64_t>(two_hops)) << nodes;
    EXPECT_EQ(algorithms.halving_bytes, static_cast<uint64_t>(halving)) << nodes;
  }
}

TEST(JobAlgorithmsTest, AutoFollowsFromHowFarTheFarthestNodeIsAway) {
  EXPECT_EQ(automatic(4, 0), algorithm_sizes(4, assumed_hop_cost(0)));
  AlgorithmSizes far = algorithm_sizes(4, assumed_hop_cost(5e-3));
  EXPECT_GT(far.two_hops_bytes, 1'000'000u);
  EXPECT_GT(far.direct_bytes, kChunkBytes);
  far.direct_bytes = kChunkBytes;  // it is not cut
  EXPECT_EQ(automatic(4, 5e-3), far);
  EXPECT_EQ(automatic(9, 5e-3).two_hops_bytes, 0u);
  EXPECT_GT(automatic(9, 5e-3).halving_bytes, 0u);
}

TEST(JobAlgorithmsTest, WhatIsConfiguredStaysWhereOthersAreAuto) {
  const Algorithms chosen = choice("----", {{}, 0, false, 4096});
  EXPECT_GT(chosen.direct_bytes, 0u);
  EXPECT_EQ(chosen.halving_bytes, 0u);
  EXPECT_EQ(chosen.two_hops_bytes, 4096u);
}

TEST(JobAlgorithmsTest, RacksThatFitAreAHierarchy) {
  EXPECT_TRUE(choice("aabb", {0, 0, true}).is_hierarchical);
  EXPECT_FALSE(choice("aabb", {0, 0, false}).is_hierarchical);
  for (const char* racks : {"aab", "aaaa", "aab-", "----"})
    EXPECT_FALSE(choice(racks, {0, 0, true}).is_hierarchical) << racks;
}

}  // namespace
}  // namespace braid
