// SPDX-License-Identifier: Apache-2.0
// The node's part of guarding codecs: it tells what it has measured, and ends those that lose too
// much when all nodes do.
#include "base/log.h"
#include "planning/plan_book.h"

namespace braid {
namespace {

// "'layer0' and 3 more tensors"
std::string describe_group(const PlanSet& set, const PlainGroup& group) {
  const std::string& first = *set.tensors()[*set.index_of(group.tensors.front())].name;
  const size_t more = group.tensors.size() - 1;
  if (more == 0) return fmt::format("'{}'", first);
  return fmt::format("'{}' and {} more {}", first, more, more == 1 ? "tensor" : "tensors");
}

}  // namespace

Status PlanBook::on_loss(const OperationKey& key, const CodecLoss& loss) {
  const auto* known = set_of_tensor_.find(key.tensor);
  if (known == nullptr) return Status::ok();
  const auto position = sets_.find(*known);
  if (position == sets_.end()) return Status::ok();  // it is being taken out of the index
  const PlanSet& set = position->second.set;
  const uint32_t tensor = *set.index_of(key.tensor);
  CodecSample sample;
  sample.job_key = job_key_;
  sample.set = set.id();
  sample.plan = set.plan_of(key.step).number;
  sample.step = key.step;
  sample.codec = set.codec_of(tensor, key.step);
  const PlannedTensor planned = set.find(tensor, key.step);
  for (const TensorGroup::Member& member : planned.form->group->members)
    sample.tensors.push_back(member.tensor);
  sample.loss = loss;
  auto message = make_codec_sample(sample);
  return actions_.send(message);
}

Status PlanBook::check_plain(const Set& set, const PlanProposal& proposal) const {
  for (const PlainGroup& group : proposal.plain) {
    BRAID_RETURN_IF_ERROR(set.set.check_plain(group.tensors)
                              .with_context(fmt::format("job '{}': the coordinator", job_.name)));
  }
  return Status::ok();
}

void PlanBook::end_codecs(Set& set, const PlanProposal& proposal) {
  std::vector<uint64_t> tensors;
  for (const PlainGroup& group : proposal.plain) {
    tensors.insert(tensors.end(), group.tensors.begin(), group.tensors.end());
    const uint32_t first = *set.set.index_of(group.tensors.front());
    BRAID_LOG_WARN(LogFields{.job = job_},
                   "job '{}': {} {} without the codec {} from step {} on: its {} is {:.4g}, and "
                   "guard.{}_{} on the coordinator is {:.4g}",
                   job_.name, describe_group(set.set, group),
                   group.tensors.size() == 1 ? "goes" : "go",
                   to_string(set.set.tensors()[first].codec), proposal.from_step,
                   to_string(group.limit), group.measured, to_string(group.limit),
                   group.limit == GuardLimit::Cosine ? "min" : "max", group.allowed);
    set.plain.emplace_back(proposal.from_step, group);
  }
  set.set.add_plain(proposal.number, proposal.from_step, tensors);
}

}  // namespace braid
