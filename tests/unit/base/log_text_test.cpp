// SPDX-License-Identifier: Apache-2.0
#include "base/log_text.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(CutText, DoesNotCutACharacter) {
  EXPECT_EQ(cut_text("abc", 3), "abc");
  EXPECT_EQ(cut_text("abcd", 3), "abc");
  EXPECT_EQ(cut_text("a→b", 2), "a");
  EXPECT_EQ(cut_text("a→b", 4), "a→");
  EXPECT_EQ(cut_text("\x80\x80\x80\x80", 2), "");
}

TEST(Grouped, PutsCommas) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(1'234'567), "1,234,567");
}

}  // namespace
}  // namespace braid
