// SPDX-License-Identifier: Apache-2.0
#include "codec_world.h"

#include <bit>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace braid::test {

const std::vector<const char*>& all_specs() {
  static const std::vector<const char*> specs = {"none",
                                                 "bf16",
                                                 "bf16:rounding=stochastic,seed=3",
                                                 "fp16",
                                                 "int8",
                                                 "int8:block=16",
                                                 "int8:block=64,rounding=stochastic,seed=5",
                                                 "int4",
                                                 "int4:block=32,rounding=stochastic",
                                                 "fp8-e4m3",
                                                 "fp8-e4m3:block=64,rounding=stochastic",
                                                 "fp8-e5m2",
                                                 "fp8-e5m2:block=64,rounding=stochastic",
                                                 "ef-sign",
                                                 "ef-sign:block=0",
                                                 "ef-sign:block=64",
                                                 "sign-vote",
                                                 "1bit",
                                                 "1bit:block=48",
                                                 "1bit:block=0",
                                                 "2bit",
                                                 "2bit:threshold=0.125",
                                                 "2bit:threshold=0.25,full-every=3",
                                                 "topk",
                                                 "topk:ratio=0.3",
                                                 "dgc:ratio=0.05",
                                                 "qsgd",
                                                 "qsgd:levels=7,block=64",
                                                 "qsgd:levels=1,block=16",
                                                 "terngrad",
                                                 "terngrad:block=32",
                                                 "natural",
                                                 "block-sparse",
                                                 "block-sparse:block=16"};
  return specs;
}

std::unique_ptr<GradientCodec> codec_of(std::string_view spec) {
  const auto parsed = parse_codec_spec(spec);
  EXPECT_TRUE(parsed) << parsed.status().to_string();
  auto codec = make_codec(*parsed);
  EXPECT_TRUE(codec) << codec.status().to_string();
  return std::move(codec).value();
}

std::vector<float> gradient_of(uint64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> gradient(count);
  for (float& value : gradient) {
    // Twelve uniform numbers: near enough to normal, and the same with every standard library.
    double sum = -6;
    for (int draw = 0; draw < 12; ++draw) sum += static_cast<double>(random() >> 11) * 0x1p-53;
    value = static_cast<float>(sum * (random() % 50 == 0 ? 8 : 0.4));
  }
  return gradient;
}

std::vector<uint8_t> encoded_by(const GradientCodec& codec, std::span<const float> values,
                                const EncodePlace& place) {
  std::vector<float> none;
  return encoded_by(codec, values, none, place);
}

std::vector<uint8_t> encoded_by(const GradientCodec& codec, std::span<const float> values,
                                std::vector<float>& memory, const EncodePlace& place) {
  std::vector<uint8_t> encoded(codec.encoded_bytes_max(values.size()));
  const auto bytes = codec.encode(values, memory, place, encoded);
  EXPECT_TRUE(bytes) << bytes.status().to_string();
  encoded.resize(*bytes);
  return encoded;
}

std::vector<float> decoded_by(const GradientCodec& codec, std::span<const uint8_t> encoded,
                              uint64_t count) {
  std::vector<float> out(count, 123.0f);
  const Status status = codec.decode(encoded, out);
  EXPECT_TRUE(status) << status.to_string();
  return out;
}

bool is_same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

}  // namespace braid::test
