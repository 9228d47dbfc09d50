// SPDX-License-Identifier: Apache-2.0
#include "codec/sign_kernels.h"

#include <bit>

// The order matters: Highway's first header compiles all that follows once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/sign_kernels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "codec/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace braid {
namespace HWY_NAMESPACE {

// So many rows of float32 sums before they go into float64.
constexpr uint64_t kPieceElements = 64 * kRow;

// One sum for each place in a row.
class PlaceSums {
 public:
  void add(const VF32* sums) {
    HWY_ALIGN float lanes[kRow];
    for (size_t v = 0; v < kRowVectors; ++v) hn::Store(sums[v], F32(), lanes + v * kLanes);
    for (size_t i = 0; i < kRow; ++i) sums_[i] += static_cast<double>(lanes[i]);
  }
  double total() const {
    double total = 0;
    for (const double sum : sums_) total += sum;
    return total;
  }

 private:
  double sums_[kRow] = {};
};

SignSums encode_signs_by_sign(const float* in, uint64_t count, uint8_t* signs) {
  PlaceSums positive;
  PlaceSums negative;
  uint64_t negatives = 0;
  for (uint64_t at = 0; at < count; at += kPieceElements) {
    VF32 positives[kRowVectors];
    VF32 all_negatives[kRowVectors];
    for (auto& one : positives) one = hn::Zero(F32());
    for (auto& one : all_negatives) one = hn::Zero(F32());
    for_rows(in + at, HWY_MIN(kPieceElements, count - at),
             [&](const float* row, uint64_t i) HWY_ATTR {
               uint32_t bits = 0;
               for (size_t v = 0; v < kRowVectors; ++v) {
                 const auto value = hn::LoadU(F32(), row + v * kLanes);
                 const auto all_sign =
                     float_of(hn::BitCast(U32(), hn::ShiftRight<31>(signed_of(bits_of(value)))));
                 bits |= mask_bits(hn::MaskFromVec(all_sign)) << (v * kLanes);
                 const auto magnitude = hn::Abs(value);
                 positives[v] = hn::Add(positives[v], hn::AndNot(all_sign, magnitude));
                 all_negatives[v] = hn::Add(all_negatives[v], hn::And(all_sign, magnitude));
               }
               negatives += static_cast<uint64_t>(std::popcount(bits));
               store_u16(bits, signs + (at + i) / 8);
             });
    positive.add(positives);
    negative.add(all_negatives);
  }
  return {positive.total(), negative.total(), negatives};
}

double encode_signs_with_sum(const float* in, uint64_t count, uint8_t* signs) {
  PlaceSums sums;
  for (uint64_t at = 0; at < count; at += kPieceElements) {
    VF32 magnitudes[kRowVectors];
    for (auto& one : magnitudes) one = hn::Zero(F32());
    for_rows(in + at, HWY_MIN(kPieceElements, count - at),
             [&](const float* row, uint64_t i) HWY_ATTR {
               store_u16(sign_bits(row), signs + (at + i) / 8);
               for (size_t v = 0; v < kRowVectors; ++v) {
                 const auto value = hn::LoadU(F32(), row + v * kLanes);
                 magnitudes[v] = hn::Add(magnitudes[v], hn::Abs(value));
               }
             });
    sums.add(magnitudes);
  }
  return sums.total();
}

double add_signs_with_sum(const float* gradient, uint64_t count, float* memory, uint8_t* signs) {
  const F32 d;
  PlaceSums sums;
  for (uint64_t at = 0; at < count; at += kPieceElements) {
    const uint64_t end = HWY_MIN(count, at + kPieceElements);
    VF32 magnitudes[kRowVectors];
    for (auto& one : magnitudes) one = hn::Zero(d);
    const auto take = [&](const float* from, float* row, uint64_t i) HWY_ATTR {
      for (size_t v = 0; v < kRowVectors; ++v) {
        const auto sum = hn::Add(hn::LoadU(d, from + v * kLanes), hn::LoadU(d, row + v * kLanes));
        hn::StoreU(sum, d, row + v * kLanes);
        magnitudes[v] = hn::Add(magnitudes[v], hn::Abs(sum));
      }
      store_u16(sign_bits(row), signs + i / 8);
    };
    uint64_t i = at;
    for (; end - i >= kRow; i += kRow) take(gradient + i, memory + i, i);
    if (i < end) {
      const PaddedRow last_gradient(gradient + i, end - i);
      PaddedRow last_memory(memory + i, end - i);
      take(last_gradient.elements, last_memory.elements, i);
      std::memcpy(memory + i, last_memory.elements, (end - i) * sizeof(float));
    }
    sums.add(magnitudes);
  }
  return sums.total();
}

bool encode_only_signs(const float* in, uint64_t count, uint8_t* signs) {
  uint32_t nans = 0;
  for_rows(in, count, [&](const float* row, uint64_t i) HWY_ATTR {
    store_u16(sign_bits(row), signs + i / 8);
    for (size_t v = 0; v < kRowVectors; ++v) {
      nans |= mask_bits(hn::IsNaN(hn::LoadU(F32(), row + v * kLanes)));
    }
  });
  return nans == 0;
}

template <Into into>
void decode_sign_rows(const uint8_t* signs, uint64_t count, float positive, float negative,
                      float* out) {
  const auto plus = bits_of(hn::Set(F32(), positive));
  const auto both = hn::Xor(plus, bits_of(hn::Set(F32(), negative)));
  change_rows(out, count, [&](float* row, uint64_t i) HWY_ATTR {
    const uint32_t bits = load_u16(signs + i / 8);
    for (size_t v = 0; v < kRowVectors; ++v) {
      const auto chosen = hn::Xor(plus, hn::And(lanes_of_bits(bits, v), both));
      put<into>(hn::BitCast(F32(), chosen), row + v * kLanes);
    }
  });
}

void decode_all_signs(const uint8_t* signs, uint64_t count, float positive, float negative,
                      Into into, float* out) {
  switch (into) {
    case Into::Store:
      return decode_sign_rows<Into::Store>(signs, count, positive, negative, out);
    case Into::Add:
      return decode_sign_rows<Into::Add>(signs, count, positive, negative, out);
    case Into::Error:
      return decode_sign_rows<Into::Error>(signs, count, positive, negative, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace braid
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid {

HWY_EXPORT(encode_signs_by_sign);
HWY_EXPORT(encode_signs_with_sum);
HWY_EXPORT(add_signs_with_sum);
HWY_EXPORT(encode_only_signs);
HWY_EXPORT(decode_all_signs);

SignSums encode_signs(const float* in, uint64_t count, uint8_t* signs) {
  return HWY_DYNAMIC_DISPATCH(encode_signs_by_sign)(in, count, signs);
}

double encode_signs_and_sum(const float* in, uint64_t count, uint8_t* signs) {
  return HWY_DYNAMIC_DISPATCH(encode_signs_with_sum)(in, count, signs);
}

double add_signs_and_sum(const float* gradient, uint64_t count, float* memory, uint8_t* signs) {
  return HWY_DYNAMIC_DISPATCH(add_signs_with_sum)(gradient, count, memory, signs);
}

bool encode_signs_alone(const float* in, uint64_t count, uint8_t* signs) {
  return HWY_DYNAMIC_DISPATCH(encode_only_signs)(in, count, signs);
}

void decode_signs(const uint8_t* signs, uint64_t count, float positive, float negative, Into into,
                  float* out) {
  HWY_DYNAMIC_DISPATCH(decode_all_signs)(signs, count, positive, negative, into, out);
}

}  // namespace braid
#endif  // HWY_ONCE
