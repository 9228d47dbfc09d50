// SPDX-License-Identifier: Apache-2.0
#include "codec/block_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/checked.h"
#include "codec/euclidean_norm.h"
#include "codec/rows.h"

// The order matters: Highway's first header compiles all that follows once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/block_kernels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "codec/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace braid {
namespace HWY_NAMESPACE {

// The nearest whole number, ties to even, in the lower bits: below 2^22 there are no others.
HWY_INLINE VI32 nearest_int(VF32 value) {
  const auto magic = hn::Set(F32(), 0x1.8p23f);
  return hn::Sub(signed_of(bits_of(hn::Add(value, magic))), hn::Set(I32(), 0x4b400000));
}

// Up with the probability of what is above the whole number below.
HWY_INLINE VI32 dithered_int(VF32 value, VU32 random) {
  const auto below = hn::Floor(value);
  const auto is_up = hn::Lt(random_unit(random), hn::Sub(value, below));
  const auto up = hn::IfThenElseZero(is_up, hn::Set(F32(), 1.0f));
  return hn::ConvertTo(I32(), hn::Add(below, up));
}

// value · levels / scale → −levels … levels
struct IntCodes {
  static constexpr bool kIsSigned = true;

  template <bool dithered>
  static HWY_INLINE VI32 encode(VF32 value, VU32 random, uint32_t levels) {
    const auto most = hn::Set(I32(), static_cast<int32_t>(levels));
    const auto code = dithered ? dithered_int(value, random) : nearest_int(value);
    return hn::Max(hn::Min(code, most), hn::Neg(most));
  }
  static HWY_INLINE VF32 decode(VI32 code) { return hn::ConvertTo(F32(), code); }
};

// A sign, `exponent` bits and `mantissa` bits, with subnormal numbers.
template <int mantissa, int bias, uint32_t largest>
struct Fp8Codes {
  static constexpr bool kIsSigned = false;
  static constexpr int kShift = 23 - mantissa;

  template <bool dithered>
  static HWY_INLINE VI32 encode(VF32 value, VU32 random, uint32_t) {
    const U32 d;
    const auto magnitude = magnitude_bits(value);
    const auto sign = hn::ShiftRight<24>(hn::AndNot(hn::Set(d, 0x7fffffffu), bits_of(value)));
    const auto rebias = hn::Set(d, static_cast<uint32_t>(bias - 127) << 23);
    VU32 normal;
    VU32 subnormal;
    if constexpr (dithered) {
      const auto rest = hn::And(random, hn::Set(d, (1u << kShift) - 1));
      normal = hn::ShiftRight<kShift>(hn::Add(hn::Add(magnitude, rebias), rest));
      const auto steps = hn::Set(F32(), pow2(bias - 1 + mantissa));
      const auto code = dithered_int(hn::Mul(float_of(magnitude), steps), random);
      subnormal = hn::BitCast(d, code);
    } else {
      const auto is_odd = hn::And(hn::ShiftRight<kShift>(magnitude), hn::Set(d, 1u));
      const auto half = hn::Add(is_odd, hn::Set(d, (1u << (kShift - 1)) - 1));
      normal = hn::ShiftRight<kShift>(hn::Add(hn::Add(magnitude, rebias), half));
      // A number whose last bit is the smallest step: what is added to it is rounded to steps.
      const auto magic = hn::Set(F32(), pow2(1 - bias - mantissa + 23));
      subnormal = hn::Sub(bits_of(hn::Add(float_of(magnitude), magic)), bits_of(magic));
    }
    const auto normal_from = hn::Set(d, static_cast<uint32_t>(127 + 1 - bias) << 23);
    const auto code = select_if_greater(normal_from, magnitude, subnormal, normal);
    return signed_of(hn::Or(hn::Min(code, hn::Set(d, largest)), sign));
  }

