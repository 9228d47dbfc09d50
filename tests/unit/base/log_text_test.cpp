// SPDX-License-Identifier: Apache-2.0
#include "base/log_text.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(OneLine, KeepsTextAsItIs) {
  EXPECT_EQ(one_line(""), "");
  EXPECT_EQ(one_line("job 'train': ½ → 日本 🙂 \\n"), "job 'train': ½ → 日本 🙂 \\n");
}

TEST(OneLine, ShowsWhatIsNoText) {
  EXPECT_EQ(one_line("a\nb\tc\r\x1b[2J\x7f"), "a\\nb\\x09c\\x0d\\x1b[2J\\x7f");
  EXPECT_EQ(one_line(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(one_line("\xc2\x9b"
                     "2J"),
            "\\xc2\\x9b"
            "2J")
      << "C1: some terminals obey it";
}

TEST(OneLine, ShowsWhatIsNoUtf8) {
  EXPECT_EQ(one_line("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(one_line("\xc3"), "\\xc3") << "cut";
  EXPECT_EQ(one_line("\xe2\x86"), "\\xe2\\x86");
  EXPECT_EQ(one_line("\xc0\xaf"), "\\xc0\\xaf") << "longer than need be";
  EXPECT_EQ(one_line("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");
  EXPECT_EQ(one_line("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(one_line("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond Unicode";
  EXPECT_EQ(one_line("\xc3(\xc3\xa9"), "\\xc3(é");
}

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
