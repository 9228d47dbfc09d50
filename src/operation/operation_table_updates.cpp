// SPDX-License-Identifier: Apache-2.0
// What a table does for an operation whose owners keep state: all ranks ask for the same updates,
// and the engine gets the step that makes them. Nothing that is kept is asked for what it has not.
#include "base/assert.h"
#include "base/checked.h"
#include "engine/fixed_owners.h"
#include "operation/operation_table.h"
#include "update/optimizer_step.h"

namespace braid {
namespace {

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

bool is_one_round(const UpdateStep& one, const UpdateStep& other) {
  return one.action == other.action && one.slot == other.slot && one.bits == other.bits &&
         one.has(kUpdatePullBFloat16) == other.has(kUpdatePullBFloat16);
}

}  // namespace

bool OperationTable::pulls_rounded(const Entry& entry) {
  return entry.shard != nullptr && entry.signature.update.has(kUpdatePullBFloat16);
}

bool OperationTable::has_hop(const Entry& entry) const {
  return entry.coded != nullptr || (pulls_rounded(entry) && ring_->nodes > 1);
}

// What this node keeps for a set was made for the set's elements. An operation of others would read
// and write behind it.
Status OperationTable::check_kept(const OperationKey& key, const Entry& entry) const {
  const bool fits_codec = entry.coded == nullptr || entry.coded->memory == nullptr ||
                          lies_within(entry, entry.coded->memory->size(), entry.first_element,
                                      &TensorGroup::Member::first_element);
  const bool fits_shard =
      entry.shard == nullptr || lies_within(entry, entry.shard->layout().elements,
                                            entry.first_in_set, &TensorGroup::Member::first_in_set);
  if (fits_codec && fits_shard) return Status::ok();
  return make_status(StatusCode::Mismatch,
                     "job '{}': {} has elements beyond those for which {} is kept", job_name_,
                     describe(entry, key),
                     fits_shard ? "what its codec loses" : "the optimizer's state");
}

// Whether the operation's elements are some of so many of a set.
bool OperationTable::lies_within(const Entry& entry, uint64_t elements, uint64_t first,
                                 uint64_t TensorGroup::Member::*first_of_member) {
  if (entry.group == nullptr) return range_fits(first, entry.signature.count, elements);
  CheckedNumber all = 0;
  for (const TensorGroup::Member& member : entry.group->members) {
    if (!range_fits(member.*first_of_member, member.count, elements)) return false;
    all += member.count;
  }
  return all.value() == entry.signature.count;
}

// Hyper-parameters may differ from tensor to tensor, and not from rank to rank.
Status OperationTable::check_update(const OperationKey& key, Entry& entry,
                                    const Submission& submission) const {
  std::optional<UpdateStep>& known = entry.updates[submission.member];
  const uint32_t rank = local_ranks_[submission.local_rank];
  if (known && *known != submission.update) {
    return make_status(
        StatusCode::Mismatch,
        "job '{}': ranks disagree about '{}' step {}: rank {} says {}, another rank of its node "
        "says {}",
        job_name_, *submission.name, key.step, rank, to_string(submission.update),
        to_string(*known));
  }
  known = submission.update;
  for (const std::optional<UpdateStep>& other : entry.updates) {
    if (!other || is_one_round(*other, *known)) continue;
    return make_status(StatusCode::InvalidArgument,
                       "job '{}': rank {} asks for {} of '{}' step {}, and for {} of a tensor that "
                       "is merged with it; all weights of a registration have one action in a step",
                       job_name_, rank, to_string(*known), *submission.name, key.step,
                       to_string(*other));
  }
  return Status::ok();
}

// Of one that all local ranks have submitted.
void OperationTable::prepare_update(Entry& entry, Operation& operation) const {
  std::vector<OptimizerStep::Member> steps;
  std::vector<UpdateStep> updates;
  for (size_t i = 0; i < entry.updates.size(); ++i) {
    BRAID_ASSERT(entry.updates[i].has_value(), "every member was submitted");
    const UpdateStep& update = *entry.updates[i];
    updates.push_back(update);
    steps.push_back(
        {entry.group == nullptr ? entry.signature.count : entry.group->members[i].count, update});
  }
  entry.signature.update = updates.front();
  entry.signature.updates = hash_of(updates);
  const UpdateAction action = entry.signature.update.action;
  operation.halves = halves_of(action);
  auto owners = std::make_shared<FixedOwners>();
  static_cast<ElementRanges&>(*owners) =
      elements_of(entry, entry.first_in_set, &TensorGroup::Member::first_in_set);
  owners->stripe_elements = entry.shard->layout().stripe_elements;
  operation.fixed_owners = std::move(owners);
  // With a codec nodes divide their parts.
  const bool divides = entry.signature.reduction == Reduction::Average && !has_hop(entry);
  operation.owner_step = std::make_shared<OptimizerStep>(entry.shard, std::move(steps),
                                                         divides ? ring_->world_size : 1);
  if (action == UpdateAction::Load)
    operation.contribution = std::make_shared<StateContribution>(operation.inputs.front());
  if (action == UpdateAction::Fetch) operation.contribution = std::make_shared<StateContribution>();
}

}  // namespace braid
