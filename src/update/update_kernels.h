// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "proto/types.h"
#include "update/update_step.h"

namespace braid {

// The state of some elements that follow one another. `Value` is double for tensors of float64,
// else float. A slot that the optimizer has no need of is neither read nor written, and may be
// nullptr (UpdateStep::slots).
template <class Value>
struct ShardValues {
  Value* weights = nullptr;
  Value* first = nullptr;
  Value* second = nullptr;
};

// One step of the optimizer, in one pass over memory. `sums` has the gradients' sums, at any
// alignment: they are divided by `divisor`, the state changes in place, and the new weights are
// written over the sums, rounded to nearest even; with kUpdatePullBFloat16 they are float32 numbers
// that bfloat16 has, too.
//
// Arithmetic is in `Value`, and each operation is rounded by itself: all instruction sets give the
// same bits, except that which NaN a NaN is may differ. Formulas and the order of operations are
// those of torch.optim for single tensors (SGD, Adam, AdamW), where numbers like 1 − β2^count are
// made in double, and those of Lion's authors (Chen et al., "Symbolic Discovery of Optimization
// Algorithms", NeurIPS 2023, program 1). `update` takes a gradient; `dtype` is one of floats.
void update_floats(DataType dtype, const UpdateStep& update, uint32_t divisor, uint64_t count,
                   const ShardValues<float>& state, uint8_t* sums);
// The same for float64.
void update_doubles(const UpdateStep& update, uint32_t divisor, uint64_t count,
                    const ShardValues<double>& state, uint8_t* sums);

}  // namespace braid
