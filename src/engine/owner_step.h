// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "engine/operation.h"
#include "engine/partition.h"

namespace braid {

// Who waits for a step.
class StepListener {
 public:
  virtual ~StepListener() = default;
  virtual void on_step_ended(uint32_t unit, uint32_t segment, uint32_t chunk) = 0;
};

// How a step that took its time says that it has ended. It keeps the operation's memory, so the
// step may write to it until then. It may be moved to any thread and back.
struct StepEnd {
  std::shared_ptr<StepListener> listener;
  uint32_t unit = 0;
  uint32_t segment = 0;
  uint32_t chunk = 0;

  // Once, on the I/O loop, after apply() has returned. After an abort it only lets go of the
  // memory.
  void tell() { std::exchange(listener, nullptr)->on_step_ended(unit, segment, chunk); }
};

enum class StepOutcome : uint8_t { Ended, Later };

// What the owner makes of a sum, before all others get it: reduction, then step. It is applied once
// to each chunk that this node owns, as soon as its sum is complete: chunks come in any order and
// may overlap in time. Where a route has several owners (a direct one), it is applied at each of
// them and must give the same bits. Called on the I/O loop.
//
// A step that keeps state for each element goes with Operation::fixed_owners. Then each element of
// a set comes to the same node in every step of an epoch, once for each operation that holds it,
// whatever plan and settings do. How the elements are divided into operations and chunks does
// change, and so does the I/O loop that an element comes on: so the state is kept by element, and
// first_element_of() says which elements have come.
class OwnerStep {
 public:
  virtual ~OwnerStep() = default;
  // `bytes` holds the sum of `extent`, and what it holds when the step has ended goes out. Ended:
  // it has. Later: the step calls end.tell() when it has; the chunk waits for that, and nobody
  // reads or writes its bytes meanwhile. A step cannot fail: if it cannot go on, it ends the job.
  virtual StepOutcome apply(const Operation& operation, const Extent& extent, uint8_t* bytes,
                            StepEnd end) = 0;
};

// The element of the set that `extent`, a chunk, begins with. Its other elements follow in the set,
// too. Only for an operation whose owners are fixed.
uint64_t first_element_of(const Operation& operation, const Extent& extent);

// Divides by the number of ranks.
class AverageStep final : public OwnerStep {
 public:
  StepOutcome apply(const Operation& operation, const Extent& extent, uint8_t* bytes,
                    StepEnd end) override;
};

}  // namespace braid
