// SPDX-License-Identifier: Apache-2.0
#include "bench/size_range.h"

#include <gtest/gtest.h>

namespace braid::bench {
namespace {

TEST(ParseBytes, ReadsWhatNcclTestsRead) {
  EXPECT_EQ(parse_bytes("8").value(), 8u);
  EXPECT_EQ(parse_bytes("1K").value(), 1u << 10);
  EXPECT_EQ(parse_bytes("1k").value(), 1u << 10);
  EXPECT_EQ(parse_bytes("1.5M").value(), 3u << 19);
  EXPECT_EQ(parse_bytes("2G").value(), 2ull << 30);
}

TEST(ParseBytes, ReadsWhatBraidReadsElsewhere) {
  EXPECT_EQ(parse_bytes("64KiB").value(), 64u << 10);
  EXPECT_EQ(parse_bytes("400kB").value(), 400'000u);
  EXPECT_EQ(parse_bytes("25MB").value(), 25'000'000u);
  EXPECT_EQ(parse_bytes("1GB").value(), 1'000'000'000u);
  EXPECT_EQ(parse_bytes("7B").value(), 7u);
}

TEST(ParseBytes, RefusesAllElse) {
  for (const char* text : {"", "K", "0", "-1", "1Q", "1KK", "1 K", "1.3", "0.1K", "1e3", "nan",
                           "inf", "0x10", "281474976710657", "1000000G"})
    EXPECT_FALSE(parse_bytes(text).is_ok()) << text;
}

SizeRange range_of(uint64_t min, uint64_t max) {
  SizeRange range;
  range.min_bytes = min;
  range.max_bytes = max;
  return range;
}

TEST(Sizes, ByAFactor) {
  SizeRange range = range_of(8, 100);
  range.step_factor = 3;
  EXPECT_EQ(sizes_of(range).value(), (std::vector<uint64_t>{8, 24, 72}));
}

TEST(Sizes, ByAStepUpToTheEndItself) {
  SizeRange range = range_of(8, 16);
  range.step_bytes = 4;
  EXPECT_EQ(sizes_of(range).value(), (std::vector<uint64_t>{8, 12, 16}));
}

TEST(Sizes, WithoutARangeThereIsOne) {
  EXPECT_EQ(sizes_of({}).value(), (std::vector<uint64_t>{32 << 20}));
}

TEST(Sizes, AnEndBelowTheBeginningIsRefused) {
  EXPECT_EQ(sizes_of(range_of(16, 8)).status().message(),
            "--maxbytes is 8 and --minbytes 16: the last size is below the first one; use -e 16 or "
            "more");
}

TEST(Sizes, ThereAreNotTooMany) {
  SizeRange range = range_of(1, SizeRange::kSizesMax);
  range.step_bytes = 1;
  EXPECT_EQ(sizes_of(range).value().size(), SizeRange::kSizesMax);
  ++range.max_bytes;
  EXPECT_EQ(sizes_of(range).status().message(),
            "--stepbytes 1: there are more than 10000 sizes from 1 to 10001; use a larger step, or "
            "-f 2");
}

}  // namespace
}  // namespace braid::bench
