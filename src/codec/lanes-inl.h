// SPDX-License-Identifier: Apache-2.0
// What the codecs' kernels share. Elements are worked on in rows of 16, whatever the width of the
// vectors, and every sum has one accumulator for each place in a row: so the order of additions,
// and all bits, are the same on all targets. Included once per target: hence Highway's toggle.
#if defined(BRAID_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_LANES_INL_H_
#undef BRAID_LANES_INL_H_
#else
#define BRAID_LANES_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/half_float-inl.h"
#include "codec/dither.h"
#include "codec/into.h"
#include "codec/rows.h"

HWY_BEFORE_NAMESPACE();
namespace braid {
namespace HWY_NAMESPACE {

using VI32 = hn::Vec<I32>;

constexpr size_t kRow = kRowElements;
constexpr size_t kLanes = hn::MaxLanes(F32());
constexpr size_t kRowVectors = kRow / kLanes;
static_assert(kLanes <= kRow && kRow % kLanes == 0);

// The last elements of a part, fewer than a row, followed by zeros.
struct PaddedRow {
  HWY_ALIGN float elements[kRow] = {};
  PaddedRow() = default;
  PaddedRow(const float* from, uint64_t count) {
    std::memcpy(elements, from, count * sizeof(float));
  }
};

// row(elements, index of the first) for all rows of `in`, the last one padded.
template <class Row>
HWY_INLINE void for_rows(const float* in, uint64_t count, const Row& row) {
  uint64_t i = 0;
  for (; count - i >= kRow; i += kRow) row(in + i, i);
  if (i == count) return;
  const PaddedRow last(in + i, count - i);
  row(last.elements, i);
}

// row(elements to change, index of the first): the same for what is written in place.
template <class Row>
HWY_INLINE void change_rows(float* elements, uint64_t count, const Row& row) {
  uint64_t i = 0;
  for (; count - i >= kRow; i += kRow) row(elements + i, i);
  if (i == count) return;
  PaddedRow last(elements + i, count - i);
  row(last.elements, i);
  std::memcpy(elements + i, last.elements, (count - i) * sizeof(float));
}

template <Into into>
HWY_INLINE void put(VF32 value, float* to) {
  const F32 d;
  if constexpr (into == Into::Add) value = hn::Add(hn::LoadU(d, to), value);
  if constexpr (into == Into::Error) {
    value = hn::Sub(hn::LoadU(d, to), value);
    // x − x is 0 only where x is finite
    value = hn::IfThenElseZero(hn::Eq(hn::Sub(value, value), hn::Zero(d)), value);
  }
  hn::StoreU(value, d, to);
}

HWY_INLINE VU32 bits_of(VF32 value) { return hn::BitCast(U32(), value); }
HWY_INLINE VF32 float_of(VU32 bits) { return hn::BitCast(F32(), bits); }
HWY_INLINE VI32 signed_of(VU32 bits) { return hn::BitCast(I32(), bits); }
HWY_INLINE VU32 magnitude_bits(VF32 value) {
  return hn::And(bits_of(value), hn::Set(U32(), 0x7fffffffu));
}

// One bit per lane, the first lane's the lowest.
template <class M>
HWY_INLINE uint32_t mask_bits(const M& mask) {
  uint8_t bytes[8] = {};
  hn::StoreMaskBits(F32(), mask, bytes);
  if constexpr (kLanes <= 8) {
    return bytes[0];
  } else {
    return static_cast<uint32_t>(bytes[0] | (bytes[1] << 8));
  }
}

// The sign bits of a row.
HWY_INLINE uint32_t sign_bits(const float* row) {
  uint32_t bits = 0;
  for (size_t v = 0; v < kRowVectors; ++v) {
    const auto is_negative = hn::MaskFromVec(float_of(hn::BitCast(
        U32(), hn::ShiftRight<31>(signed_of(bits_of(hn::LoadU(F32(), row + v * kLanes)))))));
    bits |= mask_bits(is_negative) << (v * kLanes);
  }
  return bits;
}

// Bit v·lanes + i of `bits` as lane i's highest bit; the others are any.
HWY_INLINE VU32 bits_on_top(uint32_t bits, size_t v) {
  HWY_ALIGN static constexpr uint32_t kShift[kRow] = {31, 30, 29, 28, 27, 26, 25, 24,
                                                      23, 22, 21, 20, 19, 18, 17, 16};
  const U32 d;
  return hn::Shl(hn::Set(d, bits), hn::Load(d, kShift + v * kLanes));
}

// All bits of the lanes whose bit is set.
HWY_INLINE VU32 lanes_of_bits(uint32_t bits, size_t v) {
  return hn::BitCast(U32(), hn::ShiftRight<31>(signed_of(bits_on_top(bits, v))));
}

HWY_INLINE void store_u16(uint32_t bits, uint8_t* to) {
  const auto value = static_cast<uint16_t>(bits);
  std::memcpy(to, &value, sizeof(value));
}
HWY_INLINE uint32_t load_u16(const uint8_t* from) {
  uint16_t value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// Dither::bits() for vector v of the row that begins `index` elements after the first.
HWY_INLINE VU32 random_bits(const Dither& dither, uint64_t index, size_t v) {
  const U32 d;
  const auto first = static_cast<uint32_t>(dither.first_place + index + v * kLanes);
  VU32 x = hn::Xor(hn::Iota(d, first), hn::Set(d, dither.first_key));
  x = hn::Xor(x, hn::ShiftRight<17>(x));
  x = hn::Add(hn::Mul(x, hn::Set(d, Dither::kMultipliers[0])), hn::Set(d, dither.second_key));
  x = hn::Xor(x, hn::ShiftRight<11>(x));
  x = hn::Mul(x, hn::Set(d, Dither::kMultipliers[1]));
  x = hn::Xor(x, hn::ShiftRight<15>(x));
  x = hn::Mul(x, hn::Set(d, Dither::kMultipliers[2]));
  return hn::Xor(x, hn::ShiftRight<14>(x));
}

// From 0 to below 1, in steps of 2^−24.
HWY_INLINE VF32 random_unit(VU32 bits) {
  const auto whole = hn::ConvertTo(F32(), signed_of(hn::ShiftRight<8>(bits)));
  return hn::Mul(whole, hn::Set(F32(), 0x1p-24f));
}

// The largest magnitude, as bits: NaN is larger than infinity, which is larger than all numbers.
HWY_INLINE uint32_t largest_magnitude(const float* in, uint64_t count) {
  const I32 d;
  VI32 largest[kRowVectors];
  for (auto& one : largest) one = hn::Zero(d);
  for_rows(in, count, [&](const float* row, uint64_t) HWY_ATTR {
    for (size_t v = 0; v < kRowVectors; ++v) {
      const auto bits = magnitude_bits(hn::LoadU(F32(), row + v * kLanes));
      largest[v] = hn::Max(largest[v], signed_of(bits));
    }
  });
  VI32 all = largest[0];
  for (const auto& one : largest) all = hn::Max(all, one);
  return static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(d, all)));
}

}  // namespace HWY_NAMESPACE
}  // namespace braid
HWY_AFTER_NAMESPACE();

#endif
