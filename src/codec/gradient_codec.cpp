// SPDX-License-Identifier: Apache-2.0
#include "codec/gradient_codec.h"

#include <algorithm>

#include "base/assert.h"
#include "base/checked.h"
#include "codec/add_kernels.h"
#include "codec/rows.h"

namespace braid {
Result<uint64_t> GradientCodec::encode(std::span<const float> gradient, std::span<float> memory,
                                       const EncodePlace& place, std::span<uint8_t> encoded) const {
  const char* const name = codec_name(spec_.kind);
  if (gradient.size() > kPartElementsMax) {
    return make_status(StatusCode::InvalidArgument, "{}: a part of {} elements, {} are the most",
                       name, gradient.size(), kPartElementsMax);
  }
  if (memory.empty() ? traits_.needs_memory && !gradient.empty()
                     : memory.size() != gradient.size() * traits_.memory_floats) {
    return make_status(StatusCode::InvalidArgument,
                       "{}: error memory of {} floats for {} elements, right are {}", name,
                       memory.size(), gradient.size(), gradient.size() * traits_.memory_floats);
  }
  const uint64_t bytes_max = encoded_bytes_max(gradient.size());
  if (encoded.size() < bytes_max) {
    return make_status(StatusCode::InvalidArgument,
                       "{}: room for {} encoded bytes, {} elements may need {}", name,
                       encoded.size(), gradient.size(), bytes_max);
  }
  if (gradient.empty()) return uint64_t{0};
  const uint64_t bytes = memory.empty()
                             ? encode_part(gradient, place, encoded.data())
                             : encode_with_memory(gradient, memory, place, encoded.data());
  BRAID_ASSERT(bytes <= bytes_max, "a codec has made more than it said");
  return bytes;
}

Status GradientCodec::decode(std::span<const uint8_t> encoded, std::span<float> out) const {
  return decode_into(encoded, Into::Store, out);
}

Status GradientCodec::decode_and_add(std::span<const uint8_t> encoded, std::span<float> sum) const {
  return decode_into(encoded, Into::Add, sum);
}

Status GradientCodec::decode_into(std::span<const uint8_t> encoded, Into into,
                                  std::span<float> elements) const {
  if (elements.size() > kPartElementsMax) return malformed("a part that is too large");
  if (elements.empty()) return encoded.empty() ? Status::ok() : malformed("bytes for no elements");
  return decode_part(encoded, into, elements);
}

uint64_t GradientCodec::encode_with_memory(std::span<const float> gradient, std::span<float> memory,
                                           const EncodePlace& place, uint8_t* encoded) const {
  const uint64_t slice =
      traits_.granule == 0 ? gradient.size() : round_up(kSliceElements, traits_.granule);
  uint64_t bytes = 0;
  for (uint64_t at = 0; at < gradient.size(); at += slice) {
    const uint64_t count = std::min(slice, gradient.size() - at);
    const auto values = memory.subspan(at, count);
    add_floats(gradient.data() + at, count, values.data());
    const EncodePlace here = {place.stream, place.step, place.first_element + at};
    const uint64_t length = encode_part(values, here, encoded + bytes);
    const Status status = decode_part({encoded + bytes, length}, Into::Error, values);
    BRAID_ASSERT(status.is_ok(), "a codec does not understand itself");
    bytes += length;
  }
  return bytes;
}

Status GradientCodec::check_length(std::span<const uint8_t> encoded, uint64_t count) const {
  if (encoded.size() == encoded_bytes_max(count)) return Status::ok();
  return make_status(StatusCode::Protocol, "{}: {} encoded bytes for {} elements, right are {}",
                     codec_name(spec_.kind), encoded.size(), count, encoded_bytes_max(count));
}

Status GradientCodec::malformed(std::string_view what) const {
  return make_status(StatusCode::Protocol, "{}: malformed part: {}", codec_name(spec_.kind), what);
}

}  // namespace braid
