// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "update/update_step.h"

namespace braid::test {

// The state of some elements, in plain arrays.
template <typename T>
struct ReferenceState {
  std::vector<T> weights;
  std::vector<T> first;
  std::vector<T> second;

  explicit ReferenceState(uint64_t elements = 0)
      : weights(elements), first(elements), second(elements) {}
  std::vector<T>& of(StateSlot slot) {
    return slot == StateSlot::Weights ? weights : slot == StateSlot::First ? first : second;
  }
  bool operator==(const ReferenceState&) const = default;
};

// What the optimizers' authors and torch.optim write, element by element and apart from the
// kernels, in the order of torch's operations. `sums` has elements of `dtype` from `begin` on: the
// new weights replace them.
template <typename T>
void reference_update(DataType dtype, const UpdateStep& update, uint32_t divisor,
                      ReferenceState<T>& state, uint64_t begin, uint64_t count, uint8_t* sums);

// One of each optimizer, and of each of its variants: all are Apply, of any dtype.
const std::vector<UpdateStep>& all_updates();

UpdateStep sgd(double learning_rate, double momentum = 0);
UpdateStep adam(double learning_rate, double weight_decay = 0, uint32_t flags = 0);
UpdateStep lion(double learning_rate, double weight_decay = 0);

}  // namespace braid::test
