// SPDX-License-Identifier: Apache-2.0
#include "config/value.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

using Strings = std::vector<std::string>;
constexpr uint64_t kMax = UINT64_MAX;

TEST(ParseInteger, TakesTheWholeRange) {
  EXPECT_EQ(parse_integer("0", 0, 10).value(), 0u);
  EXPECT_EQ(parse_integer("10", 0, 10).value(), 10u);
  EXPECT_EQ(parse_integer("18446744073709551615", 0, kMax).value(), kMax);
}

TEST(ParseInteger, SaysTheRange) {
  EXPECT_EQ(parse_integer("11", 1, 10).status().message(), "11 is out of range; use 1 to 10");
  EXPECT_EQ(parse_integer("0", 1, 10).status().message(), "0 is out of range; use 1 to 10");
  EXPECT_EQ(parse_integer("18446744073709551616", 1, kMax).status().code(),
            StatusCode::InvalidArgument);
}

TEST(ParseInteger, RefusesWhatIsNoWholeNumber) {
  for (const char* text : {"", "-1", "+1", "1.5", "1e3", "0x10", " 1", "1 ", "yes", "1_000"}) {
    EXPECT_FALSE(parse_integer(text, 0, kMax).is_ok()) << text;
  }
  EXPECT_EQ(parse_integer("abc", 1, 10).status().message(),
            "'abc' is not a whole number; use one from 1 to 10");
}

TEST(ParseBytes, TakesUnits) {
  EXPECT_EQ(parse_bytes("131072", 0, kMax).value(), 131072u);
  EXPECT_EQ(parse_bytes("128KiB", 0, kMax).value(), 131072u);
  EXPECT_EQ(parse_bytes("8 MiB", 0, kMax).value(), 8u << 20);
  EXPECT_EQ(parse_bytes("64GiB", 0, kMax).value(), 64ull << 30);
  EXPECT_EQ(parse_bytes("2TiB", 0, kMax).value(), 2ull << 40);
}

TEST(ParseBytes, RefusesOtherUnitsAndNumbers) {
  for (const char* text : {"", "KiB", "8MB", "8 M", "8m", "8kib", "1.5GiB", "-1KiB", "8  MiB"}) {
    const auto bytes = parse_bytes(text, 0, kMax);
    ASSERT_FALSE(bytes.is_ok()) << text;
    EXPECT_NE(bytes.status().message().find("KiB, MiB or GiB"), std::string::npos);
  }
}

TEST(ParseBytes, SaysTheRangeAndDoesNotOverflow) {
  EXPECT_EQ(parse_bytes("1", 4096, 4 << 20).status().message(),
            "1 is out of range; use 4KiB to 4MiB");
  EXPECT_FALSE(parse_bytes("16777216TiB", 0, kMax).is_ok());  // 2^64
  EXPECT_FALSE(parse_bytes("99999999999999999999KiB", 0, kMax).is_ok());
}

TEST(FormatBytes, IsReadBack) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1500}, uint64_t{1} << 10,
                               (uint64_t{1} << 20) + 1, uint64_t{3} << 30, kMax}) {
    EXPECT_EQ(parse_bytes(format_bytes(bytes), 0, kMax).value(), bytes) << format_bytes(bytes);
  }
  EXPECT_EQ(format_bytes(8 << 20), "8MiB");
  EXPECT_EQ(format_bytes(1536), "1536");
}

TEST(SplitList, TakesBothForms) {
  EXPECT_EQ(split_list("eth0"), Strings({"eth0"}));
  EXPECT_EQ(split_list("eth0,eth1"), Strings({"eth0", "eth1"}));
  EXPECT_EQ(split_list(" [ eth0 , eth1 ] "), Strings({"eth0", "eth1"}));
  EXPECT_EQ(split_list(""), Strings());
  EXPECT_EQ(split_list("[]"), Strings());
}

TEST(SplitList, KeepsEmptyElementsForTheCheck) {
  EXPECT_EQ(split_list("a,,b"), Strings({"a", "", "b"}));
  EXPECT_EQ(split_list("a,"), Strings({"a", ""}));
}

TEST(FormatList, IsReadBack) {
  EXPECT_EQ(format_list({"a", "b"}), "[a, b]");
  EXPECT_EQ(split_list(format_list({"a", "b"})), Strings({"a", "b"}));
}

}  // namespace
}  // namespace braid
