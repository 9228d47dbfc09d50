// SPDX-License-Identifier: Apache-2.0
// float16 and bfloat16 from and to float32, rounded to nearest even, with the same bits on all
// targets. Highway 1.0 truncates bfloat16, and without conversion instructions it loses float16's
// infinities and NaNs; so these are written out here. Included once per target by the files of
// kernels, which have Highway: hence its toggle as the guard.
#if defined(BRAID_HALF_FLOAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_HALF_FLOAT_INL_H_
#undef BRAID_HALF_FLOAT_INL_H_
#else
#define BRAID_HALF_FLOAT_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace braid {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::Rebind<uint32_t, F32>;
using I32 = hn::Rebind<int32_t, F32>;
using U16 = hn::Rebind<uint16_t, F32>;  // half a vector
using VF32 = hn::Vec<F32>;
using VU32 = hn::Vec<U32>;

// The values fit: nothing saturates.
HWY_INLINE hn::Vec<U16> narrow(VU32 bits) { return hn::DemoteTo(U16(), hn::BitCast(I32(), bits)); }

// a > b ? yes : no, where both sides of the comparison have no sign bit (the targets compare
// signed numbers fastest).
HWY_INLINE VU32 select_if_greater(VU32 a, VU32 b, VU32 yes, VU32 no) {
  const I32 di;
  const U32 du;
  const auto greater = hn::VecFromMask(di, hn::Gt(hn::BitCast(di, a), hn::BitCast(di, b)));
  return hn::IfVecThenElse(hn::BitCast(du, greater), yes, no);
}

struct BFloat16Lanes {
  static HWY_INLINE VF32 widen(const uint16_t* from) {
    const auto bits = hn::PromoteTo(U32(), hn::LoadU(U16(), from));
    return hn::BitCast(F32(), hn::ShiftLeft<16>(bits));
  }

  static HWY_INLINE hn::Vec<U16> round(VF32 value) {
    const U32 d;
    const auto bits = hn::BitCast(d, value);
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7fffffffu));
    const auto is_odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1u));
    const auto rounded = hn::Add(bits, hn::Add(is_odd, hn::Set(d, 0x7fffu)));
    const auto quiet_nan = hn::Or(bits, hn::Set(d, 0x00400000u));
    const auto chosen = select_if_greater(magnitude, hn::Set(d, 0x7f800000u), quiet_nan, rounded);
    return narrow(hn::ShiftRight<16>(chosen));
  }
};

#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86  // the processor's own conversions do the same
struct Float16Lanes {
  using F16 = hn::Rebind<hwy::float16_t, F32>;
  static HWY_INLINE VF32 widen(const uint16_t* from) {
    return hn::PromoteTo(F32(), hn::BitCast(F16(), hn::LoadU(U16(), from)));
  }
  static HWY_INLINE hn::Vec<U16> round(VF32 value) {
    return hn::BitCast(U16(), hn::DemoteTo(F16(), value));
  }
};
#else
struct Float16Lanes {
  static HWY_INLINE VF32 widen(const uint16_t* from) {
    const U32 d;
    const auto half = hn::PromoteTo(d, hn::LoadU(U16(), from));
    const auto magnitude = hn::ShiftLeft<13>(hn::And(half, hn::Set(d, 0x7fffu)));
    const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(d, 0x8000u)));
    // The exponent's bias differs by 112; a multiplication moves it, and makes normal numbers of
    // subnormal ones, exactly.
    const auto two_to_112 = hn::BitCast(F32(), hn::Set(d, 0x77800000u));
    const auto scaled = hn::BitCast(d, hn::Mul(hn::BitCast(F32(), magnitude), two_to_112));
    const auto special = hn::Or(magnitude, hn::Set(d, 0x7f800000u));  // infinity or NaN
    const auto value = select_if_greater(magnitude, hn::Set(d, 0x7bffu << 13), special, scaled);
    return hn::BitCast(F32(), hn::Or(value, sign));
  }

  static HWY_INLINE hn::Vec<U16> round(VF32 value) {
    const U32 d;
    const auto bits = hn::BitCast(d, value);
    const auto sign = hn::And(bits, hn::Set(d, 0x80000000u));
    const auto magnitude = hn::Xor(bits, sign);

    const auto is_odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 1u));
    const auto rebias = hn::Set(d, (static_cast<uint32_t>(15 - 127) << 23) + 0xfffu);
    const auto normal = hn::ShiftRight<13>(hn::Add(magnitude, hn::Add(rebias, is_odd)));
    // Adding 0.5 to a small number leaves its 16-bit mantissa, rounded by the processor, in the low
    // bits.
    const auto half = hn::Set(d, 0x3f000000u);
    const auto shifted = hn::Add(hn::BitCast(F32(), magnitude), hn::BitCast(F32(), half));
    const auto subnormal = hn::Sub(hn::BitCast(d, shifted), half);
    const auto infinity = hn::Set(d, 0x7c00u);
    const auto payload = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 0x3ffu));
    const auto nan = hn::Or(payload, hn::Set(d, 0x7e00u));

    auto chosen = select_if_greater(hn::Set(d, 113u << 23), magnitude, subnormal, normal);
    chosen = select_if_greater(magnitude, hn::Set(d, (143u << 23) - 1), infinity, chosen);
    chosen = select_if_greater(magnitude, hn::Set(d, 0x7f800000u), nan, chosen);
    return narrow(hn::Or(chosen, hn::ShiftRight<16>(sign)));
  }
};
#endif

}  // namespace HWY_NAMESPACE
}  // namespace braid
HWY_AFTER_NAMESPACE();

#endif
