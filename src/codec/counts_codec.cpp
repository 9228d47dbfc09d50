// SPDX-License-Identifier: Apache-2.0
#include "base/assert.h"
#include "base/checked.h"
#include "codec/all_codecs.h"
#include "codec/block_kernels.h"

namespace braid {
namespace {

// How many parts the largest code of four bits can count.
constexpr uint32_t kNibblePartsMax = 7;
constexpr uint32_t kBlockElements = 4096;

CodecTraits counts_traits() {
  CodecTraits traits;
  traits.granule = kBlockElements;
  traits.not_finite = NotFinite::Block;
  return traits;
}

// How many thresholds a sum of 2-bit parts is, in blocks as those of int4 or int8, of which every
// scale is the threshold.
class CountsCodec final : public GradientCodec {
 public:
  CountsCodec(const CodecSpec& spec, uint32_t parts) : GradientCodec(spec, counts_traits()) {
    BRAID_ASSERT(parts != 0 && parts <= kIntegerSumPartsMax, "so many parts fit into a byte");
    const bool fits = parts <= kNibblePartsMax;
    format_.code = fits ? BlockCode::Int4 : BlockCode::Int8;
    format_.levels = fits ? kNibblePartsMax : kIntegerSumPartsMax;
    format_.block = kBlockElements;
    format_.step = spec.threshold;
  }

  uint64_t encoded_bytes_max(uint64_t count) const override {
    return divide_up(count, kBlockElements) * sizeof(float) + block_code_bytes(format_.code, count);
  }

 protected:
  uint64_t encode_part(std::span<const float> values, const EncodePlace&,
                       uint8_t* encoded) const override {
    encode_blocks(format_, {}, values.data(), values.size(), encoded);
    return encoded_bytes_max(values.size());
  }

  Status decode_part(std::span<const uint8_t> encoded, Into into,
                     std::span<float> elements) const override {
    BRAID_RETURN_IF_ERROR(check_length(encoded, elements.size()));
    decode_blocks(format_, encoded.data(), elements.size(), into, elements.data());
    return Status::ok();
  }

 private:
  BlockFormat format_;
};

}  // namespace

std::unique_ptr<GradientCodec> counts_codec(const CodecSpec& spec, uint32_t parts) {
  return std::make_unique<CountsCodec>(spec, parts);
}

}  // namespace braid
