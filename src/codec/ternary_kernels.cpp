// SPDX-License-Identifier: Apache-2.0
#include "codec/ternary_kernels.h"

#include <limits>

// The order matters: Highway's first header compiles all that follows once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/ternary_kernels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "codec/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace braid {
namespace HWY_NAMESPACE {

HWY_INLINE void store_ternary(uint32_t plus, uint32_t minus, uint8_t* to) {
  const uint32_t both = plus | (minus << 16);
  std::memcpy(to, &both, sizeof(both));
}

void encode_with_threshold(const float* in, uint64_t count, float threshold, uint8_t* out) {
  const F32 d;
  const auto least = hn::Set(d, threshold);
  const auto most = hn::Set(d, -threshold);
  for_rows(in, count, [&](const float* row, uint64_t i) HWY_ATTR {
    uint32_t plus = 0;
    uint32_t minus = 0;
    uint32_t finite = 0;
    for (size_t v = 0; v < kRowVectors; ++v) {
      const auto value = hn::LoadU(d, row + v * kLanes);
      plus |= mask_bits(hn::Ge(value, least)) << (v * kLanes);
      minus |= mask_bits(hn::Le(value, most)) << (v * kLanes);
      finite |= mask_bits(hn::Eq(hn::Sub(value, value), hn::Zero(d))) << (v * kLanes);
    }
    const uint32_t others = finite ^ 0xffffu;
    store_ternary(plus | others, minus | others, out + i / 4);
  });
}

void encode_threshold_error(const float* gradient, uint64_t count, float threshold, float* memory,
                            uint8_t* out) {
  const F32 d;
  const auto least = hn::Set(d, threshold);
  const auto sign = hn::Set(d, -0.0f);
  uint64_t i = 0;
  const auto take = [&](const float* from, float* row) HWY_ATTR {
    uint32_t plus = 0;
    uint32_t minus = 0;
    uint32_t finite = 0;
    for (size_t v = 0; v < kRowVectors; ++v) {
      const auto value = hn::Add(hn::LoadU(d, from + v * kLanes), hn::LoadU(d, row + v * kLanes));
      const auto is_sent = hn::Ge(hn::Abs(value), least);
      const uint32_t sent = mask_bits(is_sent) << (v * kLanes);
      const uint32_t negative = mask_bits(hn::Lt(value, hn::Zero(d))) << (v * kLanes);
      plus |= sent & ~negative;
      minus |= sent & negative;
      const auto taken = hn::IfThenElseZero(is_sent, hn::Or(least, hn::And(sign, value)));
      const auto left = hn::Sub(value, taken);
      const auto is_finite = hn::Eq(hn::Sub(left, left), hn::Zero(d));
      finite |= mask_bits(is_finite) << (v * kLanes);
      hn::StoreU(hn::IfThenElseZero(is_finite, left), d, row + v * kLanes);
    }
    const uint32_t others = finite ^ 0xffffu;
    store_ternary(plus | others, minus | others, out + i / 4);
  };
  for (; count - i >= kRow; i += kRow) take(gradient + i, memory + i);
  if (i == count) return;
  const PaddedRow last_gradient(gradient + i, count - i);
  PaddedRow last_memory(memory + i, count - i);
  take(last_gradient.elements, last_memory.elements);
  std::memcpy(memory + i, last_memory.elements, (count - i) * sizeof(float));
}

void encode_with_chance(const float* in, uint64_t count, float scale, const Dither& dither,
                        uint8_t* out) {
  const F32 d;
  const auto by = hn::Set(d, scale);
  for_rows(in, count, [&](const float* row, uint64_t i) HWY_ATTR {
    uint32_t sent = 0;
    for (size_t v = 0; v < kRowVectors; ++v) {
      const auto chance = hn::Div(hn::Abs(hn::LoadU(d, row + v * kLanes)), by);
      const auto drawn = random_unit(random_bits(dither, i, v));
      sent |= mask_bits(hn::Lt(drawn, chance)) << (v * kLanes);
    }
    const uint32_t negative = sign_bits(row);
    store_ternary(sent & ~negative, sent & negative, out + i / 4);
  });
}

template <Into into>
void decode_ternary_rows(const uint8_t* in, uint64_t count, float scale, float* out) {
  const U32 d;
  const auto magnitude = bits_of(hn::Set(F32(), scale));
  const auto sign = hn::Set(d, 0x80000000u);
  change_rows(out, count, [&](float* row, uint64_t i) HWY_ATTR {
    const uint32_t plus = load_u16(in + i / 4);
    const uint32_t minus = load_u16(in + i / 4 + 2);
    for (size_t v = 0; v < kRowVectors; ++v) {
      const auto sent = hn::And(lanes_of_bits(plus | minus, v), magnitude);
      auto value = hn::Or(sent, hn::And(bits_on_top(minus, v), sign));
      if ((plus & minus) != 0) value = hn::Or(value, lanes_of_bits(plus & minus, v));
      put<into>(float_of(value), row + v * kLanes);
    }
  });
}

void decode_all_ternary(const uint8_t* in, uint64_t count, float scale, Into into, float* out) {
  switch (into) {
    case Into::Store:
      return decode_ternary_rows<Into::Store>(in, count, scale, out);
    case Into::Add:
      return decode_ternary_rows<Into::Add>(in, count, scale, out);
    case Into::Error:
      return decode_ternary_rows<Into::Error>(in, count, scale, out);
  }
}

uint32_t largest_magnitude_of_all(const float* in, uint64_t count) {
  return largest_magnitude(in, count);
}

}  // namespace HWY_NAMESPACE
}  // namespace braid
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid {

HWY_EXPORT(encode_with_threshold);
HWY_EXPORT(encode_threshold_error);
HWY_EXPORT(encode_with_chance);
HWY_EXPORT(decode_all_ternary);
HWY_EXPORT(largest_magnitude_of_all);

void encode_by_threshold(const float* in, uint64_t count, float threshold, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(encode_with_threshold)(in, count, threshold, out);
}

void encode_by_threshold(const float* gradient, uint64_t count, float threshold, float* memory,
                         uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(encode_threshold_error)(gradient, count, threshold, memory, out);
}

void encode_by_chance(const float* in, uint64_t count, float scale, const Dither& dither,
                      uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(encode_with_chance)(in, count, scale, dither, out);
}

void decode_ternary(const uint8_t* in, uint64_t count, float scale, Into into, float* out) {
  HWY_DYNAMIC_DISPATCH(decode_all_ternary)(in, count, scale, into, out);
}

float largest_finite_magnitude(const float* in, uint64_t count) {
  const uint32_t bits = HWY_DYNAMIC_DISPATCH(largest_magnitude_of_all)(in, count);
  if (bits >= 0x7f800000u) return std::numeric_limits<float>::quiet_NaN();
  float largest;
  std::memcpy(&largest, &bits, sizeof(largest));
  return largest;
}

}  // namespace braid
#endif  // HWY_ONCE
