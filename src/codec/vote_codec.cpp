// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>

#include "codec/all_codecs.h"
#include "codec/integer_counts.h"
#include "codec/sign_kernels.h"

namespace braid {
namespace {

constexpr uint64_t kUnitBytes = sizeof(float);

CodecTraits vote_traits() {
  CodecTraits traits;
  traits.granule = 0;
  traits.addition = Addition::AsIntegers;
  traits.not_finite = NotFinite::Part;
  return traits;
}

// SignSGD with majority vote (Bernstein et al., "signSGD with Majority Vote is Communication
// Efficient and Fault Tolerant", ICLR 2019, algorithm 1). A part is what a sign stands for, 1 or
// NaN (float32), and the signs; zero counts as +1, and −0 as −1.
//
// Whoever adds decoded parts in float32 gets the votes' sum, and the majority by encoding that: a
// tie is zero, and zero is +1.
class VoteCodec final : public GradientCodec, private IntegerSums {
 public:
  explicit VoteCodec(const CodecSpec& spec) : GradientCodec(spec, vote_traits()) {}

  uint64_t encoded_bytes_max(uint64_t count) const override {
    return count == 0 ? 0 : kUnitBytes + sign_bytes(count);
  }

  const IntegerSums* integer_sums() const override { return this; }

 protected:
  uint64_t encode_part(std::span<const float> values, const EncodePlace&,
                       uint8_t* encoded) const override {
    const bool can_vote = encode_signs_alone(values.data(), values.size(), encoded + kUnitBytes);
    const float unit = can_vote ? 1 : std::numeric_limits<float>::quiet_NaN();
    std::memcpy(encoded, &unit, sizeof(unit));
    return encoded_bytes_max(values.size());
  }

  Status decode_part(std::span<const uint8_t> encoded, Into into,
                     std::span<float> elements) const override {
    float unit = 0;
    BRAID_RETURN_IF_ERROR(take_unit(encoded, elements.size(), unit));
    decode_signs(encoded.data() + kUnitBytes, elements.size(), unit, -unit, into, elements.data());
    return Status::ok();
  }

 private:
  Status take_unit(std::span<const uint8_t> encoded, uint64_t count, float& unit) const {
    BRAID_RETURN_IF_ERROR(check_length(encoded, count));
    std::memcpy(&unit, encoded.data(), sizeof(unit));
    return unit == 1 || std::isnan(unit) ? Status::ok() : malformed("a vote that is not 1 or NaN");
  }

  Status add_encoded(std::span<const uint8_t> encoded, std::span<int8_t> counts) const override {
    if (counts.empty()) return check_length(encoded, 0);
    float unit = 0;
    BRAID_RETURN_IF_ERROR(take_unit(encoded, counts.size(), unit));
    if (std::isnan(unit)) {
      spoil_counts(counts);
    } else {
      count_signs(encoded.data() + kUnitBytes, counts);
    }
    return Status::ok();
  }

  void decode_counts(std::span<const int8_t> counts, std::span<float> out) const override {
    for (size_t i = 0; i < counts.size(); ++i) {
      const float majority = counts[i] < 0 ? -1.0f : 1.0f;
      out[i] = counts[i] == kNotFinite ? std::numeric_limits<float>::quiet_NaN() : majority;
    }
  }
};

}  // namespace

std::unique_ptr<GradientCodec> vote_codec(const CodecSpec& spec) {
  return std::make_unique<VoteCodec>(spec);
}

}  // namespace braid
