// SPDX-License-Identifier: Apache-2.0
#include "net/full_size_loss.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint32_t kStuckBytes = 64 << 10;

// What a flow goes through that opens and gets stuck.
bool open_and_get_stuck(FullSizeLoss& loss) {
  loss.on_flow_open();
  return loss.on_given_up(kStuckBytes);
}

TEST(FullSizeLoss, AFlowThatIsGivenUpOnceSaysNothing) {
  FullSizeLoss loss;
  EXPECT_FALSE(open_and_get_stuck(loss));
  EXPECT_EQ(loss.segment_bytes(), 0);
}

TEST(FullSizeLoss, FlowsThatOpenAndGetStuckAgainAndAgainGetSmallerSegments) {
  FullSizeLoss loss;
  EXPECT_FALSE(open_and_get_stuck(loss));
  EXPECT_TRUE(open_and_get_stuck(loss));
  EXPECT_EQ(loss.segment_bytes(), FullSizeLoss::kSegmentBytes);
  EXPECT_TRUE(open_and_get_stuck(loss));
  EXPECT_EQ(loss.segment_bytes(), FullSizeLoss::kSegmentBytesLeast);
  EXPECT_FALSE(loss.is_hopeless());
  EXPECT_TRUE(open_and_get_stuck(loss));
  EXPECT_TRUE(loss.is_hopeless());
  EXPECT_FALSE(open_and_get_stuck(loss)) << "it is said once";
}

TEST(FullSizeLoss, WhereNothingPassesNoFlowOpens) {
  FullSizeLoss loss;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(loss.on_given_up(kStuckBytes));
}

TEST(FullSizeLoss, AChunkThatPassesShowsThatThePathIsWell) {
  FullSizeLoss loss;
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(open_and_get_stuck(loss));
    loss.on_flow_open();
    loss.on_acknowledged(kStuckBytes);
  }
}

TEST(FullSizeLoss, ASmallerChunkThatPassesShowsNothing) {
  FullSizeLoss loss;
  EXPECT_FALSE(open_and_get_stuck(loss));
  loss.on_acknowledged(1000);
  EXPECT_TRUE(open_and_get_stuck(loss));
}

TEST(FullSizeLoss, FlowsWithNothingLargeOnTheirWayDoNotCount) {
  FullSizeLoss loss;
  for (int i = 0; i < 10; ++i) {
    loss.on_flow_open();
    EXPECT_FALSE(loss.on_given_up(FullSizeLoss::kSmallBytes));
  }
}

TEST(FullSizeLoss, SegmentsStaySmallWhereTheyHelp) {
  FullSizeLoss loss;
  open_and_get_stuck(loss);
  open_and_get_stuck(loss);
  loss.on_flow_open();
  loss.on_acknowledged(kStuckBytes);
  EXPECT_FALSE(open_and_get_stuck(loss));
  EXPECT_EQ(loss.segment_bytes(), FullSizeLoss::kSegmentBytes);
}

}  // namespace
}  // namespace braid
