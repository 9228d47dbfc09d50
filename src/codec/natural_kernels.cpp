// SPDX-License-Identifier: Apache-2.0
#include "codec/natural_kernels.h"

// The order matters: Highway's first header compiles all that follows once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/natural_kernels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "codec/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace braid {
namespace HWY_NAMESPACE {

constexpr size_t kNaturalRowBytes = kRow + 2;

void encode_powers(const float* in, uint64_t count, const Dither& dither, uint8_t* out) {
  const U32 d;
  const hn::Rebind<uint8_t, F32> d8;
  for_rows(in, count, [&](const float* row, uint64_t i) HWY_ATTR {
    uint8_t* const to = out + i / kRow * kNaturalRowBytes;
    for (size_t v = 0; v < kRowVectors; ++v) {
      const auto magnitude = magnitude_bits(hn::LoadU(F32(), row + v * kLanes));
      // The mantissa is the probability of the next power: it carries as often as it is large.
      const auto carried = hn::Add(magnitude, hn::ShiftRight<9>(random_bits(dither, i, v)));
      const auto most = hn::Set(d, 254u << 23);
      const auto finite = hn::Min(carried, most);
      const auto nan = hn::Set(d, 255u << 23);
      const auto chosen = select_if_greater(magnitude, hn::Set(d, 0x7f7fffffu), nan, finite);
      const auto exponents = signed_of(hn::ShiftRight<23>(chosen));
      hn::StoreU(hn::DemoteTo(d8, exponents), d8, to + v * kLanes);
    }
    store_u16(sign_bits(row), to + kRow);
  });
}

template <Into into>
void decode_power_rows(const uint8_t* in, uint64_t count, float* out) {
  const U32 d;
  const hn::Rebind<uint8_t, F32> d8;
  change_rows(out, count, [&](float* row, uint64_t i) HWY_ATTR {
    const uint8_t* const from = in + i / kRow * kNaturalRowBytes;
    const uint32_t signs = load_u16(from + kRow);
    for (size_t v = 0; v < kRowVectors; ++v) {
      const auto exponents = hn::PromoteTo(d, hn::LoadU(d8, from + v * kLanes));
      const auto magnitude = hn::ShiftLeft<23>(exponents);
      const auto largest = hn::Set(d, 254u << 23);
      const auto value = select_if_greater(magnitude, largest, hn::Set(d, 0x7fc00000u), magnitude);
      const auto sign = hn::And(bits_on_top(signs, v), hn::Set(d, 0x80000000u));
      put<into>(float_of(hn::Or(value, sign)), row + v * kLanes);
    }
  });
}

void decode_powers(const uint8_t* in, uint64_t count, Into into, float* out) {
  switch (into) {
    case Into::Store:
      return decode_power_rows<Into::Store>(in, count, out);
    case Into::Add:
      return decode_power_rows<Into::Add>(in, count, out);
    case Into::Error:
      return decode_power_rows<Into::Error>(in, count, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace braid
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid {

HWY_EXPORT(encode_powers);
HWY_EXPORT(decode_powers);

void encode_natural(const float* in, uint64_t count, const Dither& dither, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(encode_powers)(in, count, dither, out);
}

void decode_natural(const uint8_t* in, uint64_t count, Into into, float* out) {
  HWY_DYNAMIC_DISPATCH(decode_powers)(in, count, into, out);
}

}  // namespace braid
#endif  // HWY_ONCE
