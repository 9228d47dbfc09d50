// SPDX-License-Identifier: Apache-2.0
#include "explain/findings_board.h"

#include <gmock/gmock.h>

namespace braid {
namespace {

Explanation explanation_of(const std::string& job, std::vector<Finding> findings) {
  Explanation explanation;
  explanation.job = job;
  explanation.step_seconds = 0.2;
  explanation.findings = std::move(findings);
  return explanation;
}

TEST(FindingsBoard, TellsWhichShareOfAStepEachCauseCosts) {
  FindingsBoard board;
  board.set(1, explanation_of("train", {{Cause::LateRank, "a sentence", "", 0.05, "b", 3},
                                        {Cause::Compute, "another one", "", 0, "", {}}}));
  const auto entries = board.entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].cause, "compute");
  EXPECT_EQ(entries[0].node + entries[0].rank, "");
  EXPECT_EQ(entries[1].job, "train");
  EXPECT_EQ(entries[1].cause, "late_rank");
  EXPECT_EQ(entries[1].node, "b");
  EXPECT_EQ(entries[1].rank, "3");
  EXPECT_DOUBLE_EQ(entries[1].ratio, 0.25);
}

TEST(FindingsBoard, WhatWasFoundBeforeIsReplaced) {
  FindingsBoard board;
  board.set(1, explanation_of("train", {{Cause::Network, "", "", 0.1, "", {}}}));
  board.set(1, explanation_of("train", {{Cause::Compute, "", "", 0, "", {}}}));
  ASSERT_EQ(board.entries().size(), 1u);
  EXPECT_EQ(board.entries()[0].cause, "compute");
  board.remove(2);
  EXPECT_EQ(board.entries().size(), 1u);
  board.remove(1);
  EXPECT_TRUE(board.entries().empty());
}

TEST(FindingsBoard, JobsOfOneNameHaveTheWorstOfBoth) {
  FindingsBoard board;
  board.set(1, explanation_of("train", {{Cause::Network, "", "", 0.02, "a", {}}}));
  board.set(2, explanation_of("train", {{Cause::Network, "", "", 0.1, "a", {}},
                                        {Cause::Network, "", "", 0.04, "b", {}}}));
  board.set(3, explanation_of("other", {{Cause::Network, "", "", 0.2, "a", {}}}));
  const auto entries = board.entries();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].job, "other");
  EXPECT_DOUBLE_EQ(entries[1].ratio, 0.5);
  EXPECT_EQ(entries[2].node, "b");
}

}  // namespace
}  // namespace braid
