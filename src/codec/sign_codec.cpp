// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "codec/all_codecs.h"
#include "codec/sign_kernels.h"

namespace braid {
namespace {

CodecTraits sign_traits(const CodecSpec& spec) {
  CodecTraits traits;
  traits.granule = spec.block;
  traits.wants_memory = true;
  traits.not_finite = NotFinite::Block;
  return traits;
}

float mean(double sum, uint64_t count) {
  const auto result = static_cast<float>(count == 0 ? 0 : sum / static_cast<double>(count));
  return std::isfinite(result) ? result : std::numeric_limits<float>::quiet_NaN();
}

// A block is one or two levels (float32) and the signs.
//
// ef-sign: (‖p‖₁/d)·sign(p), one level (Karimireddy et al., ICML 2019, algorithm 1); by blocks as
// in Zheng et al., "Communication-Efficient Distributed Blockwise Momentum SGD with
// Error-Feedback", NeurIPS 2019. What is lost is 1 − ‖p‖₁²/(d‖p‖²) of ‖p‖².
//
// 1bit: the means of the elements with and of those without a sign bit (Seide et al., "1-Bit
// Stochastic Gradient Descent", Interspeech 2014), of each block in place of each
// column.
class SignCodec final : public GradientCodec {
 public:
  explicit SignCodec(const CodecSpec& spec) : GradientCodec(spec, sign_traits(spec)) {}

  uint64_t encoded_bytes_max(uint64_t count) const override {
    if (count == 0) return 0;
    const uint64_t blocks = spec().block == 0 ? 1 : divide_up(count, spec().block);
    return blocks * header_bytes() + sign_bytes(count);
  }

 protected:
  uint64_t encode_part(std::span<const float> values, const EncodePlace&,
                       uint8_t* encoded) const override {
    const uint64_t block = block_of(values.size());
    for (uint64_t at = 0; at < values.size(); at += block) {
      const uint64_t count = std::min(block, values.size() - at);
      encode_block(values.data() + at, count, encoded);
      encoded += header_bytes() + sign_bytes(count);
    }
    return encoded_bytes_max(values.size());
  }

  uint64_t encode_with_memory(std::span<const float> gradient, std::span<float> memory,
                              const EncodePlace& place, uint8_t* encoded) const override {
    if (has_two_levels()) {
      return GradientCodec::encode_with_memory(gradient, memory, place, encoded);
    }
    const uint64_t block = block_of(gradient.size());
    for (uint64_t at = 0; at < gradient.size(); at += block) {
      const uint64_t count = std::min(block, gradient.size() - at);
      float* const p = memory.data() + at;
      uint8_t* const signs = encoded + header_bytes();
      const float level = mean(add_signs_and_sum(gradient.data() + at, count, p, signs), count);
      std::memcpy(encoded, &level, sizeof(level));
      decode_signs(signs, count, level, -level, Into::Error, p);
      encoded = signs + sign_bytes(count);
    }
    return encoded_bytes_max(gradient.size());
  }

  Status decode_part(std::span<const uint8_t> encoded, Into into,
                     std::span<float> elements) const override {
    BRAID_RETURN_IF_ERROR(check_length(encoded, elements.size()));
    const uint64_t block = block_of(elements.size());
    const uint8_t* from = encoded.data();
    for (uint64_t at = 0; at < elements.size(); at += block) {
      const uint64_t count = std::min(block, elements.size() - at);
      float levels[2];
      std::memcpy(levels, from, header_bytes());
      if (!has_two_levels()) levels[1] = -levels[0];
      decode_signs(from + header_bytes(), count, levels[0], levels[1], into, elements.data() + at);
      from += header_bytes() + sign_bytes(count);
    }
    return Status::ok();
  }

 private:
  bool has_two_levels() const { return spec().kind == CodecKind::OneBit; }
  uint64_t header_bytes() const { return (has_two_levels() ? 2 : 1) * sizeof(float); }
  uint64_t block_of(uint64_t count) const { return spec().block == 0 ? count : spec().block; }

  void encode_block(const float* values, uint64_t count, uint8_t* encoded) const {
    float levels[2] = {};
    uint8_t* const signs = encoded + header_bytes();
    if (has_two_levels()) {
      const SignSums sums = encode_signs(values, count, signs);
      levels[0] = mean(sums.positive, count - sums.negatives);
      levels[1] = -mean(sums.negative, sums.negatives);
      // One level that is not finite makes a block that is not.
      if (std::isnan(levels[0] + levels[1])) {
        std::fill(levels, levels + 2, std::numeric_limits<float>::quiet_NaN());
      }
    } else {
      levels[0] = mean(encode_signs_and_sum(values, count, signs), count);
    }
    std::memcpy(encoded, levels, header_bytes());
  }
};

}  // namespace

std::unique_ptr<GradientCodec> sign_codec(const CodecSpec& spec) {
  return std::make_unique<SignCodec>(spec);
}

}  // namespace braid
