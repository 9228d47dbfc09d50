// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "explain/explained_job.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A job of three ranks that all make inverses for 14 ms of each step, two each.
class ExplainPlacement : public ::testing::Test {
 protected:
  ExplainPlacement() {
    for (uint32_t rank = 0; rank < 3; ++rank) {
      NodeFacts::Work told;
      told.rank = rank;
      told.work = "inverses";
      told.updates = 40;
      told.interval_seconds = 0.1;
      told.planned_seconds = 0.014;
      told.makespan_seconds = 0.015;
      told.wait_seconds = 0.001;
      told.items = {{fmt::format("layer{}.A", 2 * rank), 0, 0.008},
                    {fmt::format("layer{}.G", 2 * rank), 0, 0.006}};
      job_.node(rank).work = {told};
      set_ms(rank, {8, 6});
    }
  }
  NodeFacts::Work& work(size_t rank) { return job_.node(rank).work.at(0); }
  void set_ms(size_t rank, const std::vector<double>& items) {
    work(rank).seconds = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      work(rank).items.at(i).seconds = items[i] / 1000;
      work(rank).seconds += items[i] / 1000;
    }
  }
  // Rank 2 needs 61 ms, and the others wait for it.
  void slow_down() {
    set_ms(2, {35, 26});
    work(0).wait_seconds = work(1).wait_seconds = 0.047;
  }

  ExplainedJob job_;
};

TEST_F(ExplainPlacement, ThatIsBalancedIsNotSpokenOf) {
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Compute));
}

TEST_F(ExplainPlacement, ARankThatTheOthersWaitForIsNamed) {
  slow_down();
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Placement));
  const Finding finding = job_.find(Cause::Placement);
  EXPECT_EQ(finding.text,
            "The inverses of layer4.A and layer4.G take 61 ms on rank 2 on c; most others need 14 "
            "ms for theirs, and wait for up to 47 ms: placement is off by 2.1");
  EXPECT_THAT(finding.advice, HasSubstr("rank 2 was to need 14 ms: look at what else runs on c"));
  EXPECT_EQ(finding.node, "c");
  EXPECT_EQ(finding.rank, 2u);
  EXPECT_NEAR(finding.seconds_per_step, 0.061 - 0.089 / 3, 1e-9);
}

TEST_F(ExplainPlacement, RareUpdatesCostAStepLittle) {
  slow_down();
  for (size_t rank = 0; rank < 3; ++rank) work(rank).interval_seconds = 0.5;
  EXPECT_NEAR(job_.find(Cause::Placement).seconds_per_step, (0.061 - 0.089 / 3) / 5, 1e-9);
  for (size_t rank = 0; rank < 3; ++rank) work(rank).interval_seconds = 1;
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Compute)) << "3 % of a step";
}

TEST_F(ExplainPlacement, AnItemThatTakesAsLongAnywhereIsNoFault) {
  set_ms(2, {60, 1});
  work(2).items[0].least_seconds = 0.058;
  work(0).wait_seconds = 0.047;
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Compute));
  work(2).items[0].least_seconds = 0;  // not known
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Compute));
  work(2).items[0].least_seconds = 0.02;
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Placement));
}

TEST_F(ExplainPlacement, WhereNobodyWaitsNothingIsLost) {
  slow_down();
  work(0).wait_seconds = work(1).wait_seconds = 0.001;
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Compute));
}

TEST_F(ExplainPlacement, WithoutAPlanPlacingIsTheAdvice) {
  slow_down();
  for (size_t rank = 0; rank < 3; ++rank) work(rank).planned_seconds = 0;
  EXPECT_THAT(job_.find(Cause::Placement).advice, HasSubstr("by what they cost"));
}

TEST_F(ExplainPlacement, APlanThatHasGrownOldIsNotTheRanksFault) {
  slow_down();
  work(2).planned_seconds = 0.055;
  EXPECT_THAT(job_.find(Cause::Placement).advice, HasSubstr("costs have changed"));
}

TEST_F(ExplainPlacement, WhatIsWaitedForBeforeIsToldToo) {
  slow_down();
  EXPECT_THAT(job_.find(Cause::Placement).text, Not(HasSubstr("first waits")));
  work(2).input_wait_seconds = 0.012;
  EXPECT_THAT(job_.find(Cause::Placement).text,
              HasSubstr("; rank 2 first waits 12 ms for what it computes them of"));
}

TEST_F(ExplainPlacement, ManyItemsAreCounted) {
  slow_down();
  work(2).items_more = 7;
  EXPECT_THAT(job_.find(Cause::Placement).text, HasSubstr("of layer4.A, layer4.G and 7 more take"));
}

TEST_F(ExplainPlacement, WhatIsOldOrNotWholeIsNotSpokenOf) {
  slow_down();
  work(0).told_ago_ns = 100'000 * kMs;
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Compute));
  work(0).told_ago_ns = 0;
  job_.node(1).work.clear();
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Compute));
}

TEST_F(ExplainPlacement, NumbersThatAreNothingDoNoHarm) {
  for (size_t rank = 0; rank < 3; ++rank) {
    work(rank) = {};
    work(rank).rank = static_cast<uint32_t>(rank);
  }
  EXPECT_THAT(job_.causes(), ElementsAre(Cause::Compute));
}

}  // namespace
}  // namespace braid::testing
