// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(Printable, KeepsTextAsItIs) {
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("job 'train': ½ → 日本 🙂 \\n"),
            "job 'train': ½ → 日本 🙂 \\n");
}

TEST(Printable, ShowsWhatIsNoText) {
  EXPECT_EQ(printable("a\nb\tc\r\x1b[2J\x7f"), "a\\nb\\x09c\\x0d\\x1b[2J\\x7f");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b"
            "2J")
      << "C1: some terminals obey it";
}

TEST(Printable, ShowsWhatIsNoUtf8) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xc3"), "\\xc3") << "cut";
  EXPECT_EQ(printable("\xe2\x86"), "\\xe2\\x86");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "longer than need be";
  EXPECT_EQ(printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond Unicode";
  EXPECT_EQ(printable("\xc3(\xc3\xa9"), "\\xc3(é");
}

TEST(Printable, ShowsWhatTurnsTheDirectionOfWriting) {
  for (const char* turning : {"\u061c", "\u200e", "\u200f", "\u202a", "\u202d", "\u202e", "\u2066",
                              "\u2069", "\u2028", "\u2029"}) {
    const std::string shown = printable("a" + std::string(turning) + "b");
    EXPECT_EQ(shown.find(turning), std::string::npos) << shown;
    EXPECT_TRUE(shown.starts_with("a\\x") && shown.ends_with("b")) << shown;
  }
  EXPECT_EQ(printable("\u202e"), "\\xe2\\x80\\xae");
  EXPECT_EQ(printable("שלום \u200d\u2027\u2030 \u00a0"), "שלום \u200d\u2027\u2030 \u00a0");
}

TEST(Printable, IsCutBetweenCharacters) {
  EXPECT_EQ(printable("abcd", 4), "abcd");
  EXPECT_EQ(printable("abcde", 4), "abcd...");
  EXPECT_EQ(printable("abc→", 4), "abc...");
  EXPECT_EQ(printable("\x1b\x1b\x1b", 2), "\\x1b\\x1b...");
}

TEST(Printable, IsTheSameWhenItPassesTwice) {
  const std::string once = printable("a\x1b\n\xff\u009b\u202e");
  EXPECT_EQ(printable(once), once);
  EXPECT_EQ(printable_lines(once), once);
}

TEST(PrintableLines, KeepsLinesAndIsTheSameJson) {
  EXPECT_EQ(printable_lines("{\n\t\"ü\": \"→\"\n}\n"), "{\n\t\"ü\": \"→\"\n}\n");
  EXPECT_EQ(printable_lines("[\"a\u009b2J\x7f\u202e\"]"), "[\"a\\u009b2J\\u007f\\u202e\"]");
  EXPECT_EQ(printable_lines("a\x1b[2J\r"), "a\\u001b[2J\\u000d");
  EXPECT_EQ(printable_lines("a\xff"
                            "b"),
            "a\\ufffdb");
}

}  // namespace
}  // namespace braid
