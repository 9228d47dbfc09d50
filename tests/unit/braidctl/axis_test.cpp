// SPDX-License-Identifier: Apache-2.0
#include "braidctl/axis.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

using Ticks = std::vector<double>;

TEST(Axis, MapsValuesToPixels) {
  const Axis even{0, 10, 100, 200, false};
  EXPECT_DOUBLE_EQ(even.pixel(0), 100);
  EXPECT_DOUBLE_EQ(even.pixel(5), 150);
  const Axis upwards{1, 100, 300, 100, true};
  EXPECT_DOUBLE_EQ(upwards.pixel(1), 300);
  EXPECT_DOUBLE_EQ(upwards.pixel(10), 200);
}

TEST(Axis, HasRoundTicks) {
  EXPECT_EQ((Axis{0, 10, 0, 1, false}.ticks(5)), (Ticks{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ((Axis{0.3, 18, 0, 1, false}.ticks(4)), (Ticks{5, 10, 15}));
  EXPECT_EQ((Axis{0.5, 20, 0, 1, true}.ticks(6)), (Ticks{0.5, 1, 2, 5, 10, 20}));
  EXPECT_EQ((Axis{1, 1e6, 0, 1, true}.ticks(5)), (Ticks{1, 10, 100, 1000, 1e4, 1e5, 1e6}));
}

TEST(TimeUnit, FitsTheTime) {
  EXPECT_STREQ(time_unit(0.0005).name, "µs");
  EXPECT_STREQ(time_unit(0.5).name, "ms");
  EXPECT_STREQ(time_unit(20).name, "s");
}

}  // namespace
}  // namespace braid
