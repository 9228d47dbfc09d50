// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/polling.h"
#include "control/control_plane.h"
#include "coordinator/membership.h"
#include "job/session.h"
#include "tune/polling_duel.h"

namespace braid {

// Whether threads that wait for one job poll, on this node: those of its trainers, and the daemon's
// loops as long as any job polls. The coordinator's node leads: its duel says when all nodes of the
// job change sides. Nobody polls before it says so. Control loop only.
class JobPolling {
 public:
  // All outlive it. `jobs` null: node.polling is not adaptive here. Then nothing is switched here
  // and, if this node leads, nowhere.
  JobPolling(ControlPlane& control_plane, PollingJobs* jobs, const Membership& membership,
             const std::vector<Session*>& sessions);
  JobPolling(const JobPolling&) = delete;
  JobPolling& operator=(const JobPolling&) = delete;
  ~JobPolling() { poll(false); }

  // An operation of the job has ended here.
  void on_operation(uint64_t now_ns);
  // The coordinator's word, on its own node, too.
  void on_switch(const proto::PollingSwitch& message);
  const PollingDuel::Finding& finding() const { return finding_; }

 private:
  void poll(bool polls);

  ControlPlane& control_plane_;
  PollingJobs* const jobs_;
  const Membership& membership_;
  const std::vector<Session*>& sessions_;
  std::optional<PollingDuel> duel_;  // of the node that leads
  PollingDuel::Finding finding_;
  bool polls_ = false;
};

}  // namespace braid
