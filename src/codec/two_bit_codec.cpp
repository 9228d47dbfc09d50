// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "codec/all_codecs.h"
#include "codec/integer_counts.h"
#include "codec/rows.h"
#include "codec/ternary_kernels.h"

namespace braid {
namespace {

CodecTraits two_bit_traits() {
  CodecTraits traits;
  traits.granule = kRowElements;
  traits.wants_memory = true;
  traits.addition = Addition::AsIntegers;
  return traits;
}

// MXNet's 2-bit compression ("Gradient Compression", MXNet documentation), also that of CD-SGD (Yu
// et al., "CD-SGD: Distributed Stochastic Gradient Descent with Compression and Delay
// Compensation", ICPP 2021): ±threshold, or 0. The threshold is meant for sums over a batch; for
// means divide it by the batch's size. MXNet packs two bits side by side; here they lie in two
// planes.
class TwoBitCodec final : public GradientCodec, private IntegerSums {
 public:
  explicit TwoBitCodec(const CodecSpec& spec) : GradientCodec(spec, two_bit_traits()) {}

  uint64_t encoded_bytes_max(uint64_t count) const override { return ternary_bytes(count); }

  const IntegerSums* integer_sums() const override { return this; }

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

 private:
  Status add_encoded(std::span<const uint8_t> encoded, std::span<int8_t> counts) const override {
    BRAID_RETURN_IF_ERROR(check_length(encoded, counts.size()));
    count_ternary(encoded.data(), counts);
    return Status::ok();
  }

  void decode_counts(std::span<const int8_t> counts, std::span<float> out) const override {
    for (size_t i = 0; i < counts.size(); ++i) {
      const float sum = static_cast<float>(counts[i]) * spec().threshold;
      out[i] = counts[i] == kNotFinite ? std::numeric_limits<float>::quiet_NaN() : sum;
    }
  }
};

}  // namespace

std::unique_ptr<GradientCodec> two_bit_codec(const CodecSpec& spec) {
  return std::make_unique<TwoBitCodec>(spec);
}

}  // namespace braid
