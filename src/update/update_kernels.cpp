// SPDX-License-Identifier: Apache-2.0
#include "update/update_kernels.h"

#include <cstring>

#include "base/assert.h"
#include "update/update_numbers.h"

// The order matters: Highway's first header compiles all that follows once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "update/update_kernels.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "base/half_float-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace braid {
namespace HWY_NAMESPACE {

// How sums become lanes, and weights elements again. `Value` is what one lane computes with.
template <typename T>
struct PlainSums {
  using Value = T;
  using Element = T;
  using D = hn::ScalableTag<T>;
  static HWY_INLINE hn::Vec<D> load(const T* from) { return hn::LoadU(D(), from); }
  static HWY_INLINE void store(hn::Vec<D> value, T* to) { hn::StoreU(value, D(), to); }
};

template <class Half>
struct HalfSums {
  using Value = float;
  using Element = uint16_t;
  using D = F32;
  static HWY_INLINE VF32 load(const uint16_t* from) { return Half::widen(from); }
  static HWY_INLINE void store(VF32 value, uint16_t* to) {
    hn::StoreU(Half::round(value), U16(), to);
  }
};

// Sums of float32, and weights that bfloat16 has, too.
struct RoundedSums : PlainSums<float> {
  static HWY_INLINE void store(VF32 value, float* to) {
    const auto halves = hn::PromoteTo(U32(), BFloat16Lanes::round(value));
    hn::StoreU(hn::BitCast(F32(), hn::ShiftLeft<16>(halves)), F32(), to);
  }
};

// The optimizers' formulas for one vector. `g` is the gradient, `w` the weights, `m` and `v` the
// first and second moments: g may be changed, and what is changed of the others is kept.

template <bool kIsCoupled, class N, class V>
HWY_INLINE void decay(const N& n, V& g, V& w) {
  const hn::DFromV<V> d;
  if constexpr (kIsCoupled) {
    g = hn::Add(g, hn::Mul(hn::Set(d, n.weight_decay), w));
  } else {
    w = hn::Mul(w, hn::Set(d, n.kept));
  }
}

template <typename T, bool kIsCoupled>
struct PlainSgd {
  static constexpr uint32_t kSlots = 1;
  static constexpr bool kReadsFirst = false;
  SgdNumbers<T> n;
  template <class V>
  HWY_INLINE void step(V g, V& w, V& /*m*/, V& /*v*/) const {
    const hn::DFromV<V> d;
    decay<kIsCoupled>(n, g, w);
    w = hn::Add(w, hn::Mul(hn::Set(d, n.minus_rate), g));
  }
};

// With momentum, which begins with the gradient.
template <typename T, bool kIsCoupled, bool kIsFirst>
struct MomentumSgd {
  static constexpr uint32_t kSlots = 2;
  static constexpr bool kReadsFirst = !kIsFirst;
  SgdNumbers<T> n;
  template <class V>
  HWY_INLINE void step(V g, V& w, V& m, V& /*v*/) const {
    const hn::DFromV<V> d;
    decay<kIsCoupled>(n, g, w);
    const auto momentum = hn::Set(d, n.momentum);
    if constexpr (kIsFirst) {
      m = g;
    } else {
      m = hn::Add(hn::Mul(m, momentum), hn::Mul(hn::Set(d, n.gradient_share), g));
    }
    const auto is_nesterov = hn::Gt(hn::Set(d, n.is_nesterov), hn::Zero(d));
    const auto change = hn::IfThenElse(is_nesterov, hn::Add(g, hn::Mul(momentum, m)), m);
    w = hn::Add(w, hn::Mul(hn::Set(d, n.minus_rate), change));
  }
};

template <typename T, bool kIsCoupled>
struct Adam {
  static constexpr uint32_t kSlots = 3;
  static constexpr bool kReadsFirst = true;
  AdamNumbers<T> n;
  template <class V>
  HWY_INLINE void step(V g, V& w, V& m, V& v) const {
    const hn::DFromV<V> d;
    decay<kIsCoupled>(n, g, w);
    // From the nearer end of the line from m to g, as lerp does.
    const auto begins_at_gradient = hn::Gt(hn::Set(d, n.begins_at_gradient), hn::Zero(d));
    const auto begin = hn::IfThenElse(begins_at_gradient, g, m);
    m = hn::Add(begin, hn::Mul(hn::Set(d, n.way), hn::Sub(g, m)));
    v = hn::Add(hn::Mul(v, hn::Set(d, n.second_momentum)),
                hn::Mul(hn::Mul(hn::Set(d, n.square_share), g), g));
    const auto divisor =
        hn::Add(hn::Div(hn::Sqrt(v), hn::Set(d, n.second_correction)), hn::Set(d, n.epsilon));
    w = hn::Add(w, hn::Div(hn::Mul(hn::Set(d, n.minus_rate), m), divisor));
  }
};

template <typename T>
struct Lion {
  static constexpr uint32_t kSlots = 2;
  static constexpr bool kReadsFirst = true;
  LionNumbers<T> n;
  template <class V>
  HWY_INLINE void step(V g, V& w, V& m, V& /*v*/) const {
    const hn::DFromV<V> d;
    decay<false>(n, g, w);
    const auto mix =
        hn::Add(hn::Mul(m, hn::Set(d, n.momentum)), hn::Mul(hn::Set(d, n.gradient_share), g));
    // The sign of 0 and of NaN is 0, as torch.sign has it.
    const auto one = hn::Set(d, T{1});
    const auto sign = hn::Sub(hn::IfThenElseZero(hn::Gt(mix, hn::Zero(d)), one),
                              hn::IfThenElseZero(hn::Lt(mix, hn::Zero(d)), one));
    w = hn::Add(w, hn::Mul(hn::Set(d, n.minus_rate), sign));
    m = hn::Add(hn::Mul(m, hn::Set(d, n.second_momentum)),
                hn::Mul(hn::Set(d, n.second_gradient_share), g));
  }
};

template <class Sums, class Rule>
HWY_INLINE void step_vector(const Rule& rule, typename Sums::Value divisor,
                            typename Sums::Element* sums,
                            const ShardValues<typename Sums::Value>& state, uint64_t at) {
  const typename Sums::D d;
  const auto g = hn::Div(Sums::load(sums), hn::Set(d, divisor));
  auto w = hn::LoadU(d, state.weights + at);
  auto m = hn::Zero(d);
  auto v = hn::Zero(d);
  if constexpr (Rule::kReadsFirst) m = hn::LoadU(d, state.first + at);
  if constexpr (Rule::kSlots > 2) v = hn::LoadU(d, state.second + at);
  rule.step(g, w, m, v);
  hn::StoreU(w, d, state.weights + at);
  if constexpr (Rule::kSlots > 1) hn::StoreU(m, d, state.first + at);
  if constexpr (Rule::kSlots > 2) hn::StoreU(v, d, state.second + at);
  Sums::store(w, sums);
}

// The last elements, fewer than a vector: through buffers, so that nothing behind them is read or
// written.
template <class Sums, class Rule>
HWY_NOINLINE void step_tail(const Rule& rule, typename Sums::Value divisor, uint8_t* sums,
                            const ShardValues<typename Sums::Value>& state, size_t count) {
  using Value = typename Sums::Value;
  using Element = typename Sums::Element;
  constexpr size_t kValues = HWY_MAX_BYTES / sizeof(Value);
  HWY_ALIGN Element elements[HWY_MAX_BYTES / sizeof(Element)] = {};
  HWY_ALIGN Value values[kStateSlotCount][kValues] = {};
  Value* const slots[kStateSlotCount] = {state.weights, state.first, state.second};
  std::memcpy(elements, sums, count * sizeof(Element));
  for (uint32_t slot = 0; slot < Rule::kSlots; ++slot) {
    std::memcpy(values[slot], slots[slot], count * sizeof(Value));
  }
  step_vector<Sums>(rule, divisor, elements, ShardValues<Value>{values[0], values[1], values[2]},
                    0);
  for (uint32_t slot = 0; slot < Rule::kSlots; ++slot) {
    std::memcpy(slots[slot], values[slot], count * sizeof(Value));
  }
  std::memcpy(sums, elements, count * sizeof(Element));
}

// How many elements ahead memory is asked for: 2 KiB of float32. Processors do so by themselves,
// but not beyond a page, and not far enough where a loop has much to compute for few bytes:
// bfloat16 gains 1.6 times. Behind the last element it does nothing.
constexpr uint64_t kAhead = 512;

template <class Rule, class Element, class Value>
HWY_INLINE void ask_ahead(const Element* sums, const ShardValues<Value>& state, uint64_t at) {
  hwy::Prefetch(sums + at + kAhead);
  hwy::Prefetch(state.weights + at + kAhead);
  if constexpr (Rule::kReadsFirst) hwy::Prefetch(state.first + at + kAhead);
  if constexpr (Rule::kSlots > 2) hwy::Prefetch(state.second + at + kAhead);
}

// `rule` and `state` are copies: what is stored could not have changed them, and they stay in
// registers.
template <class Sums, class Rule>
HWY_NOINLINE void step_elements(const Rule rule, uint32_t divisor, uint64_t count,
                                const ShardValues<typename Sums::Value> state, uint8_t* sums) {
  using Value = typename Sums::Value;
  const uint64_t lanes = hn::Lanes(typename Sums::D());
  const auto by = static_cast<Value>(divisor);
  auto* const elements = reinterpret_cast<typename Sums::Element*>(sums);
  uint64_t i = 0;
  for (; count - i >= lanes; i += lanes) {
    ask_ahead<Rule>(elements, state, i);
    step_vector<Sums>(rule, by, elements + i, state, i);
  }
  if (i == count) return;
  ShardValues<Value> rest;
  rest.weights = state.weights + i;
  if constexpr (Rule::kSlots > 1) rest.first = state.first + i;
  if constexpr (Rule::kSlots > 2) rest.second = state.second + i;
  step_tail<Sums>(rule, by, sums + i * sizeof(typename Sums::Element), rest,
                  static_cast<size_t>(count - i));
}

template <class Sums, bool kIsCoupled>
void step_sgd(const UpdateStep& update, uint32_t divisor, uint64_t count,
              const ShardValues<typename Sums::Value>& state, uint8_t* sums) {
  using Value = typename Sums::Value;
  const auto numbers = sgd_numbers<Value>(update);
  if (update.momentum == 0) {
    step_elements<Sums>(PlainSgd<Value, kIsCoupled>{numbers}, divisor, count, state, sums);
  } else if (update.count == 1) {
    step_elements<Sums>(MomentumSgd<Value, kIsCoupled, true>{numbers}, divisor, count, state, sums);
  } else {
    step_elements<Sums>(MomentumSgd<Value, kIsCoupled, false>{numbers}, divisor, count, state,
                        sums);
  }
}

template <class Sums, bool kIsCoupled>
void step_adam(const UpdateStep& update, uint32_t divisor, uint64_t count,
               const ShardValues<typename Sums::Value>& state, uint8_t* sums) {
  using Value = typename Sums::Value;
  step_elements<Sums>(Adam<Value, kIsCoupled>{adam_numbers<Value>(update)}, divisor, count, state,
                      sums);
}

template <class Sums>
void step_by(const UpdateStep& update, uint32_t divisor, uint64_t count,
             const ShardValues<typename Sums::Value>& state, uint8_t* sums) {
  using Value = typename Sums::Value;
  const bool is_coupled = update.weight_decay != 0 && !update.has(kUpdateDecoupledDecay);
  switch (update.optimizer) {
    case Optimizer::Sgd:
      return is_coupled ? step_sgd<Sums, true>(update, divisor, count, state, sums)
                        : step_sgd<Sums, false>(update, divisor, count, state, sums);
    case Optimizer::Adam:
      return is_coupled ? step_adam<Sums, true>(update, divisor, count, state, sums)
                        : step_adam<Sums, false>(update, divisor, count, state, sums);
    case Optimizer::Lion:
      return step_elements<Sums>(Lion<Value>{lion_numbers<Value>(update)}, divisor, count, state,
                                 sums);
  }
}

void step_floats(DataType dtype, const UpdateStep& update, uint32_t divisor, uint64_t count,
                 const ShardValues<float>& state, uint8_t* sums) {
  if (dtype == DataType::Float16) {
    return step_by<HalfSums<Float16Lanes>>(update, divisor, count, state, sums);
  }
  if (dtype == DataType::BFloat16) {
    return step_by<HalfSums<BFloat16Lanes>>(update, divisor, count, state, sums);
  }
  if (update.has(kUpdatePullBFloat16)) {
    return step_by<RoundedSums>(update, divisor, count, state, sums);
  }
  return step_by<PlainSums<float>>(update, divisor, count, state, sums);
}

void step_doubles(const UpdateStep& update, uint32_t divisor, uint64_t count,
                  const ShardValues<double>& state, uint8_t* sums) {
  step_by<PlainSums<double>>(update, divisor, count, state, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace braid
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid {

HWY_EXPORT(step_floats);
HWY_EXPORT(step_doubles);

void update_floats(DataType dtype, const UpdateStep& update, uint32_t divisor, uint64_t count,
                   const ShardValues<float>& state, uint8_t* sums) {
  BRAID_ASSERT(dtype <= DataType::BFloat16 && dtype != DataType::Float64,
               "the state of float64 is float64, and integers have none");
  HWY_DYNAMIC_DISPATCH(step_floats)(dtype, update, divisor, count, state, sums);
}

void update_doubles(const UpdateStep& update, uint32_t divisor, uint64_t count,
                    const ShardValues<double>& state, uint8_t* sums) {
  HWY_DYNAMIC_DISPATCH(step_doubles)(update, divisor, count, state, sums);
}

}  // namespace braid
#endif  // HWY_ONCE
