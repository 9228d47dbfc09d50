// SPDX-License-Identifier: Apache-2.0
#include "planning/set_memory.h"

namespace braid {
namespace {

// What counts as its user's memory as long as it is there.
template <typename Held>
struct Charged {
  UserCharge charge;
  Held held;
};

}  // namespace

Result<PlanSet::Kept> SetMemory::make(const PlanSet& set) const {
  PlanSet::Kept kept;
  for (uint32_t i = 0; ring_->nodes > 1 && i < set.codecs().size(); ++i) {
    auto coded = code(set.codecs()[i], set.coded_elements(i));
    if (!coded) return coded.status();
    kept.coded.push_back(std::move(*coded));
  }
  const PlanSet::Tensor& first = set.tensors().front();
  if (first.state_slots == 0) return kept;
  auto state = shard(set.elements(), first.state_slots, first.dtype);
  if (!state) return state.status();
  kept.shard = std::move(*state);
  return kept;
}

Result<std::shared_ptr<const CodedTensors>> SetMemory::code(const CodecSpec& spec,
                                                            uint64_t elements) const {
  auto sum = make_coded_sum(spec, ring_->nodes, 1);
  auto average = make_coded_sum(spec, ring_->nodes, ring_->world_size);
  if (!sum) return sum.status();
  if (!average) return average.status();
  auto kept = std::make_shared<Charged<CodedTensors>>();
  CodedTensors& coded = kept->held;
  coded.sum = std::move(*sum);
  coded.average = std::move(*average);
  if (const uint32_t planes = coded.sum.memory_floats; planes != 0) {
    auto charged = charge(ErrorMemory::bytes_of(elements, planes));
    if (!charged) {
      return charged.status().with_context(
          fmt::format("what the codec {} loses of {} elements is kept on each node",
                      to_string(spec), elements));
    }
    kept->charge = std::move(*charged);
    auto memory = ErrorMemory::create(elements, planes);
    if (!memory) return memory.status();
    coded.memory = std::move(*memory);
  }
  return std::shared_ptr<const CodedTensors>(kept, &coded);
}

Result<std::shared_ptr<ShardState>> SetMemory::shard(uint64_t elements, uint32_t slots,
                                                     DataType dtype) const {
  const ShardLayout layout = {elements, stripe_elements_of(elements, ring_->nodes), ring_->nodes,
                              ring_->self};
  auto charged = charge(ShardState::bytes_of(layout, slots, dtype));
  if (!charged) {
    return charged.status().with_context(
        fmt::format("{} values for each of this node's {} of {} weights are kept", slots,
                    layout.owned_elements(), elements));
  }
  auto state = ShardState::create(layout, slots, dtype);
  if (!state) return state.status();
  auto kept = std::make_shared<Charged<std::shared_ptr<ShardState>>>();
  kept->charge = std::move(*charged);
  kept->held = std::move(*state);
  return std::shared_ptr<ShardState>(kept, kept->held.get());
}

Result<UserCharge> SetMemory::charge(std::optional<uint64_t> bytes) const {
  if (!bytes) return Status(StatusCode::ResourceExhausted, "no machine has memory for so much");
  UserCharge charged = make_charge_();
  BRAID_RETURN_IF_ERROR(charged.set(*bytes));
  return charged;
}

}  // namespace braid
