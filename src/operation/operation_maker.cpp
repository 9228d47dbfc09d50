// SPDX-License-Identifier: Apache-2.0
#include "operation/operation_maker.h"

#include "base/checked.h"
#include "base/hash.h"
#include "engine/fixed_owners.h"
#include "operation/algorithm_choice.h"
#include "update/optimizer_step.h"

namespace braid {
namespace {

using FirstOfMember = uint64_t TensorGroup::Member::*;

// A barrier is an all-reduce of one byte that nobody looks at.
alignas(64) constexpr uint8_t kBarrierInput[64] = {};

Halves halves_of(UpdateAction action) {
  switch (action) {
    case UpdateAction::Apply:
    case UpdateAction::Estimate:
      return Halves::Both;
    case UpdateAction::Push:
      return Halves::ReduceScatter;
    case UpdateAction::Load:
    case UpdateAction::Fetch:
      return Halves::Gather;
  }
  return Halves::Both;
}

ElementRanges elements_of(const GatheredOperation& submitted, FirstOfMember first) {
  ElementRanges elements;
  for (const TensorGroup::Member& member : submitted.form().group->members)
    elements.append(member.*first, member.count);
  return elements;
}

// Whether the operation's elements are some of so many of a set.
bool lies_within(const GatheredOperation& submitted, uint64_t elements, FirstOfMember first) {
  CheckedNumber all = 0;
  for (const TensorGroup::Member& member : submitted.form().group->members) {
    if (!range_fits(member.*first, member.count, elements)) return false;
    all += member.count;
  }
  return all.value() == submitted.signature().count;
}

bool pulls_rounded(const GatheredOperation& submitted) {
  return submitted.shard() != nullptr && submitted.signature().update.has(kUpdatePullBFloat16);
}

void add_root(const Ring& ring, uint32_t root, Operation& operation) {
  const uint32_t root_block = ring.block_of_rank[root];
  uint32_t first_block = 0;
  while (root_block >= first_block + ring.ranks_of_node[operation.root_node])
    first_block += ring.ranks_of_node[operation.root_node++];
  operation.root_local_input = root_block - first_block;
}

// Around the ring each node encodes a sum.
void say_what_is_final(const Operation& operation, CodecGauge& gauge) {
  if (operation.is_direct) gauge.set_final(Encoding::Part);
  if (operation.route == &operation.ring->routes->two_hops) gauge.set_final(Encoding::Sum);
}

}  // namespace

// What this node keeps for a set was made for the set's elements. An operation of others would read
// and write behind it.
Status OperationMaker::check(const GatheredOperation& submitted) const {
  const CodedTensors* const coded = submitted.coded();
  const bool fits_codec =
      coded == nullptr || coded->memory == nullptr ||
      lies_within(submitted, coded->memory->size(), &TensorGroup::Member::first_element);
  const bool fits_shard =
      submitted.shard() == nullptr || lies_within(submitted, submitted.shard()->layout().elements,
                                                  &TensorGroup::Member::first_in_set);
  if (fits_codec && fits_shard) return Status::ok();
  return make_status(StatusCode::Mismatch,
                     "job '{}': {} has elements beyond those for which {} is kept", job_.name,
                     submitted.describe(),
                     fits_shard ? "what its codec loses" : "the optimizer's state");
}

Operation OperationMaker::make(const GatheredOperation& submitted,
                               const std::shared_ptr<CodecGauge>& gauge) const {
  const Signature& signature = submitted.signature();
  const bool is_barrier = signature.collective == Collective::Barrier;
  Operation operation;
  operation.key = submitted.key();
  operation.collective = is_barrier ? Collective::AllReduce : signature.collective;
  operation.dtype = is_barrier ? DataType::Uint8 : signature.dtype;
  operation.reduction = is_barrier ? Reduction::Max : signature.reduction;
  operation.count = is_barrier ? 1 : signature.count;
  operation.ring = job_.ring;
  operation.urgency = submitted.form().urgency_in(operation.key.step);
  operation.memory = memory_;
  if (is_exchange(operation.collective)) return operation;
  for (uint32_t i = 0; i < job_.local_ranks.size(); ++i)
    operation.inputs.push_back(is_barrier ? OperationInput(kBarrierInput) : submitted.input_of(i));
  if (operation.collective == Collective::Broadcast)
    add_root(*job_.ring, signature.root, operation);
  if (submitted.shard() != nullptr) add_update(submitted, operation);
  operation.hop = hop_of(submitted, gauge);
  choose_algorithm(operation, submitted.form().settings.get(), hash_of(signature, job_.hash));
  if (gauge != nullptr) say_what_is_final(operation, *gauge);
  return operation;
}

void OperationMaker::add_update(const GatheredOperation& submitted, Operation& operation) const {
  std::vector<OptimizerStep::Member> steps;
  for (size_t i = 0; i < submitted.updates().size(); ++i)
    steps.push_back({submitted.form().group->members[i].count, *submitted.updates()[i]});
  const UpdateAction action = submitted.signature().update.action;
  operation.halves = halves_of(action);
  auto owners = std::make_shared<FixedOwners>();
  static_cast<ElementRanges&>(*owners) = elements_of(submitted, &TensorGroup::Member::first_in_set);
  owners->stripe_elements = submitted.shard()->layout().stripe_elements;
  operation.fixed_owners = std::move(owners);
  // With a codec nodes divide their parts.
  const bool divides = operation.reduction == Reduction::Average && !has_hop(submitted);
  operation.owner_step = std::make_shared<OptimizerStep>(submitted.form().shard, std::move(steps),
                                                         divides ? job_.ring->world_size : 1);
  if (action == UpdateAction::Load)
    operation.contribution = std::make_shared<StateContribution>(operation.inputs.front());
  if (action == UpdateAction::Fetch) operation.contribution = std::make_shared<StateContribution>();
}

bool OperationMaker::has_hop(const GatheredOperation& submitted) const {
  return submitted.coded() != nullptr || (pulls_rounded(submitted) && job_.ring->nodes > 1);
}

std::shared_ptr<Hop> OperationMaker::hop_of(const GatheredOperation& submitted,
                                            std::shared_ptr<CodecGauge> gauge) const {
  if (!has_hop(submitted)) return nullptr;
  const OperationKey& key = submitted.key();
  const CodedTensors* const tensors = submitted.coded();
  CodedSum coded;
  if (tensors != nullptr) {
    const bool is_average = submitted.signature().reduction == Reduction::Average;
    coded = (is_average ? tensors->average : tensors->sum).of_step(key.step);
  }
  auto memory = coded.memory_floats != 0 ? tensors->memory : nullptr;
  if (submitted.shard() != nullptr)
    coded = with_weights(tensors == nullptr ? nullptr : &coded, pulls_rounded(submitted));
  // What an estimate loses is nobody's loss: its gradient comes again in the step that is kept.
  const bool is_estimate =
      submitted.shard() != nullptr && submitted.signature().update.action == UpdateAction::Estimate;
  return std::make_shared<CodecHop>(std::move(coded), std::move(memory),
                                    elements_of(submitted, &TensorGroup::Member::first_element),
                                    mix64(key.tensor) + job_.ring->self, key.step, std::move(gauge),
                                    is_estimate ? ErrorUse::Read : ErrorUse::Renew);
}

}  // namespace braid
