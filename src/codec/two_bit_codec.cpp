// SPDX-License-Identifier: Apache-2.0
#include "codec/all_codecs.h"
#include "codec/rows.h"
#include "codec/ternary_kernels.h"

namespace braid {
namespace {

CodecTraits two_bit_traits() {
  CodecTraits traits;
  traits.granule = kRowElements;
  traits.wants_memory = true;
  return traits;
}

// MXNet's 2-bit compression ("Gradient Compression", MXNet documentation), also that of CD-SGD (Yu
// et al., "CD-SGD: Distributed Stochastic Gradient Descent with Compression and Delay
// Compensation", ICPP 2021): ±threshold, or 0. The threshold is meant for sums over a batch; for
// means divide it by the batch's size. MXNet packs two bits side by side; here they lie in two
// planes.
class TwoBitCodec final : public GradientCodec {
 public:
  explicit TwoBitCodec(const CodecSpec& spec) : GradientCodec(spec, two_bit_traits()) {}

  uint64_t encoded_bytes_max(uint64_t count) const override { return ternary_bytes(count); }

 protected:
  uint64_t encode_part(std::span<const float> values, const EncodePlace&,
                       uint8_t* encoded) const override {
    encode_by_threshold(values.data(), values.size(), spec().threshold, encoded);
    return ternary_bytes(values.size());
  }

  uint64_t encode_with_memory(std::span<const float> gradient, std::span<float> memory,
                              const EncodePlace&, uint8_t* encoded) const override {
    encode_by_threshold(gradient.data(), gradient.size(), spec().threshold, memory.data(), encoded);
    return ternary_bytes(gradient.size());
  }

  Status decode_part(std::span<const uint8_t> encoded, Into into,
                     std::span<float> elements) const override {
    BRAID_RETURN_IF_ERROR(check_length(encoded, elements.size()));
    decode_ternary(encoded.data(), elements.size(), spec().threshold, into, elements.data());
    return Status::ok();
  }
};

}  // namespace

std::unique_ptr<GradientCodec> two_bit_codec(const CodecSpec& spec) {
  return std::make_unique<TwoBitCodec>(spec);
}

}  // namespace braid
