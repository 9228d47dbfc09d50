// SPDX-License-Identifier: Apache-2.0
#include "net/flow_choice.h"

#include <gtest/gtest.h>

#include "net/slow_flows.h"

namespace braid {
namespace {

constexpr uint64_t kChunk = 128 << 10;
constexpr double kMegabyte = 1e6;

FlowLoad flow(double megabytes_per_second, uint64_t unacknowledged = 0, bool has_room = true) {
  return {true, has_room, unacknowledged, megabytes_per_second * kMegabyte};
}

size_t choose(std::vector<FlowLoad> flows, uint64_t queued = kChunk, size_t first = 0) {
  even_out(flows);
  return choose_flow(flows, kChunk, queued, first);
}

TEST(FlowChoice, SpreadsABurstOverFlowsThatAreNotKnown) {
  EXPECT_EQ(choose({flow(0, kChunk), flow(0), flow(0)}), 1u);
  EXPECT_EQ(choose({flow(0), flow(0), flow(0)}, kChunk, 2), 2u);
  EXPECT_EQ(choose({flow(0, 2 * kChunk), flow(0, kChunk)}), 1u) << "never waits for an equal one";
}

TEST(FlowChoice, TakesSmallDifferencesForChance) {
  EXPECT_EQ(choose({flow(40, kChunk), flow(30), flow(40, kChunk)}), 1u);
  EXPECT_EQ(choose({flow(60, kChunk), flow(40), flow(62, kChunk)}), 1u);
}

TEST(FlowChoice, GivesAFasterFlowMore) {
  EXPECT_EQ(choose({flow(100, kChunk), flow(20), flow(30, 8 * kChunk)}), 0u);
}

TEST(FlowChoice, BelievesNoFlowToBeMuchFasterThanMost) {
  EXPECT_EQ(choose({flow(10'000, 4 * kChunk), flow(10), flow(10, kChunk)}), 1u);
}

TEST(FlowChoice, NoFlowWhereNoneHasRoomOrIsOpen) {
  EXPECT_EQ(choose({flow(10, 0, false), FlowLoad{}}), kNoFlow);
  EXPECT_EQ(choose({}), kNoFlow);
}

TEST(FlowChoice, ASlowFlowHelpsWhileMuchIsQueued) {
  const std::vector<FlowLoad> flows{flow(60, 4 * kChunk, false), flow(60, 4 * kChunk, false),
                                    flow(5)};
  EXPECT_EQ(choose(flows, 100 * kChunk), 2u);
}

TEST(FlowChoice, ASlowFlowGetsNothingThatItWouldBringLast) {
  const std::vector<FlowLoad> flows{flow(60, 4 * kChunk, false), flow(60, 4 * kChunk, false),
                                    flow(5)};
  EXPECT_EQ(choose(flows, 2 * kChunk), kNoFlow) << "the others have room again before";
  EXPECT_EQ(choose({flow(60), flow(60), flow(5)}, kChunk), 0u);
  EXPECT_EQ(choose({FlowLoad{}, flow(60), flow(5)}, kChunk), 1u);
}

TEST(FlowChoice, WithoutAnyOtherASlowFlowTakesAll) {
  EXPECT_EQ(choose({FlowLoad{}, flow(1, 3 * kChunk)}, kChunk), 1u);
}

// Who waits is fetched: some other flow has chunks on their way whose acknowledgement comes.
TEST(FlowChoice, NeverWaitsForNothing) {
  for (const double rate : {0.0, 0.1, 5.0, 60.0, 900.0}) {
    for (const double other : {0.0, 0.1, 5.0, 60.0, 900.0}) {
      EXPECT_NE(choose({flow(rate), flow(other), flow(60)}), kNoFlow) << rate << ", " << other;
    }
  }
}

class SlowFlowsTest : public ::testing::Test {
 protected:
  size_t look(const std::vector<FlowLoad>& flows) {
    now_ns_ += SlowFlows::kLookEveryNs;
    EXPECT_TRUE(slow_.is_due(now_ns_));
    const size_t found = slow_.look(flows, now_ns_);
    EXPECT_FALSE(slow_.is_due(now_ns_ + 1));
    return found;
  }
  // Looks until a flow is to be replaced; how many looks that took.
  uint32_t looks_until(size_t expected, const std::vector<FlowLoad>& flows) {
    for (uint32_t looks = 1; looks <= 2000; ++looks) {
      const size_t found = look(flows);
      if (found == kNoFlow) continue;
      EXPECT_EQ(found, expected);
      return looks;
    }
    ADD_FAILURE() << "no flow was replaced";
    return 0;
  }

  SlowFlows slow_{50};
  uint64_t now_ns_ = 1;
};

TEST_F(SlowFlowsTest, ReplacesWhatStaysSlow) {
  EXPECT_EQ(looks_until(2, {flow(60), flow(60), flow(10), flow(60)}), SlowFlows::kSlowLooks);
}

TEST_F(SlowFlowsTest, OneGoodLookForgetsTheBadOnes) {
  for (int round = 0; round < 10; ++round) {
    for (uint32_t looks = 1; looks < SlowFlows::kSlowLooks; ++looks)
      EXPECT_EQ(look({flow(60), flow(60), flow(10), flow(60)}), kNoFlow);
    EXPECT_EQ(look({flow(60), flow(60), flow(50), flow(60)}), kNoFlow);
  }
}

TEST_F(SlowFlowsTest, NothingIsSlowThatIsNotKnownOrAsFastAsMost) {
  for (int looks = 0; looks < 100; ++looks) {
    EXPECT_EQ(look({flow(0), FlowLoad{}, flow(10), flow(19)}), kNoFlow);
    EXPECT_EQ(look({flow(0), flow(0), flow(0), flow(0)}), kNoFlow);
  }
}

TEST_F(SlowFlowsTest, OneAtATimeTheSlowestFirst) {
  const std::vector<FlowLoad> flows{flow(10), flow(5), flow(60), flow(60)};
  EXPECT_EQ(looks_until(1, flows), SlowFlows::kSlowLooks);
  EXPECT_EQ(looks_until(0, flows), 1u);
}

TEST_F(SlowFlowsTest, LeavesAFlowInPeaceThatFindsNothingBetter) {
  const std::vector<FlowLoad> flows{flow(60), flow(60), flow(60), flow(5)};
  looks_until(3, flows);
  uint32_t before = looks_until(3, flows);
  EXPECT_EQ(before, SlowFlows::kPauseNsMin / SlowFlows::kLookEveryNs);
  for (int again = 0; again < 10; ++again) {
    const uint32_t looks = looks_until(3, flows);
    EXPECT_GE(looks, before);
    EXPECT_LE(looks, SlowFlows::kPauseNsMax / SlowFlows::kLookEveryNs);
    before = looks;
  }
  EXPECT_EQ(before, SlowFlows::kPauseNsMax / SlowFlows::kLookEveryNs);
}

TEST(SlowFlows, ZeroPercentReplacesNothing) {
  EXPECT_FALSE(SlowFlows(0).is_due(1'000'000'000'000));
}

}  // namespace
}  // namespace braid
