// SPDX-License-Identifier: Apache-2.0
#include "metrics/label_text.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(LabelText, KeepsTextAsItIs) {
  const std::string text = "train-7 \"quoted\" \\ caf\u00e9 \u65e5\u672c \U0001f600";
  EXPECT_EQ(label_text(text), text);
  EXPECT_EQ(label_text(""), "");
}

TEST(LabelText, ReplacesControlCharacters) {
  EXPECT_EQ(label_text(std::string_view("a\nb\rc\td\0e\x7f", 10)), "a?b?c?d?e?");
}

TEST(LabelText, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(label_text("caf\xe9"), "caf?");
  EXPECT_EQ(label_text("\xff\xfe"), "??");
  EXPECT_EQ(label_text("\x80 alone"), "? alone");
  EXPECT_EQ(label_text("\xc0\xaf overlong"), "?? overlong");
  EXPECT_EQ(label_text("\xe0\x80\xaf"), "???");
  EXPECT_EQ(label_text("\xf0\x80\x80\xaf"), "????");
  EXPECT_EQ(label_text("\xed\xa0\x80 surrogate"), "??? surrogate");
  EXPECT_EQ(label_text("\xf4\x90\x80\x80"), "????");
  EXPECT_EQ(label_text("cut \xe6\x97"), "cut ??");
  EXPECT_EQ(label_text("\xe6\x97z"), "??z");
}

}  // namespace
}  // namespace braid
