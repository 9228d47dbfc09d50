// SPDX-License-Identifier: Apache-2.0
#include "job/job_duels.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "coordinator/member_messages.h"

namespace braid {

JobDuels::JobDuels(ControlPlane& control_plane, const Membership& membership, Subjects subjects)
    : control_plane_(control_plane), membership_(membership) {
  const bool leads = membership_.local_ranks.front() == 0;  // that of rank 0 coordinates
  for (size_t i = 0; i < sides_.size(); ++i) {
    sides_[i].subject = std::move(subjects[i]);
    if (leads) sides_[i].duel.emplace(membership_.nodes.size());
  }
}

void JobDuels::on_operation(uint64_t now_ns) {
  const auto is_on = [](const Side& side) { return side.duel && side.duel->is_on(); };
  const auto on = std::ranges::find_if(sides_, is_on);
  bool is_taken = on != sides_.end();
  for (auto side = sides_.begin(); side != sides_.end(); ++side) {
    if (!side->duel) continue;
    if (is_taken && side != on) {
      side->duel->pass_over(now_ns);
      continue;
    }
    let_try(*side, now_ns);
    is_taken = is_taken || is_on(*side);
  }
}

void JobDuels::let_try(Side& side, uint64_t now_ns) {
  if (!side.subject.may_try()) {
    const bool was_rival = side.duel->is_rivals_turn();
    side.duel.reset();
    if (was_rival) tell(side, false, {});
    return;
  }
  if (side.duel->on_operation(now_ns))
    tell(side, side.duel->is_rivals_turn(), side.duel->finding());
}

void JobDuels::tell(const Side& side, bool rival, const OperationDuel::Finding& found) {
  const auto subject = static_cast<proto::DuelSubject>(&side - sides_.data());
  // A node that cannot be told is lost, and the job with it.
  (void)send_to_all(
      control_plane_, membership_.nodes,
      make_duel_switch(membership_.key, {subject, rival, found.pays, found.gain, found.duels}));
}

void JobDuels::on_switch(const proto::DuelSwitch& message) {
  const auto subject = static_cast<size_t>(message.subject());
  if (subject >= sides_.size()) return;  // of a newer version
  const double gain = message.gain();
  Side& side = sides_[subject];
  side.finding = {message.pays(), std::isfinite(gain) && gain > 0 ? gain : 0, message.duels()};
  side.subject.take(message.rival());
}

}  // namespace braid
