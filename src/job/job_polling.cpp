// SPDX-License-Identifier: Apache-2.0
#include "job/job_polling.h"

#include <cmath>

#include "coordinator/member_messages.h"

namespace braid {

JobPolling::JobPolling(ControlPlane& control_plane, PollingJobs* jobs, const Membership& membership,
                       const std::vector<Session*>& sessions)
    : control_plane_(control_plane), jobs_(jobs), membership_(membership), sessions_(sessions) {
  // That of rank 0 coordinates.
  if (jobs_ != nullptr && membership_.local_ranks.front() == 0)
    duel_.emplace(membership_.nodes.size());
}

void JobPolling::on_operation(uint64_t now_ns) {
  if (!duel_ || !duel_->on_operation(now_ns)) return;
  const PollingDuel::Finding& found = duel_->finding();
  // A node that cannot be told is lost, and the job with it.
  (void)send_to_all(
      control_plane_, membership_.nodes,
      make_polling_switch(membership_.key, duel_->polls(), found.pays, found.gain, found.duels));
}

void JobPolling::on_switch(const proto::PollingSwitch& message) {
  const double gain = message.gain();
  finding_ = {message.pays(), std::isfinite(gain) && gain > 0 ? gain : 0, message.duels()};
  poll(message.polls());
}

void JobPolling::poll(bool polls) {
  if (jobs_ == nullptr || polls == polls_) return;
  polls_ = polls;
  if (polls) {
    jobs_->add();
  } else {
    jobs_->remove();
  }
  for (Session* session : sessions_) {
    if (session != nullptr) session->let_trainer_poll(polls);
  }
}

}  // namespace braid
