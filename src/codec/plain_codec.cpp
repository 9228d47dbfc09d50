// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "codec/add_kernels.h"
#include "codec/all_codecs.h"

namespace braid {
namespace {

CodecTraits plain_traits() {
  CodecTraits traits;
  traits.is_lossless = true;
  traits.is_unbiased = true;
  return traits;
}

class PlainCodec final : public GradientCodec {
 public:
  explicit PlainCodec(const CodecSpec& spec) : GradientCodec(spec, plain_traits()) {}

  uint64_t encoded_bytes_max(uint64_t count) const override { return count * sizeof(float); }

 protected:
  uint64_t encode_part(std::span<const float> values, const EncodePlace&,
                       uint8_t* encoded) const override {
    std::memcpy(encoded, values.data(), values.size_bytes());
    return values.size_bytes();
  }

  Status decode_part(std::span<const uint8_t> encoded, Into into,
                     std::span<float> elements) const override {
    BRAID_RETURN_IF_ERROR(check_length(encoded, elements.size()));
    decode_floats(encoded.data(), elements.size(), into, elements.data());
    return Status::ok();
  }
};

}  // namespace

std::unique_ptr<GradientCodec> plain_codec(const CodecSpec& spec) {
  return std::make_unique<PlainCodec>(spec);
}

}  // namespace braid
