// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>

#include "codec/all_codecs.h"
#include "codec/sign_kernels.h"

namespace braid {
namespace {

constexpr uint64_t kUnitBytes = sizeof(float);

CodecTraits vote_traits() {
  CodecTraits traits;
  traits.granule = 0;
  traits.not_finite = NotFinite::Part;
  return traits;
}

// SignSGD with majority vote (Bernstein et al., "signSGD with Majority Vote is Communication
// Efficient and Fault Tolerant", ICLR 2019, algorithm 1). A part is what a sign stands for, 1 or
// NaN (float32), and the signs; zero counts as +1, and −0 as −1.
//
// To add decoded parts in float32 gives the votes' sum, and to encode that gives the majority: a
// tie is zero, and zero is +1.
class VoteCodec final : public GradientCodec {
 public:
  explicit VoteCodec(const CodecSpec& spec) : GradientCodec(spec, vote_traits()) {}

  uint64_t encoded_bytes_max(uint64_t count) const override {
    return count == 0 ? 0 : kUnitBytes + sign_bytes(count);
  }

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
};

}  // namespace

std::unique_ptr<GradientCodec> vote_codec(const CodecSpec& spec) {
  return std::make_unique<VoteCodec>(spec);
}

}  // namespace braid
