// SPDX-License-Identifier: Apache-2.0
#include "codec/add_kernels.h"

// The order matters: Highway's first header compiles all that follows once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/add_kernels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "codec/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace braid {
namespace HWY_NAMESPACE {

void add_all_floats(const float* gradient, uint64_t count, float* memory) {
  const F32 d;
  uint64_t i = 0;
  for (; count - i >= kRow; i += kRow) {
    for (size_t v = 0; v < kRow; v += kLanes) {
      hn::StoreU(hn::Add(hn::LoadU(d, gradient + i + v), hn::LoadU(d, memory + i + v)), d,
                 memory + i + v);
    }
  }
  for (; i < count; ++i) memory[i] = gradient[i] + memory[i];
}

template <Into into>
void decode_float_rows(const uint8_t* in, uint64_t count, float* out) {
  change_rows(out, count, [&](float* row, uint64_t i) HWY_ATTR {
    HWY_ALIGN float values[kRow] = {};
    std::memcpy(values, in + i * sizeof(float), HWY_MIN(kRow, count - i) * sizeof(float));
    for (size_t v = 0; v < kRow; v += kLanes) put<into>(hn::Load(F32(), values + v), row + v);
  });
}

void decode_all_floats(const uint8_t* in, uint64_t count, Into into, float* out) {
  switch (into) {
    case Into::Store:
      std::memcpy(out, in, count * sizeof(float));
      return;
    case Into::Add:
      return decode_float_rows<Into::Add>(in, count, out);
    case Into::Error:
      return decode_float_rows<Into::Error>(in, count, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace braid
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid {

HWY_EXPORT(add_all_floats);
HWY_EXPORT(decode_all_floats);

void add_floats(const float* gradient, uint64_t count, float* memory) {
  HWY_DYNAMIC_DISPATCH(add_all_floats)(gradient, count, memory);
}

void decode_floats(const uint8_t* in, uint64_t count, Into into, float* out) {
  HWY_DYNAMIC_DISPATCH(decode_all_floats)(in, count, into, out);
}

}  // namespace braid
#endif  // HWY_ONCE
