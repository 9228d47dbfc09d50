// SPDX-License-Identifier: Apache-2.0
// The director's part of guarding codecs: what loses too much goes plain at one step on all nodes.
#include <algorithm>

#include "base/log.h"
#include "coordinator/plan_director.h"
#include "planning/plan_set.h"

namespace braid {

PlanDirector::~PlanDirector() {
  if (options_.guard.board != nullptr) options_.guard.board->set(job_key_, {});
}

void PlanDirector::on_codec_sample(NodeId from, const proto::CodecSample& message) {
  const auto sample = parse_codec_sample(message);
  if (!sample)
    return BRAID_LOG_WARN(LogFields{.job = job_}, "job '{}': {}", job_.name,
                          sample.status().message());
  Set* found = find_or_make(sample->set);
  if (found == nullptr) return;
  Set& set = *found;
  set.latest_step = std::max(set.latest_step, sample->step);
  auto plain = guard_.add(from, *sample);
  if (plain) {
    guard_.set_plain(sample->set, plain->tensors);
    set.leaving.push_back(std::move(*plain));
    propose_plain(sample->set, set);
  }
  show_readings();
}

void PlanDirector::show_readings() {
  if (options_.guard.board == nullptr || board_timer_.is_active()) return;
  board_timer_.start_once(kBoardDelayMs,
                          [this] { options_.guard.board->set(job_key_, guard_.worst()); });
}

// False: there is nothing to propose, or another proposal is on its way; its end comes back here.
bool PlanDirector::propose_plain(uint64_t id, Set& set) {
  if (set.leaving.empty() || set.proposal || !set.unregistered.empty()) return false;
  PlanProposal proposal;
  proposal.set = id;
  proposal.number = ++set.last_number;
  proposal.from_step = std::max(set.latest_step + set.plain_notice_steps, set.plan_from_step + 1);
  proposal.plain = set.leaving;
  propose(set, std::move(proposal));
  return true;
}

void PlanDirector::on_plain_concluded(Set& set, const PlanProposal& proposal, bool holds) {
  if (!holds) {
    set.plain_notice_steps = std::min(set.plain_notice_steps * 2, kNoticeStepsMax);
    return;
  }
  // Others may have come meanwhile.
  set.leaving.erase(set.leaving.begin(),
                    set.leaving.begin() + static_cast<int64_t>(proposal.plain.size()));
  for (const PlainGroup& group : proposal.plain)
    set.plain.insert(group.tensors.begin(), group.tensors.end());
  set.groups =
      part_groups(set.groups, [&set](uint64_t tensor) { return set.plain.contains(tensor); });
  if (options_.guard.board != nullptr)
    options_.guard.board->count_plain_groups(proposal.plain.size());
}

}  // namespace braid