  static HWY_INLINE VF32 decode(VI32 code) {
    const U32 d;
    const auto bits = hn::BitCast(d, code);
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7fu));
    const auto sign = hn::ShiftLeft<24>(hn::And(bits, hn::Set(d, 0x80u)));
    const auto moved = float_of(hn::ShiftLeft<kShift>(magnitude));
    const auto value = bits_of(hn::Mul(moved, hn::Set(F32(), pow2(127 - bias))));
    const auto nan = hn::Set(d, 0x7fc00000u);
    const auto chosen = select_if_greater(magnitude, hn::Set(d, largest), nan, value);
    return float_of(hn::Or(chosen, sign));
  }

 private:
  static constexpr float pow2(int exponent) {
    float value = 1;
    for (; exponent > 0; --exponent) value *= 2;
    for (; exponent < 0; ++exponent) value /= 2;
    return value;
  }
};
using Fp8E4M3Codes = Fp8Codes<3, 7, 0x7e>;
using Fp8E5M2Codes = Fp8Codes<2, 15, 0x7b>;

// 16 codes as bytes.
template <class Codes, bool dithered>
HWY_INLINE void encode_row(const float* row, VF32 to_code, const Dither& dither, uint64_t index,
                           uint32_t levels, uint8_t* bytes) {
  for (size_t v = 0; v < kRowVectors; ++v) {
    const auto value = hn::Mul(hn::LoadU(F32(), row + v * kLanes), to_code);
    const auto random = dithered ? random_bits(dither, index, v) : hn::Zero(U32());
    const auto code = Codes::template encode<dithered>(value, random, levels);
    using Byte = std::conditional_t<Codes::kIsSigned, int8_t, uint8_t>;
    hn::StoreU(hn::DemoteTo(hn::Rebind<Byte, F32>(), code), hn::Rebind<Byte, F32>(),
               reinterpret_cast<Byte*>(bytes) + v * kLanes);
  }
}

template <class Codes, Into into>
HWY_INLINE void decode_row(const uint8_t* bytes, VF32 scale, float* row) {
  for (size_t v = 0; v < kRowVectors; ++v) {
    using Byte = std::conditional_t<Codes::kIsSigned, int8_t, uint8_t>;
    const auto code =
        hn::LoadU(hn::Rebind<Byte, F32>(), reinterpret_cast<const Byte*>(bytes) + v * kLanes);
    put<into>(hn::Mul(Codes::decode(hn::PromoteTo(I32(), code)), scale), row + v * kLanes);
  }
}

// One code, one byte.
struct BytePacking {
  static constexpr uint64_t bytes(uint64_t count) { return count; }

  template <class Codes, bool dithered>
  static HWY_INLINE void encode(const float* in, uint64_t count, VF32 to_code, const Dither& dither,
                                uint64_t index, uint32_t levels, uint8_t* out) {
    for_rows(in, count, [&](const float* row, uint64_t i) HWY_ATTR {
      if (count - i >= kRow) {
        encode_row<Codes, dithered>(row, to_code, dither, index + i, levels, out + i);
        return;
      }
      uint8_t codes[kRow];
      encode_row<Codes, dithered>(row, to_code, dither, index + i, levels, codes);
      std::memcpy(out + i, codes, count - i);
    });
  }

  template <class Codes, Into into>
  static HWY_INLINE void decode(const uint8_t* in, uint64_t count, VF32 scale, float* out) {
    change_rows(out, count, [&](float* row, uint64_t i) HWY_ATTR {
      if (count - i >= kRow) return decode_row<Codes, into>(in + i, scale, row);
      uint8_t codes[kRow] = {};
      std::memcpy(codes, in + i, count - i);
      decode_row<Codes, into>(codes, scale, row);
    });
  }
};

// Two codes of a row, one byte.
struct NibblePacking {
  static constexpr uint64_t kRowBytes = kRow / 2;
  static constexpr uint64_t kLow = 0x0f0f0f0f0f0f0f0fULL;
  static constexpr uint64_t bytes(uint64_t count) { return (count + kRow - 1) / kRow * kRowBytes; }

