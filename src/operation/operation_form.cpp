// SPDX-License-Identifier: Apache-2.0
#include "operation/operation_form.h"

#include "engine/urgency.h"

namespace braid {

uint64_t OperationForm::urgency_in(uint64_t step) const {
  return group == nullptr ? kMostUrgent : urgency_of(step, group->last_place);
}

bool OperationForm::is_sampled_in(uint64_t step) const {
  return shard == nullptr && is_sampled_step(step, sample_every_steps, codec.full_every);
}

Signature OperationForm::signature_of(const Submission& submission) const {
  Signature signature = submission.signature;
  if (codec.kind != CodecKind::None && encodes(submission.update)) signature.codec = codec;
  if (!is_merged()) return signature;
  signature.count = group->count;
  signature.group = group->hash;
  return signature;
}

bool is_sampled_step(uint64_t step, uint32_t every_steps, uint32_t full_every) {
  if (every_steps == 0) return false;
  const auto is_full = [&](uint64_t one) { return full_every != 0 && (one + 1) % full_every == 0; };
  if (is_full(step)) return false;
  if ((step + 1) % every_steps == 0) return true;
  return step != 0 && step % every_steps == 0 && is_full(step - 1);
}

}  // namespace braid
