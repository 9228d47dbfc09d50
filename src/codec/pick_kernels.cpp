// SPDX-License-Identifier: Apache-2.0
#include "codec/pick_kernels.h"

#include <bit>

// The order matters: Highway's first header compiles all that follows once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/pick_kernels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "codec/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace braid {
namespace HWY_NAMESPACE {

uint64_t pick_rows(const float* values, uint64_t count, uint32_t first_index, uint32_t magnitude,
                   uint64_t found, uint64_t most, PickedElement* picked) {
  const auto least = hn::Set(I32(), static_cast<int32_t>(magnitude) - 1);  // −1: all of them
  uint64_t i = 0;
  const auto take = [&](const float* row, uint32_t usable) HWY_ATTR {
    uint32_t bits = 0;
    for (size_t v = 0; v < kRowVectors; ++v) {
      const auto value = signed_of(magnitude_bits(hn::LoadU(F32(), row + v * kLanes)));
      bits |= mask_bits(hn::RebindMask(F32(), hn::Gt(value, least))) << (v * kLanes);
    }
    for (bits &= usable; bits != 0; bits &= bits - 1) {
      const auto place = static_cast<uint32_t>(std::countr_zero(bits));
      uint32_t raw;
      std::memcpy(&raw, row + place, sizeof(raw));
      picked[found++] = {static_cast<uint32_t>(first_index + i + place), raw & kMagnitudeMask};
    }
  };
  for (; count - i >= kRow; i += kRow) {
    take(values + i, 0xffff);
    if (found > most) return found;
  }
  if (i == count) return found;
  const PaddedRow last(values + i, count - i);
  take(last.elements, (1u << (count - i)) - 1);
  return found;
}

void add_all_momentum(const float* gradient, uint64_t count, float momentum, float* velocity,
                      float* memory) {
  const F32 d;
  const auto by = hn::Set(d, momentum);
  uint64_t i = 0;
  for (; count - i >= kLanes; i += kLanes) {
    const auto moved = hn::Mul(by, hn::LoadU(d, velocity + i));
    const auto sum = hn::Add(moved, hn::LoadU(d, gradient + i));
    hn::StoreU(sum, d, velocity + i);
    hn::StoreU(hn::Add(hn::LoadU(d, memory + i), sum), d, memory + i);
  }
  for (; i < count; ++i) {
    velocity[i] = momentum * velocity[i] + gradient[i];
    memory[i] += velocity[i];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace braid
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid {

HWY_EXPORT(pick_rows);
HWY_EXPORT(add_all_momentum);

uint64_t pick_from(const float* values, uint64_t count, uint32_t first_index, uint32_t magnitude,
                   uint64_t found, uint64_t most, PickedElement* picked) {
  return HWY_DYNAMIC_DISPATCH(pick_rows)(values, count, first_index, magnitude, found, most,
                                         picked);
}

void add_momentum(const float* gradient, uint64_t count, float momentum, float* velocity,
                  float* memory) {
  HWY_DYNAMIC_DISPATCH(add_all_momentum)(gradient, count, momentum, velocity, memory);
}

}  // namespace braid
#endif  // HWY_ONCE
