// SPDX-License-Identifier: Apache-2.0
#include "engine/reduce_kernels.h"

#include <cstring>

#include "base/assert.h"

// The order matters: Highway's first header compiles all that follows once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/reduce_kernels.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "base/half_float-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace braid {
namespace HWY_NAMESPACE {

// How the elements of one dtype become lanes and back. `Element` is what one lane is loaded from.
template <typename T>
struct PlainLanes {
  using Element = T;
  using D = hn::ScalableTag<T>;
  static HWY_INLINE hn::Vec<D> load(const T* from) { return hn::LoadU(D(), from); }
  static HWY_INLINE void store(hn::Vec<D> value, T* to) { hn::StoreU(value, D(), to); }
  static HWY_INLINE void stream(hn::Vec<D> value, T* to) { hn::Stream(value, D(), to); }
};

template <typename Half>
struct HalfLanes {
  using Element = uint16_t;
  using D = F32;
  static HWY_INLINE VF32 load(const uint16_t* from) { return Half::widen(from); }
  static HWY_INLINE void store(VF32 value, uint16_t* to) {
    hn::StoreU(Half::round(value), U16(), to);
  }
  static HWY_INLINE void stream(VF32 value, uint16_t* to) {
    if constexpr (hn::MaxLanes(U16()) * sizeof(uint16_t) >= 16) {
      hn::Stream(Half::round(value), U16(), to);
    } else {  // half of the smallest vector: x86 streams no less than a whole one
      store(value, to);
    }
  }
};

struct Add {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Add(a, b);
  }
};

struct Multiply {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    if constexpr (sizeof(hn::TFromV<V>) ==
                  1) {  // no processor multiplies bytes: even and odd ones as 16-bit numbers
      const hn::DFromV<V> d;
#if HWY_TARGET == HWY_SCALAR  // one lane: nothing to pair it with
      return hn::Set(d, static_cast<uint8_t>(hn::GetLane(a) * hn::GetLane(b)));
#else
      const hn::Repartition<uint16_t, decltype(d)> d16;
      const auto a16 = hn::BitCast(d16, a);
      const auto b16 = hn::BitCast(d16, b);
      const auto even = hn::And(hn::Mul(a16, b16), hn::Set(d16, uint16_t{0xff}));
      const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16)));
      return hn::BitCast(d, hn::Or(even, odd));
#endif
    } else {
      return hn::Mul(a, b);
    }
  }
};

// The later operand replaces the earlier one only if it is strictly better, or NaN: the same on
// every processor, while the minimum instructions of x86 and Arm treat NaN and the two zeros each
// in its own way.
struct Minimum {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
    } else {
      return hn::Min(a, b);
    }
  }
};

struct Maximum {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
    } else {
      return hn::Max(a, b);
    }
  }
};

// `bytes` past each operand's start, as elements.
template <typename Element>
HWY_INLINE const Element* element_at(const uint8_t* operand, uint64_t bytes) {
  return reinterpret_cast<const Element*>(operand + bytes);
}

// One vector's worth of elements `bytes` past the operands' starts.
template <class Lanes, class Op>
HWY_INLINE hn::Vec<typename Lanes::D> fold_vector(std::span<const uint8_t* const> operands,
                                                  uint64_t bytes) {
  using Element = typename Lanes::Element;
  auto sum = Lanes::load(element_at<Element>(operands[0], bytes));
  for (size_t k = 1; k < operands.size(); ++k) {
    sum = Op::apply(sum, Lanes::load(element_at<Element>(operands[k], bytes)));
  }
  return sum;
}

// The last elements, fewer than a vector: through a buffer, so that nothing behind them is read or
// written.
template <class Lanes, class Op>
HWY_NOINLINE void fold_tail(std::span<const uint8_t* const> operands, uint64_t start, size_t bytes,
                            uint8_t* out) {
  using Element = typename Lanes::Element;
  HWY_ALIGN Element buffer[HWY_MAX_BYTES / sizeof(Element)] = {};
  std::memcpy(buffer, operands[0] + start, bytes);
  auto sum = Lanes::load(buffer);
  for (size_t k = 1; k < operands.size(); ++k) {
    std::memcpy(buffer, operands[k] + start, bytes);
    sum = Op::apply(sum, Lanes::load(buffer));
  }
  Lanes::store(sum, buffer);
  std::memcpy(out + start, buffer, bytes);
}

