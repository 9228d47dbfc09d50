// SPDX-License-Identifier: Apache-2.0
#include "control/stranger_log.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

struct SetClock final : Clock {
  uint64_t now_ns() const override { return ms * 1'000'000; }
  uint64_t ms = 5'000;
};

int lines_of(StrangerLog& log, int refusals) {
  int lines = 0;
  for (int i = 0; i < refusals; ++i) lines += log.refused("10.0.0.9:1", "test") ? 1 : 0;
  return lines;
}

TEST(StrangerLog, WritesAFewLinesOfAFlood) {
  SetClock clock;
  StrangerLog log(clock);
  EXPECT_EQ(lines_of(log, 5), 5);
  EXPECT_EQ(lines_of(log, 1000), 5);
  EXPECT_EQ(lines_of(log, 1000), 0);
}

TEST(StrangerLog, GoesOnWithALinePerSecond) {
  SetClock clock;
  StrangerLog log(clock);
  lines_of(log, 1000);
  clock.ms += 999;
  EXPECT_EQ(lines_of(log, 10), 0);
  clock.ms += 1;
  EXPECT_EQ(lines_of(log, 10), 1);
  clock.ms += 3'000;
  EXPECT_EQ(lines_of(log, 10), 3);
  clock.ms += 3'600'000;
  EXPECT_EQ(lines_of(log, 1000), 10);
}

}  // namespace
}  // namespace braid
