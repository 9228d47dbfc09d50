// SPDX-License-Identifier: Apache-2.0
#include "codec/all_codecs.h"
#include "codec/natural_kernels.h"
#include "codec/rows.h"

namespace braid {
namespace {

CodecTraits natural_traits() {
  CodecTraits traits;
  traits.granule = kRowElements;
  traits.is_unbiased = true;
  return traits;
}

// Natural compression (Horváth et al., "Natural Compression for Distributed Deep Learning", 2019):
// a sign and a power of two, nine bits.
class NaturalCodec final : public GradientCodec {
 public:
  explicit NaturalCodec(const CodecSpec& spec) : GradientCodec(spec, natural_traits()) {}

  uint64_t encoded_bytes_max(uint64_t count) const override { return natural_bytes(count); }

 protected:
  uint64_t encode_part(std::span<const float> values, const EncodePlace& place,
                       uint8_t* encoded) const override {
    const auto dither = Dither::make(spec().seed, place.stream, place.step, place.first_element);
    encode_natural(values.data(), values.size(), dither, encoded);
    return natural_bytes(values.size());
  }

  Status decode_part(std::span<const uint8_t> encoded, Into into,
                     std::span<float> elements) const override {
    BRAID_RETURN_IF_ERROR(check_length(encoded, elements.size()));
    decode_natural(encoded.data(), elements.size(), into, elements.data());
    return Status::ok();
  }
};

}  // namespace

std::unique_ptr<GradientCodec> natural_codec(const CodecSpec& spec) {
  return std::make_unique<NaturalCodec>(spec);
}

}  // namespace braid