template <class Lanes, class Op>
HWY_NOINLINE void fold(std::span<const uint8_t* const> operands, uint64_t count, uint8_t* out,
                       bool is_streamed) {
  using Element = typename Lanes::Element;
  constexpr uint64_t kUnroll = 4;  // enough loads in flight to keep the memory busy
  const uint64_t vector_bytes = hn::Lanes(typename Lanes::D()) * sizeof(Element);
  const uint64_t bytes = count * sizeof(Element);
  uint64_t at = 0;
  for (; bytes - at >= kUnroll * vector_bytes; at += kUnroll * vector_bytes) {
    auto sum0 = Lanes::load(element_at<Element>(operands[0], at));
    auto sum1 = Lanes::load(element_at<Element>(operands[0], at + vector_bytes));
    auto sum2 = Lanes::load(element_at<Element>(operands[0], at + 2 * vector_bytes));
    auto sum3 = Lanes::load(element_at<Element>(operands[0], at + 3 * vector_bytes));
    for (size_t k = 1; k < operands.size(); ++k) {
      sum0 = Op::apply(sum0, Lanes::load(element_at<Element>(operands[k], at)));
      sum1 = Op::apply(sum1, Lanes::load(element_at<Element>(operands[k], at + vector_bytes)));
      sum2 = Op::apply(sum2, Lanes::load(element_at<Element>(operands[k], at + 2 * vector_bytes)));
      sum3 = Op::apply(sum3, Lanes::load(element_at<Element>(operands[k], at + 3 * vector_bytes)));
    }
    const auto out_at = [&](uint64_t vector) {
      return reinterpret_cast<Element*>(out + at + vector * vector_bytes);
    };
    if (is_streamed) {
      Lanes::stream(sum0, out_at(0));
      Lanes::stream(sum1, out_at(1));
      Lanes::stream(sum2, out_at(2));
      Lanes::stream(sum3, out_at(3));
    } else {
      Lanes::store(sum0, out_at(0));
      Lanes::store(sum1, out_at(1));
      Lanes::store(sum2, out_at(2));
      Lanes::store(sum3, out_at(3));
    }
  }
  if (is_streamed) hwy::FlushStream();
  for (; bytes - at >= vector_bytes; at += vector_bytes) {
    Lanes::store(fold_vector<Lanes, Op>(operands, at), reinterpret_cast<Element*>(out + at));
  }
  if (at < bytes) fold_tail<Lanes, Op>(operands, at, static_cast<size_t>(bytes - at), out);
}

// `WrappingLanes` (unsigned, for integers) where two's complement makes the sign irrelevant,
// `Lanes` where it matters.
template <class Lanes, class WrappingLanes = Lanes>
void fold_by(Reduction reduction, std::span<const uint8_t* const> operands, uint64_t count,
             uint8_t* out, bool is_streamed) {
  switch (reduction) {
    case Reduction::Sum:
    case Reduction::Average:
      return fold<WrappingLanes, Add>(operands, count, out, is_streamed);
    case Reduction::Min:
      return fold<Lanes, Minimum>(operands, count, out, is_streamed);
    case Reduction::Max:
      return fold<Lanes, Maximum>(operands, count, out, is_streamed);
    case Reduction::Product:
      return fold<WrappingLanes, Multiply>(operands, count, out, is_streamed);
  }
}

