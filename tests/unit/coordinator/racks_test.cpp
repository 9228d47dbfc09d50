// SPDX-License-Identifier: Apache-2.0
#include "coordinator/racks.h"

#include <string>

#include <gtest/gtest.h>

namespace braid {
namespace {

// One node for each letter, in the rack of that name; '-' is in none.
std::vector<MemberNode> nodes_in_racks(const std::string& letters) {
  std::vector<MemberNode> nodes;
  for (const char letter : letters) {
    const auto number = static_cast<uint32_t>(nodes.size());
    nodes.push_back({{number, "n", "a", 1}, {number}, letter == '-' ? "" : std::string(1, letter)});
  }
  return nodes;
}

std::vector<uint32_t> ordered(const std::string& letters) {
  std::vector<MemberNode> nodes = nodes_in_racks(letters);
  order_by_racks(nodes);
  std::vector<uint32_t> ranks;
  for (const MemberNode& node : nodes) ranks.push_back(node.ranks.front());
  return ranks;
}

TEST(Racks, BringTheirNodesTogetherInTheOrderInWhichTheyCome) {
  EXPECT_EQ(ordered("babac"), (std::vector<uint32_t>{0, 2, 1, 3, 4}));
  EXPECT_EQ(ordered("zzyy"), (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(ordered("aba-"), (std::vector<uint32_t>{0, 1, 2, 3})) << "one is not known";
}

TEST(Racks, AreAHierarchyWhereTheyHaveOneSize) {
  EXPECT_EQ(nodes_per_rack(nodes_in_racks("aabb")), 2u);
  EXPECT_EQ(nodes_per_rack(nodes_in_racks("aaabbbccc")), 3u);
  for (const char* letters : {"", "a", "aa", "ab", "aab", "aabbb", "aabbc", "aabb--", "----"})
    EXPECT_EQ(nodes_per_rack(nodes_in_racks(letters)), std::nullopt) << letters;
  EXPECT_EQ(nodes_per_rack(nodes_in_racks("aabbaa")), std::nullopt) << "not in one piece";
}

}  // namespace
}  // namespace braid
