// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "update/update_step.h"

namespace braid {

// The numbers that a kernel computes with: made in double, then rounded to the state's type, as
// torch does with what a Python script computes.

// Weights keep this part of themselves where decay is not in the gradient.
inline double kept_part(const UpdateStep& update) {
  return update.has(kUpdateDecoupledDecay) ? 1 - update.learning_rate * update.weight_decay : 1;
}

template <typename T>
struct SgdNumbers {
  T minus_rate;
  T momentum;
  T gradient_share;  // 1 − dampening
  T is_nesterov;     // above 0: so a kernel can make a mask of it
  T weight_decay;
  T kept;
};

template <typename T>
SgdNumbers<T> sgd_numbers(const UpdateStep& update) {
  return {
      static_cast<T>(-update.learning_rate), static_cast<T>(update.momentum),
      static_cast<T>(1 - update.dampening),  static_cast<T>(update.has(kUpdateNesterov) ? 1 : 0),
      static_cast<T>(update.weight_decay),   static_cast<T>(kept_part(update))};
}

template <typename T>
struct AdamNumbers {
  T minus_rate;          // of a first moment without bias
  T begins_at_gradient;  // above 0: the way of the first moment begins at the gradient, else where
                         // it was
  T way;                 // the part of the line from the first moment to the gradient that it goes
  T second_momentum;
  T square_share;       // 1 − β2
  T second_correction;  // √(1 − β2^count)
  T epsilon;
  T weight_decay;
  T kept;
};

template <typename T>
AdamNumbers<T> adam_numbers(const UpdateStep& update) {
  const auto count = static_cast<double>(update.count);
  // To the gradient's part; from 1/2 on backwards from the gradient, so that all of it is exact.
  const auto share = static_cast<T>(1 - update.momentum);
  const bool begins_at_gradient = !(share < T{0.5});
  return {static_cast<T>(-(update.learning_rate / (1 - std::pow(update.momentum, count)))),
          static_cast<T>(begins_at_gradient ? 1 : 0),
          begins_at_gradient ? share - T{1} : share,
          static_cast<T>(update.second_momentum),
          static_cast<T>(1 - update.second_momentum),
          static_cast<T>(std::sqrt(1 - std::pow(update.second_momentum, count))),
          static_cast<T>(update.epsilon),
          static_cast<T>(update.weight_decay),
          static_cast<T>(kept_part(update))};
}

template <typename T>
struct LionNumbers {
  T minus_rate;
  T momentum;
  T gradient_share;  // 1 − β1
  T second_momentum;
  T second_gradient_share;  // 1 − β2
  T kept;
};

template <typename T>
LionNumbers<T> lion_numbers(const UpdateStep& update) {
  return {static_cast<T>(-update.learning_rate),      static_cast<T>(update.momentum),
          static_cast<T>(1 - update.momentum),        static_cast<T>(update.second_momentum),
          static_cast<T>(1 - update.second_momentum), static_cast<T>(kept_part(update))};
}

}  // namespace braid
