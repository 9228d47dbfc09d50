// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include "codec/add_kernels.h"
#include "codec/all_codecs.h"
#include "codec/rows.h"
#include "codec/top_elements.h"

namespace braid {
namespace {

constexpr uint64_t kPairBytes = sizeof(uint32_t) + sizeof(float);

uint32_t magnitude_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits & kMagnitudeMask;
}

void forget_what_is_not_finite(std::span<float> memory) {
  for (float& one : memory) one = std::isfinite(one) ? one : 0;
}

CodecTraits top_traits(const CodecSpec& spec, uint32_t parts) {
  CodecTraits traits;
  traits.granule = 0;
  if (parts > 1) return traits;
  traits.wants_memory = true;
  if (spec.kind == CodecKind::Dgc) {
    traits.memory_floats = 2;
    traits.needs_memory = true;
  }
  return traits;
}

// k = ratio · count elements, rounded, 1 at least: first their indices (ascending), then their
// values. A sum of several parts has as many times k: all elements that are not zero.
//
// topk: Stich et al., "Sparsified SGD with Memory", NeurIPS 2018; the error memory is p without
// what was sent.
//
// dgc: Lin et al., "Deep Gradient Compression", ICLR 2018, sections 3.2 and 3.3 (momentum
// correction, factor masking). The memory is the velocity of each element, then what each has
// accumulated. Clipping, and the warm-up of the ratio, are left to the caller.
class TopCodec final : public GradientCodec {
 public:
  TopCodec(const CodecSpec& spec, uint32_t parts)
      : GradientCodec(spec, top_traits(spec, parts)), parts_(parts) {}

  uint64_t encoded_bytes_max(uint64_t count) const override { return kept(count) * kPairBytes; }

 protected:
  uint64_t encode_part(std::span<const float> values, const EncodePlace&,
                       uint8_t* encoded) const override {
    const float* const p = values.data();
    TopElements top(values.size(), kept(values.size()),
                    [p](uint64_t i) { return magnitude_of(p[i]); });
    top.look_at(p, values.size());
    write(top.choose(p), p, encoded);
    return encoded_bytes_max(values.size());
  }

  uint64_t encode_with_memory(std::span<const float> gradient, std::span<float> memory,
                              const EncodePlace&, uint8_t* encoded) const override {
    const uint64_t count = gradient.size();
    const float* const g = gradient.data();
    const bool has_velocity = spec().kind == CodecKind::Dgc;
    const float momentum = spec().momentum;
    float* const velocity = memory.data();
    float* const sums = memory.data() + (has_velocity ? count : 0);
    TopElements top(count, kept(count), [=](uint64_t i) {
      const float moved = has_velocity ? momentum * velocity[i] : 0;
      return magnitude_of(sums[i] + (moved + g[i]));
    });
    for (uint64_t at = 0; at < count; at += kSliceElements) {
      const uint64_t length = std::min(kSliceElements, count - at);
      if (has_velocity) {
        add_momentum(g + at, length, momentum, velocity + at, sums + at);
      } else {
        add_floats(g + at, length, sums + at);
      }
      top.look_at(sums + at, length);
    }
    const auto chosen = top.choose(sums);
    const bool is_finite = write(chosen, sums, encoded);
    for (const uint32_t index : chosen) {
      sums[index] = 0;
      velocity[index] = 0;  // of topk the same
    }
    if (!is_finite) forget_what_is_not_finite(memory);
    return encoded_bytes_max(count);
  }

  Status decode_part(std::span<const uint8_t> encoded, Into into,
                     std::span<float> elements) const override {
    BRAID_RETURN_IF_ERROR(check_length(encoded, elements.size()));
    const uint64_t k = kept(elements.size());
    const uint8_t* const indices = encoded.data();
    int64_t before = -1;
    bool is_ascending = true;
    for (uint64_t i = 0; i < k; ++i) {
      const int64_t index = load<uint32_t>(indices, i);
      is_ascending &= index > before;
      before = index;
    }
    if (!is_ascending) return malformed("indices that do not ascend");
    if (before >= static_cast<int64_t>(elements.size())) return malformed("an index past the end");
    const uint8_t* const values = encoded.data() + k * sizeof(uint32_t);
    if (into == Into::Store) std::fill(elements.begin(), elements.end(), 0.0f);
    for (uint64_t i = 0; i < k; ++i) {
      float& element = elements[load<uint32_t>(indices, i)];
      const float value = load<float>(values, i);
      if (into == Into::Error) {
        element = std::isfinite(element - value) ? element - value : 0;
      } else {
        element = into == Into::Add ? element + value : value;
      }
    }
    return Status::ok();
  }

 private:
  uint64_t kept(uint64_t count) const {
    const double share = std::floor(spec().ratio * static_cast<double>(count) + 0.5);
    return std::min(count, parts_ * std::max<uint64_t>(1, static_cast<uint64_t>(share)));
  }

  template <typename T>
  static T load(const uint8_t* from, uint64_t index) {
    T value;
    std::memcpy(&value, from + index * sizeof(T), sizeof(T));
    return value;
  }

  // False: something that was chosen is not finite; then something that was not may be so, too.
  static bool write(std::span<const uint32_t> chosen, const float* values, uint8_t* encoded) {
    std::memcpy(encoded, chosen.data(), chosen.size_bytes());
    encoded += chosen.size_bytes();
    bool is_finite = true;
    for (const uint32_t index : chosen) {
      is_finite &= std::isfinite(values[index]);
      std::memcpy(encoded, values + index, sizeof(float));
      encoded += sizeof(float);
    }
    return is_finite;
  }

  const uint64_t parts_;
};

}  // namespace

std::unique_ptr<GradientCodec> top_codec(const CodecSpec& spec, uint32_t parts) {
  return std::make_unique<TopCodec>(spec, parts);
}

}  // namespace braid
