// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "codec/all_codecs.h"
#include "codec/sign_kernels.h"
#include "codec/ternary_kernels.h"

namespace braid {
namespace {

CodecTraits terngrad_traits(const CodecSpec& spec) {
  CodecTraits traits;
  traits.granule = spec.block;
  traits.is_unbiased = true;
  traits.not_finite = NotFinite::Block;
  return traits;
}

// TernGrad (Wen et al., NIPS 2017, section 3.1): s · sign(g) · b, where s is the largest magnitude
// and b is 1 with the probability |g|/s. A block, in place of the paper's layer, is s (float32)
// and the codes; s is NaN where the block is not finite.
class TernGradCodec final : public GradientCodec {
 public:
  explicit TernGradCodec(const CodecSpec& spec) : GradientCodec(spec, terngrad_traits(spec)) {}

  uint64_t encoded_bytes_max(uint64_t count) const override {
    return divide_up(count, spec().block) * sizeof(float) + ternary_bytes(count);
  }

 protected:
  uint64_t encode_part(std::span<const float> values, const EncodePlace& place,
                       uint8_t* encoded) const override {
    const auto dither = Dither::make(spec().seed, place.stream, place.step, place.first_element);
    for (uint64_t at = 0; at < values.size(); at += spec().block) {
      const uint64_t count = std::min<uint64_t>(spec().block, values.size() - at);
      const float scale = largest_finite_magnitude(values.data() + at, count);
      std::memcpy(encoded, &scale, sizeof(scale));
      encoded += sizeof(scale);
      if (scale > 0) {
        encode_by_chance(values.data() + at, count, scale, dither.after(at), encoded);
      } else {
        std::memset(encoded, 0, ternary_bytes(count));
      }
      encoded += ternary_bytes(count);
    }
    return encoded_bytes_max(values.size());
  }

  Status decode_part(std::span<const uint8_t> encoded, Into into,
                     std::span<float> elements) const override {
    BRAID_RETURN_IF_ERROR(check_length(encoded, elements.size()));
    const uint8_t* from = encoded.data();
    for (uint64_t at = 0; at < elements.size(); at += spec().block) {
      const uint64_t count = std::min<uint64_t>(spec().block, elements.size() - at);
      float scale = 0;
      std::memcpy(&scale, from, sizeof(scale));
      from += sizeof(scale);
      if (std::isnan(scale)) {  // whatever the codes are
        decode_signs(from, count, scale, scale, into, elements.data() + at);
      } else {
        decode_ternary(from, count, scale, into, elements.data() + at);
      }
      from += ternary_bytes(count);
    }
    return Status::ok();
  }
};

}  // namespace

std::unique_ptr<GradientCodec> terngrad_codec(const CodecSpec& spec) {
  return std::make_unique<TernGradCodec>(spec);
}

}  // namespace braid
