// SPDX-License-Identifier: Apache-2.0
// What ranks conclude from each other's reports.
#include "levels/level_report.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace braid::client {
namespace {

using testing::HasSubstr;

// A rank for each of these nodes, each with a GPU of its own.
std::vector<LevelReport> reports_on(const std::vector<uint64_t>& nodes) {
  std::vector<LevelReport> reports(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    reports[i].node = nodes[i];
    reports[i].nccl_version = 22809;
    reports[i].gpu[0] = static_cast<uint8_t>(i + 1);
  }
  return reports;
}

LevelChoice chosen(const std::vector<LevelReport>& reports, uint32_t rank = 0) {
  const LevelChoice choice = choose_levels(reports, rank);
  for (uint32_t other = 0; other < reports.size(); ++other) {
    EXPECT_EQ(choose_levels(reports, other).levels, choice.levels);
    EXPECT_EQ(choose_levels(reports, other).reason, choice.reason);
  }
  return choice;
}

TEST(LevelReport, SeveralGpusOnSeveralNodesAreTwoLevels) {
  const LevelChoice choice = chosen(reports_on({7, 7, 9, 9, 8, 8}), 3);
  EXPECT_EQ(choice.levels, 2u);
  EXPECT_EQ(choice.reason, "");
  EXPECT_EQ(choice.place.nodes, 3u);
  EXPECT_EQ(choice.place.node_ranks, 2u);
  EXPECT_EQ(choice.place.node, 1u);
  EXPECT_EQ(choice.place.local_rank, 1u);
}

TEST(LevelReport, WhereRanksDoNotFillNodesThereIsOneLevel) {
  const std::vector<std::pair<std::vector<uint64_t>, std::string>> cases = {
      {{7, 7, 7}, "all ranks are on one node"}, {{7}, "all ranks are on one node"},
      {{7, 8, 9}, "each node has one rank"},    {{7, 7, 8}, "rank 2 does not fit"},
      {{7, 7, 8, 9}, "rank 3 does not fit"},    {{7, 7, 8, 8, 8, 8}, "rank 4 does not fit"},
      {{7, 8, 7, 8}, "rank 2 does not fit"},
  };
  for (const auto& [nodes, reason] : cases) {
    const LevelChoice choice = chosen(reports_on(nodes));
    EXPECT_EQ(choice.levels, 1u);
    EXPECT_THAT(choice.reason, HasSubstr(reason));
  }
}

TEST(LevelReport, WhatOneRankCannotDoIsAReasonForAll) {
  auto reports = reports_on({7, 7, 8, 8});
  reports[2].no_two_levels.set("no NCCL: libnccl.so.2");
  EXPECT_EQ(chosen(reports).levels, 1u);
  EXPECT_EQ(chosen(reports).reason, "rank 2: no NCCL: libnccl.so.2");
  reports[3].no_device.set("no CUDA driver");
  EXPECT_EQ(chosen(reports).levels, 0u);
  EXPECT_EQ(chosen(reports).reason, "rank 3: no CUDA driver");
}

TEST(LevelReport, SharedGpusAndDifferentVersionsOfNcclAreNamed) {
  auto shared = reports_on({7, 7, 8, 8});
  shared[3].gpu = shared[2].gpu;
  EXPECT_EQ(chosen(shared).reason, "ranks 2 and 3 share a GPU");
  auto alike = reports_on({7, 7, 8, 8});
  alike[2].gpu = alike[0].gpu;  // on another node
  EXPECT_EQ(chosen(alike).levels, 2u);
  auto older = reports_on({7, 7, 8, 8});
  older[1].nccl_version = 21803;
  EXPECT_EQ(chosen(older).reason, "rank 1 has NCCL 2.18.3, rank 0 has 2.28.9");
  older[3].version = kLevelVersion + 1;
  EXPECT_EQ(chosen(older).reason, "rank 3 has a libbraid of another version");
}

TEST(LevelReport, TextsAreCutAndPrintable) {
  SaidText text;
  EXPECT_TRUE(text.is_empty());
  text.set("");
  EXPECT_FALSE(text.is_empty());
  text.set(std::string(1000, 'a'));
  EXPECT_EQ(text.text(), std::string(255, 'a'));
  text.set("a\nb\x1b[31m");
  EXPECT_EQ(text.text(), "a?b?[31m");
}

}  // namespace
}  // namespace braid::client
