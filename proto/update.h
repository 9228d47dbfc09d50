// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace braid {

// These numbers are braid_update_action, braid_optimizer, braid_state_slot and braid_state_bits of
// braid.h, and cross every boundary.

// Apply: sum, the optimizer's step at the owner, and all ranks get the new weights. Push: the same,
// and nobody gets them. Load: each owner takes a slot's values from its own node's input, and all
// ranks get what the owners took. Fetch: all ranks get a slot's values. Estimate: all ranks get the
// weights that Apply would make, and what is kept stays as it is.
enum class UpdateAction : uint8_t { Apply = 0, Push, Load, Fetch, Estimate };
enum class Optimizer : uint8_t { Sgd = 0, Adam, Lion };
// What the owner keeps for each element: the weight, the momentum (Adam: the first moment), the
// second moment.
enum class StateSlot : uint8_t { Weights = 0, First, Second };
// Which bits of a value Load and Fetch move. Rounded: the value in the tensor's type. High and Low:
// of tensors of 16 bits, whose state is float32, its upper and its lower half.
enum class StateBits : uint8_t { Rounded = 0, High, Low };

inline constexpr uint8_t kUpdateActionCount = 5;
inline constexpr uint8_t kOptimizerCount = 3;
inline constexpr uint8_t kStateSlotCount = 3;
inline constexpr uint8_t kStateBitsCount = 3;

inline constexpr uint32_t kUpdateNesterov = 1;        // SGD
inline constexpr uint32_t kUpdateDecoupledDecay = 2;  // weight decay beside the gradient, as AdamW
inline constexpr uint32_t kUpdatePullBFloat16 = 4;    // weights that all get travel so
inline constexpr uint32_t kUpdateFlags = 7;           // all of them

namespace proto {

// What one update asks for, as it lies in the arena: SubmitEntry::table says where.
struct UpdateEntry {
  uint8_t action;     // UpdateAction
  uint8_t optimizer;  // Optimizer
  uint8_t slot;       // StateSlot, of Load and Fetch
  uint8_t bits;       // StateBits, of Load and Fetch
  uint32_t flags;     // kUpdate…
  uint64_t count;     // updates of the tensor so far, this one included: 1, 2, …
  double learning_rate;
  double momentum;         // Adam and Lion: β1
  double dampening;        // SGD
  double second_momentum;  // Adam and Lion: β2
  double epsilon;          // Adam
  double weight_decay;
};
static_assert(sizeof(UpdateEntry) == 64);

}  // namespace proto
}  // namespace braid
