// SPDX-License-Identifier: Apache-2.0
#include "coordinator/codec_ends.h"

#include <algorithm>

#include "planning/plan_set.h"

namespace braid {

CodecEnds::CodecEnds(const PlannedJob& job, const GuardOptions& options)
    : job_(job), guard_(job.label.name, job.nodes.size(), options), board_timer_(job.loop) {}

CodecEnds::~CodecEnds() {
  if (guard_.options().board != nullptr) guard_.options().board->set(job_.key, {});
}

void CodecEnds::on_sample(NodeId from, const CodecSample& sample) {
  if (auto plain = guard_.add(from, sample)) {
    guard_.set_plain(sample.set, plain->tensors);
    sets_[sample.set].leaving.push_back(std::move(*plain));
  }
  show_readings();
}

void CodecEnds::show_readings() {
  if (guard_.options().board == nullptr || board_timer_.is_active()) return;
  board_timer_.start_once(kBoardDelayMs,
                          [this] { guard_.options().board->set(job_.key, guard_.worst()); });
}

std::optional<PlanProposal> CodecEnds::next(uint64_t set, const SetPlans& plans) const {
  const auto position = sets_.find(set);
  if (position == sets_.end() || position->second.leaving.empty()) return std::nullopt;
  PlanProposal proposal;
  proposal.from_step =
      std::max(plans.latest_step() + position->second.notice_steps, plans.from_step() + 1);
  proposal.plain = position->second.leaving;
  return proposal;
}

void CodecEnds::on_end(const PlanProposal& proposal, bool holds) {
  Set& set = sets_[proposal.set];
  if (!holds) {
    set.notice_steps = std::min(set.notice_steps * 2, kNoticeStepsMax);
    return;
  }
  // Others may have come meanwhile.
  set.leaving.erase(set.leaving.begin(),
                    set.leaving.begin() + static_cast<int64_t>(proposal.plain.size()));
  for (const PlainGroup& group : proposal.plain)
    set.plain.insert(group.tensors.begin(), group.tensors.end());
  if (guard_.options().board != nullptr)
    guard_.options().board->count_plain_groups(proposal.plain.size());
}

std::vector<std::vector<uint64_t>> CodecEnds::part(
    uint64_t set, const std::vector<std::vector<uint64_t>>& groups) const {
  const std::set<uint64_t>& plain = sets_.at(set).plain;
  return part_groups(groups, [&plain](uint64_t tensor) { return plain.contains(tensor); });
}

void CodecEnds::forget(uint64_t set) {
  sets_.erase(set);
  guard_.forget(set);
  show_readings();
}

}  // namespace braid
