// SPDX-License-Identifier: Apache-2.0
#include "codec/half_kernels.h"

// The order matters: Highway's first header compiles all that follows once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/half_kernels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "codec/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace braid {
namespace HWY_NAMESPACE {

template <class Half>
void encode_lanes(const float* in, uint64_t count, uint8_t* out) {
  uint64_t i = 0;
  for (; count - i >= kRow; i += kRow) {
    for (size_t v = 0; v < kRow; v += kLanes) {
      hn::StoreU(Half::round(hn::LoadU(F32(), in + i + v)), U16(),
                 reinterpret_cast<uint16_t*>(out) + i + v);
    }
  }
  if (i == count) return;
  const PaddedRow last(in + i, count - i);
  HWY_ALIGN uint16_t halves[kRow];
  for (size_t v = 0; v < kRow; v += kLanes) {
    hn::StoreU(Half::round(hn::Load(F32(), last.elements + v)), U16(), halves + v);
  }
  std::memcpy(out + 2 * i, halves, (count - i) * sizeof(uint16_t));
}

void encode_all(HalfKind kind, const float* in, uint64_t count, uint8_t* out) {
  switch (kind) {
    case HalfKind::BFloat16:
      return encode_lanes<BFloat16Lanes>(in, count, out);
    case HalfKind::Float16:
      return encode_lanes<Float16Lanes>(in, count, out);
  }
}

HWY_INLINE hn::Vec<U16> round_dithered(VF32 value, VU32 random) {
  const U32 d;
  const auto bits = bits_of(value);
  // What is added stays below the last bit that is kept: it carries as often as the rest is large.
  const auto rounded = hn::Add(bits, hn::ShiftRight<16>(random));
  const auto largest = hn::Set(d, 0x7f7fffffu);
  const auto quiet = hn::Or(bits, hn::Set(d, 0x00400000u));
  const auto special =
      select_if_greater(magnitude_bits(value), hn::Set(d, 0x7f800000u), quiet, bits);
  return narrow(
      hn::ShiftRight<16>(select_if_greater(magnitude_bits(value), largest, special, rounded)));
}

void encode_all_dithered(const Dither& dither, const float* in, uint64_t count, uint8_t* out) {
  for_rows(in, count, [&](const float* row, uint64_t i) HWY_ATTR {
    HWY_ALIGN uint16_t halves[kRow];
    for (size_t v = 0; v < kRowVectors; ++v) {
      const auto value = hn::LoadU(F32(), row + v * kLanes);
      hn::StoreU(round_dithered(value, random_bits(dither, i, v)), U16(), halves + v * kLanes);
    }
    std::memcpy(out + 2 * i, halves, HWY_MIN(kRow, count - i) * sizeof(uint16_t));
  });
}

template <class Half, Into into>
void decode_lanes(const uint8_t* in, uint64_t count, float* out) {
  uint64_t i = 0;
  for (; count - i >= kRow; i += kRow) {
    for (size_t v = 0; v < kRow; v += kLanes) {
      put<into>(Half::widen(reinterpret_cast<const uint16_t*>(in) + i + v), out + i + v);
    }
  }
  if (i == count) return;
  HWY_ALIGN uint16_t halves[kRow] = {};
  std::memcpy(halves, in + 2 * i, (count - i) * sizeof(uint16_t));
  PaddedRow last(out + i, count - i);
  for (size_t v = 0; v < kRow; v += kLanes) {
    put<into>(Half::widen(halves + v), last.elements + v);
  }
  std::memcpy(out + i, last.elements, (count - i) * sizeof(float));
}

template <class Half>
void decode_by(const uint8_t* in, uint64_t count, Into into, float* out) {
  switch (into) {
    case Into::Store:
      return decode_lanes<Half, Into::Store>(in, count, out);
    case Into::Add:
      return decode_lanes<Half, Into::Add>(in, count, out);
    case Into::Error:
      return decode_lanes<Half, Into::Error>(in, count, out);
  }
}

void decode_all(HalfKind kind, const uint8_t* in, uint64_t count, Into into, float* out) {
  switch (kind) {
    case HalfKind::BFloat16:
      return decode_by<BFloat16Lanes>(in, count, into, out);
    case HalfKind::Float16:
      return decode_by<Float16Lanes>(in, count, into, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace braid
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid {

HWY_EXPORT(encode_all);
HWY_EXPORT(encode_all_dithered);
HWY_EXPORT(decode_all);

void encode_halves(HalfKind kind, const float* in, uint64_t count, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(encode_all)(kind, in, count, out);
}

void encode_bfloat16_dithered(const Dither& dither, const float* in, uint64_t count, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(encode_all_dithered)(dither, in, count, out);
}

void decode_halves(HalfKind kind, const uint8_t* in, uint64_t count, Into into, float* out) {
  HWY_DYNAMIC_DISPATCH(decode_all)(kind, in, count, into, out);
}

}  // namespace braid
#endif  // HWY_ONCE