  template <class Codes, bool dithered>
  static HWY_INLINE void encode(const float* in, uint64_t count, VF32 to_code, const Dither& dither,
                                uint64_t index, uint32_t levels, uint8_t* out) {
    for_rows(in, count, [&](const float* row, uint64_t i) HWY_ATTR {
      uint8_t codes[kRow];
      encode_row<Codes, dithered>(row, to_code, dither, index + i, levels, codes);
      uint64_t first = 0;
      uint64_t second = 0;
      std::memcpy(&first, codes, sizeof(first));
      std::memcpy(&second, codes + sizeof(first), sizeof(second));
      const uint64_t packed = (first & kLow) | ((second & kLow) << 4);
      std::memcpy(out + i / 2, &packed, sizeof(packed));
    });
  }

  template <class Codes, Into into>
  static HWY_INLINE void decode(const uint8_t* in, uint64_t count, VF32 scale, float* out) {
    change_rows(out, count, [&](float* row, uint64_t i) HWY_ATTR {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3  // through memory the two halves would have to wait
      const hn::Full64<uint8_t> d8;
      const auto low = hn::Set(d8, 15);
      const auto packed = hn::LoadU(d8, in + i / 2);
      const auto moved = hn::ShiftRight<4>(hn::BitCast(hn::Full64<uint16_t>(), packed));
      const auto codes = hn::Combine(hn::Full128<uint8_t>(), hn::And(hn::BitCast(d8, moved), low),
                                     hn::And(packed, low));
      const auto on_top = hn::ShiftLeft<28>(hn::PromoteTo(I32(), codes));
      put<into>(hn::Mul(Codes::decode(hn::ShiftRight<28>(on_top)), scale), row);
#else
      uint64_t packed = 0;
      std::memcpy(&packed, in + i / 2, sizeof(packed));
      uint8_t codes[kRow];
      const uint64_t first = extended(packed & kLow);
      const uint64_t second = extended((packed >> 4) & kLow);
      std::memcpy(codes, &first, sizeof(first));
      std::memcpy(codes + sizeof(first), &second, sizeof(second));
      decode_row<Codes, into>(codes, scale, row);
#endif
    });
  }

 private:
  // The upper half of each byte becomes what bit 3 is.
  static constexpr uint64_t extended(uint64_t halves) {
    return halves | ((halves & 0x0808080808080808ULL) >> 3) * 0xf0;
  }
};

// The magnitude that the largest code stands for; NaN: the block holds something not finite.
HWY_INLINE float measure_block(const float* in, uint64_t count, BlockScale scale);

template <class Codes, class Packing, bool dithered>
void encode_format(const BlockFormat& format, const Dither& dither, const float* in, uint64_t count,
                   float largest_code, uint8_t* out) {
  for (uint64_t at = 0; at < count; at += format.block) {
    const uint64_t length = std::min<uint64_t>(format.block, count - at);
    const uint64_t bytes = Packing::bytes(length);
    float most = measure_block(in + at, length, format.scale);
    if (format.step != 0 && !std::isnan(most)) most = format.step * largest_code;
    const bool is_sent = most >= kBlockSmallest;  // not NaN either
    // Rounded up it may be so large that the largest code leaves float32's range.
    float scale = format.step != 0 && !std::isnan(most) ? format.step : most / largest_code;
    if (scale * largest_code > std::numeric_limits<float>::max()) {
      scale = std::nextafter(scale, 0.0f);
    }
    if (most < kBlockSmallest) scale = 0;
    std::memcpy(out, &scale, sizeof(scale));
    out += sizeof(scale);
    if (is_sent) {
      Packing::template encode<Codes, dithered>(
          in + at, length, hn::Set(F32(), largest_code / most), dither, at, format.levels, out);
    } else {
      std::memset(out, 0, bytes);
    }
    out += bytes;
  }
}

