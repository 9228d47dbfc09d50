// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/printable.h"

namespace braid {
namespace {

TEST(PrintableLabelTest, KeepsTextAsItIs) {
  const std::string text = "train-7 \"quoted\" \\ caf\u00e9 \u65e5\u672c \U0001f600";
  EXPECT_EQ(printable_label(text), text);
  EXPECT_EQ(printable_label(""), "");
}

TEST(PrintableLabelTest, ReplacesControlCharacters) {
  EXPECT_EQ(printable_label(std::string_view("a\nb\rc\td\0e\x7f", 10)), "a?b?c?d?e?");
}

TEST(PrintableLabelTest, ReplacesWhatTerminalsObey) {
  EXPECT_EQ(printable_label("\u009b31m red"), "?31m red");
  EXPECT_EQ(printable_label("next\u0085line\u2028line\u202eturned"), "next?line?line?turned");
}

TEST(PrintableLabelTest, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(printable_label("caf\xe9"), "caf?");
  EXPECT_EQ(printable_label("\xf0\x80\x80\xaf"), "????");
  EXPECT_EQ(printable_label("cut \xe6\x97"), "cut ??");
  EXPECT_EQ(printable_label("\xe6\x97z"), "??z");
}

}  // namespace
}  // namespace braid
