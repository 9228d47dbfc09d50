// SPDX-License-Identifier: Apache-2.0
#include "bench/report.h"

#include <gtest/gtest.h>

namespace braid::bench {
namespace {

TEST(Median, IsTheMiddle) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({5, 1, 3}), 3);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

TEST(P99, IsTheNearestRank) {
  EXPECT_EQ(p99({3}), 3);
  EXPECT_EQ(p99({5, 1, 3}), 5);
  std::vector<double> values;
  for (int i = 1; i <= 100; ++i) values.push_back(i);
  EXPECT_EQ(p99(values), 99);
  for (int i = 101; i <= 1000; ++i) values.push_back(i);
  EXPECT_EQ(p99(values), 990);
}

}  // namespace
}  // namespace braid::bench
