// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"
#include "codec/all_codecs.h"
#include "codec/block_kernels.h"

namespace braid {
namespace {

constexpr uint32_t kInt8Levels = 127;
constexpr uint32_t kInt4Levels = 7;

// QSGD (Alistarh et al., NIPS 2017, section 3.1): sign · norm · ξ / s, where ξ rounds s·|v|/norm
// up or down. That is what int8 and int4 do, with the norm for the largest magnitude. The codes
// travel in as many bits as they need, in place of the paper's Elias code.
BlockFormat block_format(const CodecSpec& spec) {
  BlockFormat format;
  format.block = spec.block;
  format.rounding = spec.rounding;
  if (spec.kind == CodecKind::Int4) {
    format.code = BlockCode::Int4;
    format.levels = kInt4Levels;
  } else if (spec.kind == CodecKind::Fp8E4M3) {
    format.code = BlockCode::Fp8E4M3;
  } else if (spec.kind == CodecKind::Fp8E5M2) {
    format.code = BlockCode::Fp8E5M2;
  } else if (spec.kind == CodecKind::Qsgd) {
    format.code = spec.levels <= kInt4Levels ? BlockCode::Int4 : BlockCode::Int8;
    format.scale = BlockScale::Norm;
    format.levels = spec.levels;
  } else {
    format.levels = kInt8Levels;
  }
  return format;
}

CodecTraits block_traits(const CodecSpec& spec) {
  CodecTraits traits;
  traits.granule = spec.block;
  traits.is_unbiased = spec.rounding == Rounding::Stochastic;
  traits.not_finite = NotFinite::Block;
  return traits;
}

class BlockCodec final : public GradientCodec {
 public:
  explicit BlockCodec(const CodecSpec& spec)
      : GradientCodec(spec, block_traits(spec)), format_(block_format(spec)) {}

  uint64_t encoded_bytes_max(uint64_t count) const override {
    return divide_up(count, format_.block) * sizeof(float) + block_code_bytes(format_.code, count);
  }

 protected:
  uint64_t encode_part(std::span<const float> values, const EncodePlace& place,
                       uint8_t* encoded) const override {
    const auto dither = Dither::make(spec().seed, place.stream, place.step, place.first_element);
    encode_blocks(format_, dither, values.data(), values.size(), encoded);
    return encoded_bytes_max(values.size());
  }

  Status decode_part(std::span<const uint8_t> encoded, Into into,
                     std::span<float> elements) const override {
    BRAID_RETURN_IF_ERROR(check_length(encoded, elements.size()));
    decode_blocks(format_, encoded.data(), elements.size(), into, elements.data());
    return Status::ok();
  }

 private:
  const BlockFormat format_;
};

}  // namespace

std::unique_ptr<GradientCodec> block_codec(const CodecSpec& spec) {
  return std::make_unique<BlockCodec>(spec);
}

}  // namespace braid
