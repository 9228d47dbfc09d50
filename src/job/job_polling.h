// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/polling.h"
#include "job/session.h"

namespace braid {

// Whether threads that wait for one job poll, on this node: those of its trainers, and the daemon's
// loops as long as any job polls. Control loop only.
class JobPolling {
 public:
  // Both outlive it. `jobs` null: node.polling is not adaptive here, and nothing is switched.
  JobPolling(PollingJobs* jobs, const std::vector<Session*>& sessions)
      : jobs_(jobs), sessions_(sessions) {}
  JobPolling(const JobPolling&) = delete;
  JobPolling& operator=(const JobPolling&) = delete;
  ~JobPolling() { poll(false); }

  bool is_adaptive() const { return jobs_ != nullptr; }
  void poll(bool polls);

 private:
  PollingJobs* const jobs_;
  const std::vector<Session*>& sessions_;
  bool polls_ = false;
};

}  // namespace braid
