// SPDX-License-Identifier: Apache-2.0
#include "update/shard_state.h"

#include <algorithm>

#include "base/assert.h"
#include "base/checked.h"

namespace braid {
namespace {

// A node has that many stripes of a set, so what it owns is within a sixteenth of its fair part of
// the set, and a group of a few percent of the set is still owned by all nodes.
constexpr uint64_t kStripesOfNode = 16;
// A stripe is cut into chunks. The longest one is 1 MiB of float32: 8 chunks of 128 KiB
// (partition.cpp). With 256 KiB, so chunks of 64 KiB, updates of 25.7 M weights took 1.1 times as
// long as all-reduces of as many on a busy machine, and now as long. The shortest one is 1 KiB of
// float32: a shorter one costs a message that carries less than its own costs.
constexpr uint64_t kStripeElementsMin = 256;
constexpr uint64_t kStripeElementsMax = 262'144;
constexpr uint64_t kStripeStep = 16;  // of elements: a cache line of float32, a kernel's row

constexpr uint64_t kBytesMax = PTRDIFF_MAX;  // of one piece of memory

uint64_t value_bytes_of(DataType tensors) {
  return tensors == DataType::Float64 ? sizeof(double) : sizeof(float);
}

}  // namespace

uint64_t ShardLayout::owned_elements() const {
  const uint64_t round = stripe_elements * nodes;
  const uint64_t before = place * stripe_elements;
  const uint64_t rest = elements % round;
  return elements / round * stripe_elements +
         (rest > before ? std::min(rest - before, stripe_elements) : 0);
}

uint64_t ShardLayout::index_of(uint64_t element) const {
  BRAID_ASSERT(element < elements && element / stripe_elements % nodes == place,
               "the element has another owner");
  return element / (stripe_elements * nodes) * stripe_elements + element % stripe_elements;
}

uint64_t stripe_elements_of(uint64_t elements, uint32_t nodes) {
  BRAID_ASSERT(nodes != 0, "a set has nodes");
  const uint64_t wanted = round_up(divide_up(elements, nodes * kStripesOfNode), kStripeStep);
  return std::clamp(wanted, kStripeElementsMin, kStripeElementsMax);
}

std::optional<uint64_t> ShardState::bytes_of(const ShardLayout& layout, uint32_t slots,
                                             DataType tensors) {
  return (CheckedNumber(layout.owned_elements()) * slots * value_bytes_of(tensors)).value();
}

Result<std::shared_ptr<ShardState>> ShardState::create(const ShardLayout& layout, uint32_t slots,
                                                       DataType tensors) {
  BRAID_ASSERT(slots >= 1 && slots <= kStateSlotCount, "state has one to three slots");
  BRAID_ASSERT(tensors <= DataType::BFloat16, "weights are floats");
  BRAID_ASSERT(layout.stripe_elements != 0 && layout.place < layout.nodes,
               "stripes have elements, and this node a place");
  const auto bytes = bytes_of(layout, slots, tensors);
  std::unique_ptr<uint8_t, Free> memory;
  if (bytes && *bytes <= kBytesMax) {  // one more than none: no pointer would look like no memory
    memory.reset(static_cast<uint8_t*>(std::calloc(std::max<uint64_t>(*bytes, 1), 1)));
  }
  if (memory == nullptr) {
    return make_status(StatusCode::ResourceExhausted,
                       "no memory for the optimizer's state: {} bytes for each of {} elements",
                       slots * value_bytes_of(tensors), layout.owned_elements());
  }
  return std::shared_ptr<ShardState>(new ShardState(
      std::move(memory), layout, slots, static_cast<uint32_t>(value_bytes_of(tensors))));
}

uint64_t ShardState::offset_of(StateSlot slot, uint64_t element, uint64_t count,
                               size_t value_bytes) const {
  BRAID_ASSERT(static_cast<uint32_t>(slot) < slots_ && value_bytes == value_bytes_,
               "the state has this slot, of this type");
  BRAID_ASSERT(count != 0 && range_fits(element, count, layout_.elements) &&
                   count <= layout_.stripe_elements - element % layout_.stripe_elements,
               "the elements are of one stripe of the set");
  const uint64_t before = static_cast<uint64_t>(slot) * layout_.owned_elements();
  return (before + layout_.index_of(element)) * value_bytes_;
}

void ShardState::begin(uint64_t step) {
  BRAID_ASSERT(may_begin(step), "the operations of another step are not done");
  step_ = step;
  ++running_;
}

void ShardState::end() {
  BRAID_ASSERT(running_ != 0, "more operations are done than have begun");
  --running_;
}

}  // namespace braid
