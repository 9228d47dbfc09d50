// SPDX-License-Identifier: Apache-2.0
#include "advise/codec_times_json.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

const std::string kInt8 =
    R"({"codec": "int8", "bytes": 1000000, "encoded_bytes": 260000, "memcpy_gb_per_second": 9,)"
    R"( "encode": {"gb_per_second": 2, "of_add": 1}, "encode_with_memory": {"gb_per_second": 1},)"
    R"( "decode": {"gb_per_second": 4}, "decode_and_add": {"gb_per_second": 5}})";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(CodecTimesJson, ReadsALineForEachCodecAndSize) {
  const auto all = parse_codec_times(kInt8 + "\n\n" + replaced(kInt8, "int8", "bf16"), "r").value();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].codec, "int8");
  EXPECT_EQ(all[0].bytes, 1'000'000u);
  EXPECT_EQ(all[0].encoded_bytes, 260'000u);
  EXPECT_DOUBLE_EQ(all[0].encode, 0.5e-3);
  EXPECT_DOUBLE_EQ(all[0].encode_with_memory, 1e-3);
  EXPECT_DOUBLE_EQ(all[0].decode_and_add, 0.2e-3);
}

TEST(CodecTimesJson, SumsMayHaveRatesOfTheirOwn) {
  EXPECT_EQ(parse_codec_times(kInt8, "r")->front().encode_sum, 0);
  const std::string sums = replaced(
      kInt8, "}}", R"(}, "encode_sum": {"gb_per_second": 1}, "decode_sum": {"gb_per_second": 2}})");
  const auto all = parse_codec_times(sums, "r").value();
  EXPECT_DOUBLE_EQ(all.front().encode_sum, 1e-3);
  EXPECT_DOUBLE_EQ(all.front().decode_sum, 0.5e-3);
  EXPECT_FALSE(parse_codec_times(replaced(sums, "second\": 2}}", "second\": 0}}"), "r"));
}

TEST(CodecTimesJson, ErrorsNameTheLineAndTheEntry) {
  const auto error = [](const std::string& line) {
    const auto all = parse_codec_times(kInt8 + "\n" + line, "r");
    return all ? std::string() : all.status().message();
  };
  EXPECT_NE(error("x").find("r:2: "), std::string::npos);
  EXPECT_NE(error("{}").find("r:2: codec is missing"), std::string::npos);
  EXPECT_NE(error(replaced(kInt8, "int8", "int9")).find("r:2: "), std::string::npos);
  EXPECT_NE(error(replaced(kInt8, ": 1000000", ": 0")).find("r:2: bytes: 0"), std::string::npos);
  const std::string dead =
      error(replaced(kInt8, "{\"gb_per_second\": 4}", "{\"gb_per_second\": 0}"));
  EXPECT_NE(dead.find("r:2: decode.gb_per_second: 0"), std::string::npos) << dead;
  EXPECT_NE(dead.find("more than 0"), std::string::npos) << dead;
  EXPECT_NE(error(replaced(kInt8, "\"decode\"", "\"other\"")).find("decode is missing"),
            std::string::npos);
}

TEST(CodecTimesJson, OnlyACodecThatNeedsMemoryMayLackEncodingWithoutIt) {
  const std::string none = replaced(kInt8, "{\"gb_per_second\": 2,", "{\"gb_per_second\": 0,");
  EXPECT_FALSE(parse_codec_times(none, "r"));
  const auto dgc = parse_codec_times(replaced(none, "int8", "dgc"), "r").value();
  EXPECT_EQ(dgc.front().encode, 0);
}

}  // namespace
}  // namespace braid
