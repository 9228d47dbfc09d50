// SPDX-License-Identifier: Apache-2.0
#include "net/overdue_budget.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

uint64_t taken(OverdueBudget& budget) {
  uint64_t count = 0;
  for (; budget.has_any(); ++count) budget.take();
  return count;
}

TEST(OverdueBudget, IsAShareOfWhatWasSent) {
  OverdueBudget budget(2);
  EXPECT_EQ(taken(budget), static_cast<uint64_t>(OverdueBudget::kAheadAtFirst));
  uint64_t count = 0;
  for (int i = 0; i < 10'000; ++i) {
    budget.on_sent();
    count += taken(budget);
  }
  EXPECT_GE(count, 199u);
  EXPECT_LE(count, 200u);
}

TEST(OverdueBudget, SavesUpAFewOnly) {
  OverdueBudget budget(2);
  for (int i = 0; i < 10'000; ++i) budget.on_sent();
  EXPECT_EQ(taken(budget), static_cast<uint64_t>(OverdueBudget::kAheadMax));
}

TEST(OverdueBudget, IsThriftyWhenLittleIsLeft) {
  OverdueBudget budget(100);
  for (int i = 0; i < 100; ++i) budget.on_sent();
  EXPECT_EQ(budget.patience(), 1);
  double last = 1;
  while (budget.has_any()) {
    budget.take();
    EXPECT_GE(budget.patience(), last);
    last = budget.patience();
  }
  EXPECT_EQ(last, OverdueBudget::kPatienceMax);
}

TEST(OverdueBudget, MayBeNothing) {
  OverdueBudget budget(0);
  for (int i = 0; i < 1000; ++i) budget.on_sent();
  EXPECT_EQ(taken(budget), 0u);
}

}  // namespace
}  // namespace braid
