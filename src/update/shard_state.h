// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/status.h"
#include "proto/types.h"
#include "proto/update.h"

namespace braid {

// Which elements of a set a node owns: see FixedOwners.
struct ShardLayout {
  uint64_t elements = 0;  // of the set
  uint64_t stripe_elements = 1;
  uint32_t nodes = 1;
  uint32_t place = 0;  // this node's

  uint64_t owned_elements() const;
  // The place of an owned element among the owned ones. Elements of one stripe follow each other.
  uint64_t index_of(uint64_t element) const;
};

// The length of stripes for a set of so many elements: short enough for groups to be dealt out
// evenly, long enough for chunks to be worth a message. A pure function, the same on all nodes.
uint64_t stripe_elements_of(uint64_t elements, uint32_t nodes);

// What the owner keeps for each element that it owns: one value in each of up to three slots, of
// float64 where the tensors are, else of float32. Begins with zeros, and takes memory page by page
// as it is written. Elements are read and written on I/O loops, those of one operation by one chunk
// each; the rest is of the control loop.
class ShardState {
 public:
  // `slots`: 1 to 3. ResourceExhausted: there is no such address space.
  static Result<std::shared_ptr<ShardState>> create(const ShardLayout& layout, uint32_t slots,
                                                    DataType tensors);
  // The bytes that create() would take; nothing: no number is so large.
  static std::optional<uint64_t> bytes_of(const ShardLayout& layout, uint32_t slots,
                                          DataType tensors);

  const ShardLayout& layout() const { return layout_; }
  uint32_t slots() const { return slots_; }
  bool is_float64() const { return value_bytes_ == sizeof(double); }
  // The values in a slot of so many elements of the set, 1 at least, from an owned one on: all of
  // one stripe. `Value` is double where is_float64(), else float.
  template <class Value>
  std::span<Value> values(StateSlot slot, uint64_t element, uint64_t count) {
    const uint64_t bytes = offset_of(slot, element, count, sizeof(Value));
    return {reinterpret_cast<Value*>(bytes_.get() + bytes), count};
  }

  // The operations of a step may run at once, for each element is in one of them. Those of another
  // step wait until they are done.
  bool may_begin(uint64_t step) const { return running_ == 0 || step == step_; }
  void begin(uint64_t step);
  // Once for each that has begun.
  void end();

 private:
  struct Free {
    void operator()(uint8_t* bytes) const { std::free(bytes); }
  };
  uint64_t offset_of(StateSlot slot, uint64_t element, uint64_t count, size_t value_bytes) const;

  ShardState(std::unique_ptr<uint8_t, Free> bytes, const ShardLayout& layout, uint32_t slots,
             uint32_t value_bytes)
      : bytes_(std::move(bytes)), layout_(layout), slots_(slots), value_bytes_(value_bytes) {}

  const std::unique_ptr<uint8_t, Free> bytes_;
  const ShardLayout layout_;
  const uint32_t slots_;
  const uint32_t value_bytes_;
  uint64_t step_ = 0;
  uint64_t running_ = 0;  // operations
};

}  // namespace braid
