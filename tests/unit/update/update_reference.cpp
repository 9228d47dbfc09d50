// SPDX-License-Identifier: Apache-2.0
#include "update_reference.h"

#include <cmath>

#include "reference.h"

namespace braid::test {
namespace {

template <typename T>
void step_sgd(const UpdateStep& u, T g, T& w, T& m) {
  if (u.momentum == 0) {
    w += T(-u.learning_rate) * g;
    return;
  }
  if (u.count == 1) {
    m = g;
  } else {
    m = m * T(u.momentum) + T(1 - u.dampening) * g;
  }
  const T change = u.has(kUpdateNesterov) ? g + T(u.momentum) * m : m;
  w += T(-u.learning_rate) * change;
}

template <typename T>
T lerp(T from, T to, T weight) {
  return weight < T(0.5) ? from + weight * (to - from) : to - (to - from) * (T(1) - weight);
}

template <typename T>
void step_adam(const UpdateStep& u, T g, T& w, T& m, T& v) {
  const auto steps = static_cast<double>(u.count);
  m = lerp(m, g, T(1 - u.momentum));
  v = v * T(u.second_momentum) + T(1 - u.second_momentum) * g * g;
  const double step_size = u.learning_rate / (1 - std::pow(u.momentum, steps));
  const double correction = std::sqrt(1 - std::pow(u.second_momentum, steps));
  const T denominator = std::sqrt(v) / T(correction) + T(u.epsilon);
  w += T(-step_size) * m / denominator;
}

template <typename T>
void step_lion(const UpdateStep& u, T g, T& w, T& m) {
  const T mix = m * T(u.momentum) + T(1 - u.momentum) * g;
  const T sign = static_cast<T>((mix > 0 ? 1 : 0) - (mix < 0 ? 1 : 0));
  w += T(-u.learning_rate) * sign;
  m = m * T(u.second_momentum) + T(1 - u.second_momentum) * g;
}

template <typename T>
void step(const UpdateStep& u, T g, T& w, T& m, T& v) {
  if (u.weight_decay != 0 && u.has(kUpdateDecoupledDecay)) {
    w *= T(1 - u.learning_rate * u.weight_decay);
  } else if (u.weight_decay != 0) {
    g += T(u.weight_decay) * w;
  }
  switch (u.optimizer) {
    case Optimizer::Sgd:
      return step_sgd(u, g, w, m);
    case Optimizer::Adam:
      return step_adam(u, g, w, m, v);
    case Optimizer::Lion:
      return step_lion(u, g, w, m);
  }
}

UpdateStep with(UpdateStep update, uint64_t count, uint32_t flags = 0, double weight_decay = 0) {
  update.count = count;
  update.flags = flags;
  update.weight_decay = weight_decay;
  return update;
}

UpdateStep with_dampening(UpdateStep update, double dampening) {
  update.dampening = dampening;
  return update;
}

UpdateStep with_betas(UpdateStep update, double first, double second) {
  update.momentum = first;
  update.second_momentum = second;
  return update;
}

}  // namespace

template <typename T>
void reference_update(DataType dtype, const UpdateStep& update, uint32_t divisor,
                      ReferenceState<T>& state, uint64_t begin, uint64_t count, uint8_t* sums) {
  for (uint64_t i = 0; i < count; ++i) {
    const auto sum = static_cast<T>(element_as_double(dtype, sums, i));
    const uint64_t at = begin + i;
    step(update, sum / static_cast<T>(divisor), state.weights[at], state.first[at],
         state.second[at]);
    T seen = state.weights[at];
    if (update.has(kUpdatePullBFloat16)) {
      seen = bfloat16_to_float(float_to_bfloat16(static_cast<float>(seen)));
    }
    store_double(dtype, seen, sums, i);
  }
}
template void reference_update(DataType, const UpdateStep&, uint32_t, ReferenceState<float>&,
                               uint64_t, uint64_t, uint8_t*);
template void reference_update(DataType, const UpdateStep&, uint32_t, ReferenceState<double>&,
                               uint64_t, uint64_t, uint8_t*);

UpdateStep sgd(double learning_rate, double momentum) {
  UpdateStep update;
  update.learning_rate = learning_rate;
  update.momentum = momentum;
  return update;
}

UpdateStep adam(double learning_rate, double weight_decay, uint32_t flags) {
  UpdateStep update;
  update.optimizer = Optimizer::Adam;
  update.flags = flags;
  update.learning_rate = learning_rate;
  update.momentum = 0.9;
  update.second_momentum = 0.999;
  update.epsilon = 1e-8;
  update.weight_decay = weight_decay;
  return update;
}

UpdateStep lion(double learning_rate, double weight_decay) {
  UpdateStep update;
  update.optimizer = Optimizer::Lion;
  update.flags = kUpdateDecoupledDecay;
  update.learning_rate = learning_rate;
  update.momentum = 0.9;
  update.second_momentum = 0.99;
  update.weight_decay = weight_decay;
  return update;
}

const std::vector<UpdateStep>& all_updates() {
  static const std::vector<UpdateStep> updates = {
      sgd(0.1),
      with(sgd(0.1), 3, 0, 0.01),
      with(sgd(0.1), 3, kUpdateDecoupledDecay, 0.01),
      with(sgd(0.1, 0.9), 1),
      with(sgd(0.1, 0.9), 1, kUpdateNesterov, 0.1),
      with(sgd(0.1, 0.9), 1, kUpdateDecoupledDecay, 0.1),
      with(sgd(0.1, 0.9), 2),
      with(sgd(0.1, 0.9), 7, 0, 0.01),
      with(sgd(0.1, 0.9), 7, kUpdateNesterov),
      with(sgd(0.1, 0.9), 7, kUpdateNesterov, 0.01),
      with(sgd(0.1, 0.9), 7, kUpdateNesterov | kUpdateDecoupledDecay, 0.01),
      with(with_dampening(sgd(0.1, 0.9), 0.3), 4),
      with(with_dampening(sgd(0.1, 0.9), 1), 1),
      with(adam(0.001), 1),
      with(adam(0.001), 1'000'000'000),
      with(adam(0.001), 12, 0, 0.1),
      with(adam(0.001), 12, kUpdateDecoupledDecay, 0.1),
      with(with_betas(adam(0.001), 0, 0), 1),
      with(with_betas(adam(0.001), 0, 0.5), 2),
      with(with_betas(adam(0.001), 0.5, 0.5), 2),
      with(with_betas(adam(0.001), 0.3, 0.95), 5),
      lion(0.0001),
      lion(0.0001, 0.3),
      with(with_betas(lion(0.0001), 0, 0), 3),
  };
  return updates;
}

}  // namespace braid::test
