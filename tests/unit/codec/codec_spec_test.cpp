// SPDX-License-Identifier: Apache-2.0
#include "codec/codec_spec.h"

#include <string>

#include <gtest/gtest.h>

#include "codec/gradient_codec.h"
#include "codec_world.h"

namespace braid::test {
namespace {

std::string error_of(std::string_view text) {
  const auto spec = parse_codec_spec(text);
  return spec ? "none" : spec.status().message();
}

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
  const auto int8 = parse_codec_spec("int8:block=64,rounding=stochastic,seed=18446744073709551615");
  ASSERT_TRUE(int8);
  EXPECT_EQ(int8->block, 64u);
  EXPECT_EQ(int8->rounding, Rounding::Stochastic);
  EXPECT_EQ(int8->seed, UINT64_MAX);
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
  EXPECT_EQ(error_of("int9"), "no codec is named 'int9'; there are " + codec_names());
  EXPECT_EQ(error_of(""), "no codec is named ''; there are " + codec_names());
  EXPECT_EQ(error_of("int8:block=100"),
            "codec int8: block=100: right is a multiple of 16 from 16 to 65536");
  EXPECT_EQ(error_of("int8:block=0"),
            "codec int8: block=0: right is a multiple of 16 from 16 to 65536");
  EXPECT_EQ(error_of("ef-sign:block=7"),
            "codec ef-sign: block=7: right is a multiple of 16 up to 1048576, or 0 for the whole "
            "part");
  EXPECT_EQ(error_of("topk:block=64"),
            "codec topk has no parameter 'block'; it has ratio, full-every");
  EXPECT_EQ(error_of("none:seed=1"), "codec none has no parameter 'seed'; it has none at all");
  EXPECT_EQ(error_of("topk:ratio=0"), "codec topk: ratio=0: right is a number above 0, up to 1");
  EXPECT_EQ(error_of("topk:ratio=nan"),
            "codec topk: ratio=nan: right is a number above 0, up to 1");
  EXPECT_EQ(error_of("topk:ratio=1x"), "codec topk: ratio=1x: right is a number above 0, up to 1");
  EXPECT_EQ(error_of("topk:ratio"), "codec topk: 'ratio': right is parameter=value");
  EXPECT_EQ(error_of("topk:"), "codec topk: '': right is parameter=value");
  EXPECT_EQ(error_of("topk:ratio=0.1,ratio=0.2"), "codec topk: ratio is given twice");
  EXPECT_EQ(error_of("int8:rounding=up"),
            "codec int8: rounding=up: right is nearest or stochastic");
  EXPECT_EQ(error_of("qsgd:levels=128"),
            "codec qsgd: levels=128: right is a whole number from 1 to 127");
  EXPECT_EQ(error_of("dgc:momentum=1"),
            "codec dgc: momentum=1: right is a number from 0 to below 1");
  for (const char* const steps : {"1", "1000001", "-1"}) {
    EXPECT_EQ(error_of(std::string("ef-sign:full-every=") + steps),
              std::string("codec ef-sign: full-every=") + steps +
                  ": right is a whole number of steps from 2 to 1000000, or 0 for never");
  }
  EXPECT_EQ(error_of("2bit:threshold=-1"),
            "codec 2bit: threshold=-1: right is a number from 1e-30 to 1e+30");
  EXPECT_EQ(error_of("natural:seed=-1"),
            "codec natural: seed=-1: right is a whole number from 0 to 18446744073709551615");
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
