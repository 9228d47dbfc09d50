// SPDX-License-Identifier: Apache-2.0
#include "net/round_trip.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(RoundTrip, IsNotKnownBeforeTheFirstSample) {
  RoundTrip round_trip;
  EXPECT_FALSE(round_trip.is_known());
  round_trip.add(1000);
  EXPECT_TRUE(round_trip.is_known());
  EXPECT_EQ(round_trip.mean_ns(), 1000u);
  EXPECT_EQ(round_trip.usual_most_ns(), 3000u);
}

TEST(RoundTrip, ComesToWhatIsSteady) {
  RoundTrip round_trip;
  round_trip.add(9000);
  for (int i = 0; i < 200; ++i) round_trip.add(1000);
  EXPECT_NEAR(static_cast<double>(round_trip.mean_ns()), 1000, 20);
  EXPECT_LT(round_trip.usual_most_ns(), 1200u);
}

TEST(RoundTrip, AllowsForWhatVaries) {
  RoundTrip round_trip;
  for (int i = 0; i < 200; ++i) round_trip.add(i % 2 == 0 ? 1000 : 3000);
  EXPECT_GT(round_trip.usual_most_ns(), 3000u);
}

}  // namespace
}  // namespace braid
