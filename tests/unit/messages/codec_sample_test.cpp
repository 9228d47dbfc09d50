// SPDX-License-Identifier: Apache-2.0
#include "messages/codec_sample.h"

#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "control/fake_control_plane.h"

namespace braid {
namespace {

using testing::as_message;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

CodecSample sample() {
  CodecSample result;
  result.job_key = 9;
  result.set = 8;
  result.plan = 7;
  result.step = 1ULL << 40;
  result.tensors = {11, 12};
  result.codec = *parse_codec_spec("2bit:threshold=0.25");
  result.loss.given_squares = 1.5;
  result.loss.memory_squares = 2.5;
  result.loss.elements = 100;
  result.loss.saturated = 99;
  result.loss.error[3] = -4;
  result.loss.decoded[255] = 5;
  return result;
}

Result<CodecSample> pass(const CodecSample& sent) {
  auto message = make_codec_sample(sent);
  return parse_codec_sample(*as_message(message).body_as_CodecSample());
}

TEST(CodecSampleTest, ArrivesAsItWasSent) {
  const CodecSample sent = sample();
  const auto got = pass(sent).value();
  EXPECT_EQ(got.job_key, sent.job_key);
  EXPECT_EQ(got.set, sent.set);
  EXPECT_EQ(got.plan, sent.plan);
  EXPECT_EQ(got.step, sent.step);
  EXPECT_EQ(got.tensors, sent.tensors);
  EXPECT_EQ(got.codec, sent.codec);
  EXPECT_EQ(got.loss.given_squares, 1.5);
  EXPECT_EQ(got.loss.memory_squares, 2.5);
  EXPECT_EQ(got.loss.elements, 100u);
  EXPECT_EQ(got.loss.saturated, 99u);
  EXPECT_EQ(got.loss.not_finite, 0u);
  EXPECT_TRUE(got.loss.has_sketches);
  EXPECT_EQ(got.loss.error, sent.loss.error);
  EXPECT_EQ(got.loss.decoded, sent.loss.decoded);
}

TEST(CodecSampleTest, NeedsNoSketches) {
  CodecSample sent = sample();
  sent.loss.has_sketches = false;
  const auto got = pass(sent).value();
  EXPECT_FALSE(got.loss.has_sketches);
  EXPECT_EQ(got.loss.error, CodecLoss::Sketch{});
}

// Nobody refuses it for its sums.
TEST(CodecSampleTest, OfGradientsThatAreNotFiniteSaysThatOnly) {
  CodecSample sent = sample();
  sent.loss.not_finite = 2;
  sent.loss.given_squares = kInfinity;
  sent.loss.memory_squares = kNaN;
  auto got = pass(sent);
  ASSERT_TRUE(got.is_ok()) << got.status().message();
  EXPECT_EQ(got->loss.not_finite, 2u);
  EXPECT_EQ(got->loss.given_squares, 0);
  EXPECT_FALSE(got->loss.has_sketches);
  // So does a memory that is not, of gradients that are.
  sent.loss.not_finite = 0;
  got = pass(sent);
  ASSERT_TRUE(got.is_ok());
  EXPECT_EQ(got->loss.not_finite, 1u);
}

// What a peer may send that no daemon makes.
struct Hostile {
  std::vector<uint64_t> tensors = {11};
  std::string codec = "int8";
  double given_squares = 1, memory_squares = 1;
  uint64_t elements = 10, saturated = 0;
  std::vector<double> error = std::vector<double>(CodecLoss::kBuckets);
  std::vector<double> decoded = std::vector<double>(CodecLoss::kBuckets);
};

std::string refusal(const std::function<void(Hostile&)>& change) {
  Hostile one;
  change(one);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(proto::CreateCodecSampleDirect(
      builder, 9, 8, 7, 6, &one.tensors, one.codec.c_str(), one.given_squares, one.memory_squares,
      one.elements, one.saturated, 0, &one.error, &one.decoded));
  const auto parsed =
      parse_codec_sample(*flatbuffers::GetRoot<proto::CodecSample>(builder.GetBufferPointer()));
  if (parsed) return "";
  EXPECT_EQ(parsed.status().code(), StatusCode::Protocol);
  return parsed.status().message();
}

TEST(CodecSampleTest, WhatCannotBeIsRefused) {
  const std::string has = "a sample of what a codec loses has ";
  EXPECT_EQ(refusal([](Hostile&) {}), "");
  EXPECT_EQ(refusal([](Hostile& one) { one.tensors.clear(); }), has + "no tensors");
  for (const char* codec : {"", "none", "int9", "int8:block=3"})
    EXPECT_EQ(refusal([&](Hostile& one) { one.codec = codec; }), has + "no codec") << codec;
  for (const double number : {kNaN, kInfinity, -1.0}) {
    EXPECT_EQ(refusal([&](Hostile& one) { one.given_squares = number; }),
              has + "squares that cannot be");
    EXPECT_EQ(refusal([&](Hostile& one) { one.memory_squares = number; }),
              has + "squares that cannot be");
  }
  EXPECT_EQ(refusal([](Hostile& one) { one.saturated = 11; }),
            has + "more saturated elements than there are");
  EXPECT_EQ(refusal([](Hostile& one) { one.elements = UINT64_MAX; }),
            has + "more elements than a set may have");
  const std::string sketches = has + "sketches that cannot be";
  EXPECT_EQ(refusal([](Hostile& one) { one.error.pop_back(); }), sketches);
  EXPECT_EQ(refusal([](Hostile& one) { one.decoded.push_back(0); }), sketches);
  EXPECT_EQ(refusal([](Hostile& one) { one.error[7] = kNaN; }), sketches);
  EXPECT_EQ(refusal([](Hostile& one) { one.decoded[0] = -kInfinity; }), sketches);
}

TEST(CodecSampleTest, OneSketchIsNone) {
  flatbuffers::FlatBufferBuilder builder;
  const std::vector<uint64_t> tensors = {11};
  const std::vector<double> sketch(CodecLoss::kBuckets);
  builder.Finish(proto::CreateCodecSampleDirect(builder, 9, 8, 7, 6, &tensors, "int8", 1, 1, 1, 0,
                                                0, &sketch));
  const auto parsed =
      parse_codec_sample(*flatbuffers::GetRoot<proto::CodecSample>(builder.GetBufferPointer()))
          .value();
  EXPECT_FALSE(parsed.loss.has_sketches);
}

}  // namespace
}  // namespace braid