template <class Codes, class Packing>
void encode_rounded(const BlockFormat& format, const Dither& dither, const float* in,
                    uint64_t count, float largest_code, uint8_t* out) {
  switch (format.rounding) {
    case Rounding::Nearest:
      return encode_format<Codes, Packing, false>(format, dither, in, count, largest_code, out);
    case Rounding::Stochastic:
      return encode_format<Codes, Packing, true>(format, dither, in, count, largest_code, out);
  }
}

void encode_all_blocks(const BlockFormat& format, const Dither& dither, const float* in,
                       uint64_t count, uint8_t* out) {
  const auto levels = static_cast<float>(format.levels);
  switch (format.code) {
    case BlockCode::Int8:
      return encode_rounded<IntCodes, BytePacking>(format, dither, in, count, levels, out);
    case BlockCode::Int4:
      return encode_rounded<IntCodes, NibblePacking>(format, dither, in, count, levels, out);
    case BlockCode::Fp8E4M3:
      return encode_rounded<Fp8E4M3Codes, BytePacking>(format, dither, in, count, 448, out);
    case BlockCode::Fp8E5M2:
      return encode_rounded<Fp8E5M2Codes, BytePacking>(format, dither, in, count, 57344, out);
  }
}

template <class Codes, class Packing, Into into>
void decode_format(uint32_t block, const uint8_t* in, uint64_t count, float* out) {
  for (uint64_t at = 0; at < count; at += block) {
    const uint64_t length = std::min<uint64_t>(block, count - at);
    float scale = 0;
    std::memcpy(&scale, in, sizeof(scale));
    in += sizeof(scale);
    Packing::template decode<Codes, into>(in, length, hn::Set(F32(), scale), out + at);
    in += Packing::bytes(length);
  }
}

template <class Codes, class Packing>
void decode_into(uint32_t block, const uint8_t* in, uint64_t count, Into into, float* out) {
  switch (into) {
    case Into::Store:
      return decode_format<Codes, Packing, Into::Store>(block, in, count, out);
    case Into::Add:
      return decode_format<Codes, Packing, Into::Add>(block, in, count, out);
    case Into::Error:
      return decode_format<Codes, Packing, Into::Error>(block, in, count, out);
  }
}

void decode_all_blocks(const BlockFormat& format, const uint8_t* in, uint64_t count, Into into,
                       float* out) {
  switch (format.code) {
    case BlockCode::Int8:
      return decode_into<IntCodes, BytePacking>(format.block, in, count, into, out);
    case BlockCode::Int4:
      return decode_into<IntCodes, NibblePacking>(format.block, in, count, into, out);
    case BlockCode::Fp8E4M3:
      return decode_into<Fp8E4M3Codes, BytePacking>(format.block, in, count, into, out);
    case BlockCode::Fp8E5M2:
      return decode_into<Fp8E5M2Codes, BytePacking>(format.block, in, count, into, out);
  }
}

HWY_INLINE float measure_block(const float* in, uint64_t count, BlockScale scale) {
  const uint32_t bits = largest_magnitude(in, count);
  if (bits >= 0x7f800000u) return std::numeric_limits<float>::quiet_NaN();
  if (scale == BlockScale::Norm) return euclidean_norm(in, count);
  float largest;
  std::memcpy(&largest, &bits, sizeof(largest));
  return largest;
}

}  // namespace HWY_NAMESPACE
}  // namespace braid
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid {

HWY_EXPORT(encode_all_blocks);
HWY_EXPORT(decode_all_blocks);

uint64_t block_code_bytes(BlockCode code, uint64_t count) {
  return code == BlockCode::Int4 ? divide_up(count, kRowElements) * 8 : count;
}

void encode_blocks(const BlockFormat& format, const Dither& dither, const float* in, uint64_t count,
                   uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(encode_all_blocks)(format, dither, in, count, out);
}

void decode_blocks(const BlockFormat& format, const uint8_t* in, uint64_t count, Into into,
                   float* out) {
  HWY_DYNAMIC_DISPATCH(decode_all_blocks)(format, in, count, into, out);
}

}  // namespace braid
#endif  // HWY_ONCE
