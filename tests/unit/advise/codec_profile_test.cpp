// SPDX-License-Identifier: Apache-2.0
#include "advise/codec_profile.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

CodecTimes times(uint64_t bytes, double scale) {
  return {.codec = {},
          .bytes = bytes,
          .encoded_bytes = bytes / 2,
          .encode = 8 * scale,
          .encode_with_memory = 16 * scale,
          .decode = 2 * scale,
          .decode_and_add = 4 * scale};
}

CodecProfile made(std::string_view codec, uint32_t nodes) {
  const std::vector<CodecTimes> rates = {times(2000, 3), times(1000, 1)};
  auto profile = profile_of(parse_codec_spec(codec).value(), rates, nodes);
  EXPECT_TRUE(profile) << profile.status().message();
  return std::move(profile).value();
}

TEST(CodecProfileTest, CodingIsWhatOneNodeDoes) {
  const CodecProfile profile = made("bf16", 4);
  // Encodes everything once, adds 3/4 of it, decodes everything once.
  EXPECT_DOUBLE_EQ(profile.coding_seconds(1000), 8 + 0.75 * 4 + 2);
  EXPECT_DOUBLE_EQ(profile.coding_seconds(2000), 3 * 13);
  EXPECT_DOUBLE_EQ(profile.coding_seconds(1500), 2 * 13) << "on a line between two sizes";
  EXPECT_DOUBLE_EQ(profile.coding_seconds(500), 13 / 2.0);
  EXPECT_DOUBLE_EQ(profile.coding_seconds(4000), 6 * 13) << "the last rate holds on";
  EXPECT_EQ(CodecProfile().coding_seconds(1000), 0);
}

TEST(CodecProfileTest, ANodeThatEncodesItsOwnPartAddsIt) {
  EXPECT_DOUBLE_EQ(made("sign-vote", 4).coding_seconds(1000), 8 + 4 + 8 / 4.0 + 2);
}

TEST(CodecProfileTest, SumsHaveTimesOfTheirOwn) {
  CodecTimes measured = times(1000, 1);
  measured.encode_sum = 400;
  measured.decode_sum = 50;
  const auto profile = profile_of(parse_codec_spec("2bit").value(), {&measured, 1}, 4);
  EXPECT_DOUBLE_EQ(profile->coding_seconds(1000), 16 + 4 + 400 / 4.0 + 50);
}

TEST(CodecProfileTest, ErrorMemoryIsTakenWhereTrainingSuffersWithoutIt) {
  EXPECT_DOUBLE_EQ(made("ef-sign", 2).coding_seconds(1000), 16 + 0.5 * 4 + 2);
}

TEST(CodecProfileTest, KnowsWhatSlowsTraining) {
  for (const char* codec : {"ef-sign", "1bit", "2bit", "topk", "sign-vote"})
    EXPECT_TRUE(made(codec, 4).slows_training) << codec;
  for (const char* codec : {"bf16", "int8", "int4", "qsgd", "block-sparse"})
    EXPECT_FALSE(made(codec, 4).slows_training) << codec;
}

TEST(CodecProfileTest, SharesOfPartsAndSums) {
  EXPECT_DOUBLE_EQ(made("bf16", 4).wire_share(), 0.5);
  EXPECT_DOUBLE_EQ(made("2bit", 7).part_share, 1 / 16.0);
  EXPECT_DOUBLE_EQ(made("2bit", 7).sum_share, 1 / 8.0) << "counts of 4 bits";
  EXPECT_DOUBLE_EQ(made("2bit", 8).sum_share, 1 / 4.0) << "counts of 8 bits";
  EXPECT_NEAR(made("topk:ratio=0.01", 4).part_share, 0.02, 1e-5);
  EXPECT_NEAR(made("topk:ratio=0.01", 4).sum_share, 0.08, 1e-5) << "those of all nodes";
  EXPECT_EQ(made("topk:ratio=0.01", 1000).sum_share, 1) << "everything is the most";
  EXPECT_DOUBLE_EQ(made("2bit:full-every=4", 4).part_share, (3 / 16.0 + 1) / 4);
  EXPECT_DOUBLE_EQ(made("2bit:full-every=4", 4).sum_share, (3 / 8.0 + 1) / 4);
  EXPECT_NEAR(made("sign-vote", 4).sum_share, 1 / 32.0, 1e-5);
  EXPECT_EQ(made("block-sparse", 4).part_share, 0.5) << "as measured: its size is not exact";
}

TEST(CodecProfileTest, IntegerSumsHaveAMostOfNodes) {
  EXPECT_TRUE(check_nodes(parse_codec_spec("2bit").value(), 127));
  const Status status = check_nodes(parse_codec_spec("2bit").value(), 128);
  EXPECT_EQ(status.message(),
            "codec 2bit: 128 nodes are too many; right are up to 127, whose parts it can add");
  EXPECT_TRUE(check_nodes(parse_codec_spec("int8").value(), 60'000));
}

}  // namespace
}  // namespace braid
