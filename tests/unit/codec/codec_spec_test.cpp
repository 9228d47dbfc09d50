// SPDX-License-Identifier: Apache-2.0
#include "codec/codec_spec.h"

#include <gtest/gtest.h>

#include "codec/gradient_codec.h"
#include "codec_world.h"

namespace braid::test {
namespace {

TEST(CodecSpec, every_codec_has_its_name_and_its_defaults) {
  const char* const names[] = {
      "none", "bf16", "fp16", "int8", "int4", "fp8-e4m3", "fp8-e5m2", "ef-sign",     "sign-vote",
      "1bit", "2bit", "topk", "dgc",  "qsgd", "terngrad", "natural",  "block-sparse"};
  ASSERT_EQ(std::size(names), size_t{kCodecKindCount});
  for (uint8_t kind = 0; kind < kCodecKindCount; ++kind) {
    const auto spec = parse_codec_spec(names[kind]);
    ASSERT_TRUE(spec) << names[kind];
    EXPECT_EQ(*spec, default_codec_spec(static_cast<CodecKind>(kind)));
    EXPECT_EQ(to_string(*spec), names[kind]);
    EXPECT_TRUE(make_codec(*spec)) << names[kind];
  }
}

TEST(CodecSpec, parameters_are_read) {
  const auto int8 =
      parse_codec_spec("int8:block=64,rounding=stochastic,seed=18446744073709551615").value();
  EXPECT_EQ(int8.block, 64u);
  EXPECT_EQ(int8.rounding, Rounding::Stochastic);
  EXPECT_EQ(int8.seed, UINT64_MAX);
  EXPECT_EQ(parse_codec_spec("topk:ratio=0.001")->ratio, 0.001);
  EXPECT_EQ(parse_codec_spec("2bit:threshold=0.25")->threshold, 0.25f);
  EXPECT_EQ(parse_codec_spec("dgc:momentum=0.5")->momentum, 0.5f);
  EXPECT_EQ(parse_codec_spec("qsgd:levels=3")->levels, 3u);
  EXPECT_EQ(parse_codec_spec("ef-sign:block=0")->block, 0u);
  EXPECT_EQ(parse_codec_spec("2bit:threshold=1,full-every=5")->full_every, 5u);
}

TEST(CodecSpec, what_is_printed_is_read_again_as_the_same) {
  for (const char* text : all_specs()) {
    const auto spec = parse_codec_spec(text);
    ASSERT_TRUE(spec) << text;
    const auto again = parse_codec_spec(to_string(*spec));
    ASSERT_TRUE(again) << to_string(*spec);
    EXPECT_EQ(*again, *spec);
  }
  EXPECT_EQ(to_string(*parse_codec_spec("topk:ratio=0.1")), "topk:ratio=0.1");
  EXPECT_EQ(to_string(*parse_codec_spec("int8:rounding=stochastic,block=256")),
            "int8:rounding=stochastic");
}

TEST(CodecSpec, an_error_names_the_parameter_and_what_would_be_right) {
  const std::string_view of_16 = "a multiple of 16 from 16 to 65536";
  const std::string names = codec_names();
  const std::string_view ratios = "a number above 0, up to 1";
  const std::string_view steps = "2 to 1000000";
  const std::tuple<std::string_view, std::string_view, std::string_view> cases[] = {
      {"int9", "'int9'", names},
      {"", "''", names},
      {"int8:block=100", "block=100", of_16},
      {"int8:block=0", "block=0", of_16},
      {"ef-sign:block=7", "block=7", "16 up to 1048576, or 0"},
      {"topk:block=64", "'block'", "ratio, full-every"},
      {"none:seed=1", "'seed'", "none at all"},
      {"topk:ratio=0", "ratio=0", ratios},
      {"topk:ratio=nan", "ratio=nan", ratios},
      {"topk:ratio=1x", "ratio=1x", ratios},
      {"topk:ratio", "'ratio'", "parameter=value"},
      {"topk:", "''", "parameter=value"},
      {"topk:ratio=0.1,ratio=0.2", "ratio", "twice"},
      {"int8:rounding=up", "rounding=up", "nearest or stochastic"},
      {"qsgd:levels=128", "levels=128", "1 to 127"},
      {"dgc:momentum=1", "momentum=1", "0 to below 1"},
      {"ef-sign:full-every=1", "full-every=1", steps},
      {"ef-sign:full-every=1000001", "1000001", steps},
      {"ef-sign:full-every=-1", "full-every=-1", steps},
      {"2bit:threshold=-1", "threshold=-1", "1e-30 to 1e+30"},
      {"natural:seed=-1", "seed=-1", "0 to 18446744073709551615"}};
  for (const auto& [text, named, right] : cases) {
    const Status error = parse_codec_spec(text).status();
    EXPECT_EQ(error.code(), StatusCode::InvalidArgument) << text;
    EXPECT_NE(error.message().find(named), std::string::npos) << error.message();
    EXPECT_NE(error.message().find(right), std::string::npos) << error.message();
  }
}

TEST(CodecSpec, no_codec_is_made_of_a_spec_that_does_not_fit) {
  CodecSpec spec = default_codec_spec(CodecKind::Int8);
  spec.block = 10;
  EXPECT_EQ(make_codec(spec).status().code(), StatusCode::InvalidArgument);
  spec = default_codec_spec(CodecKind::TopK);
  spec.block = 16;  // has none
  EXPECT_EQ(make_codec(spec).status().code(), StatusCode::InvalidArgument);
  spec.kind = static_cast<CodecKind>(kCodecKindCount);
  EXPECT_EQ(make_codec(spec).status().code(), StatusCode::InvalidArgument);
}

}  // namespace
}  // namespace braid::test
