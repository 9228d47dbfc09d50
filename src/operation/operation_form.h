// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/transfer_settings.h"
#include "operation/codec_hop.h"
#include "operation/submission.h"
#include "operation/tensor_group.h"
#include "update/shard_state.h"

namespace braid {

// What a plan says of a group's operations: made once with the plan, shared by all submissions of
// the group, and constant.
struct OperationForm {
  std::optional<uint32_t> plan;              // its number; nothing: the operation is not planned
  std::shared_ptr<const TensorGroup> group;  // of one tensor or several; nullptr: not planned
  // How the operation travels; nullptr: as the engines and the ring say.
  std::shared_ptr<const TransferSettings> settings;
  CodecSpec codec;  // of gradients
  // All tensors with this codec; nullptr: none, or the elements do not travel.
  std::shared_ptr<const CodedTensors> coded;
  std::shared_ptr<ShardState> shard;  // what this node keeps of the set; nullptr: nothing
  uint32_t sample_every_steps = 0;    // see JobStart

  bool is_merged() const { return group != nullptr && group->members.size() > 1; }
  size_t members() const { return group == nullptr ? 1 : group->members.size(); }
  uint64_t urgency_in(uint64_t step) const;
  // Weights that are loaded or fetched travel as they are.
  bool encodes(const UpdateStep& update) const {
    return shard == nullptr || update.takes_gradient();
  }
  // Whether what the codec loses is measured. Not where weights come back: they would be taken for
  // sums.
  bool is_sampled_in(uint64_t step) const;
  // What all ranks must agree on about the operation that the submission belongs to.
  Signature signature_of(const Submission& submission) const;
};

// A tensor's place in its operation.
struct PlannedTensor {
  std::shared_ptr<const OperationForm> form;  // nullptr: the tensor is not planned
  uint32_t member = 0;                        // of the form's group
};

// Whether codecs are measured in this step of a set. `full_every`: of the codec; a step that it
// sends in full is none, and the next one is sampled instead.
bool is_sampled_step(uint64_t step, uint32_t every_steps, uint32_t full_every);

}  // namespace braid