void fold_all(DataType dtype, Reduction reduction, std::span<const uint8_t* const> operands,
              uint64_t count, uint8_t* out, bool is_streamed) {
  switch (dtype) {
    case DataType::Float32:
      return fold_by<PlainLanes<float>>(reduction, operands, count, out, is_streamed);
    case DataType::Float64:
      return fold_by<PlainLanes<double>>(reduction, operands, count, out, is_streamed);
    case DataType::Float16:
      return fold_by<HalfLanes<Float16Lanes>>(reduction, operands, count, out, is_streamed);
    case DataType::BFloat16:
      return fold_by<HalfLanes<BFloat16Lanes>>(reduction, operands, count, out, is_streamed);
    case DataType::Int32:
      return fold_by<PlainLanes<int32_t>, PlainLanes<uint32_t>>(reduction, operands, count, out,
                                                                is_streamed);
    case DataType::Int64:
      return fold_by<PlainLanes<int64_t>, PlainLanes<uint64_t>>(reduction, operands, count, out,
                                                                is_streamed);
    case DataType::Uint8:
      return fold_by<PlainLanes<uint8_t>>(reduction, operands, count, out, is_streamed);
  }
}

template <class Lanes>
HWY_NOINLINE void divide_floats(uint8_t* data, uint64_t count, uint32_t divisor) {
  using Element = typename Lanes::Element;
  const typename Lanes::D d;
  const uint64_t lanes = hn::Lanes(d);
  const auto by = hn::Set(d, static_cast<hn::TFromD<typename Lanes::D>>(divisor));
  auto* const elements = reinterpret_cast<Element*>(data);
  uint64_t i = 0;
  for (; count - i >= lanes; i += lanes)
    Lanes::store(hn::Div(Lanes::load(elements + i), by), elements + i);
  if (i == count) return;
  HWY_ALIGN Element buffer[HWY_MAX_BYTES / sizeof(Element)] = {};
  const size_t bytes = static_cast<size_t>(count - i) * sizeof(Element);
  std::memcpy(buffer, data + i * sizeof(Element), bytes);
  Lanes::store(hn::Div(Lanes::load(buffer), by), buffer);
  std::memcpy(data + i * sizeof(Element), buffer, bytes);
}

template <typename T>
void divide_integers(uint8_t* data, uint64_t count, uint32_t divisor) {
  for (uint64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    value = static_cast<T>(static_cast<int64_t>(value) / static_cast<int64_t>(divisor));
    std::memcpy(data + i * sizeof(T), &value, sizeof(T));
  }
}

void divide_by(DataType dtype, uint8_t* data, uint64_t count, uint32_t divisor) {
  switch (dtype) {
    case DataType::Float32:
      return divide_floats<PlainLanes<float>>(data, count, divisor);
    case DataType::Float64:
      return divide_floats<PlainLanes<double>>(data, count, divisor);
    case DataType::Float16:
      return divide_floats<HalfLanes<Float16Lanes>>(data, count, divisor);
    case DataType::BFloat16:
      return divide_floats<HalfLanes<BFloat16Lanes>>(data, count, divisor);
    case DataType::Int32:
      return divide_integers<int32_t>(data, count, divisor);
    case DataType::Int64:
      return divide_integers<int64_t>(data, count, divisor);
    case DataType::Uint8:
      return divide_integers<uint8_t>(data, count, divisor);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace braid
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid {

HWY_EXPORT(fold_all);
HWY_EXPORT(divide_by);

namespace {

constexpr uintptr_t kStreamAlignment = 64;  // of the widest vectors that want one

}  // namespace

void reduce_all(DataType dtype, Reduction reduction, std::span<const uint8_t* const> operands,
                uint64_t count, uint8_t* out, Store store) {
  BRAID_ASSERT(!operands.empty(), "a reduction needs an operand");
  if (count == 0) return;
  if (operands.size() == 1) {
    if (out != operands[0]) std::memcpy(out, operands[0], count * element_bytes(dtype));
    return;
  }
  const bool is_aligned = reinterpret_cast<uintptr_t>(out) % kStreamAlignment == 0;
  HWY_DYNAMIC_DISPATCH(fold_all)
  (dtype, reduction, operands, count, out, store == Store::Streamed && is_aligned);
}

void divide_all(DataType dtype, uint8_t* data, uint64_t count, uint32_t divisor) {
  BRAID_ASSERT(divisor != 0, "an average over nobody");
  if (count == 0 || divisor == 1) return;
  HWY_DYNAMIC_DISPATCH(divide_by)(dtype, data, count, divisor);
}

}  // namespace braid
#endif  // HWY_ONCE
