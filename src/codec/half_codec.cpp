// SPDX-License-Identifier: Apache-2.0
#include "codec/all_codecs.h"
#include "codec/half_kernels.h"

namespace braid {
namespace {

CodecTraits half_traits(const CodecSpec& spec) {
  CodecTraits traits;
  traits.is_unbiased = spec.rounding == Rounding::Stochastic;
  return traits;
}

// Sums of fp16 overflow soon: divide a sum of n parts by n *before* it is encoded.
class HalfCodec final : public GradientCodec {
 public:
  explicit HalfCodec(const CodecSpec& spec)
      : GradientCodec(spec, half_traits(spec)),
        kind_(spec.kind == CodecKind::Float16 ? HalfKind::Float16 : HalfKind::BFloat16) {}

  uint64_t encoded_bytes_max(uint64_t count) const override { return 2 * count; }

 protected:
  uint64_t encode_part(std::span<const float> values, const EncodePlace& place,
                       uint8_t* encoded) const override {
    if (spec().rounding == Rounding::Nearest) {
      encode_halves(kind_, values.data(), values.size(), encoded);
    } else {
      const auto dither = Dither::make(spec().seed, place.stream, place.step, place.first_element);
      encode_bfloat16_dithered(dither, values.data(), values.size(), encoded);
    }
    return 2 * values.size();
  }

  Status decode_part(std::span<const uint8_t> encoded, Into into,
                     std::span<float> elements) const override {
    BRAID_RETURN_IF_ERROR(check_length(encoded, elements.size()));
    decode_halves(kind_, encoded.data(), elements.size(), into, elements.data());
    return Status::ok();
  }

 private:
  const HalfKind kind_;
};

}  // namespace

std::unique_ptr<GradientCodec> half_codec(const CodecSpec& spec) {
  return std::make_unique<HalfCodec>(spec);
}

}  // namespace braid
