// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "coordinator/membership.h"
#include "engine/transfer_settings.h"
#include "job/job_services.h"

namespace braid {

// What one job's operations may use of this node's links: what its plans say, its weight, and as
// many flows as its duel has found best. Control loop only.
class JobFlows {
 public:
  // Both outlive it.
  JobFlows(JobServices& services, const Membership& membership)
      : services_(services), membership_(membership), planned_{0, {0, 0, membership.weight}} {}

  void begin() {
    if (membership_.weight != 1) limit();
  }
  // 0: as configured.
  void plan(const TransferSettings& settings);
  // Where no tensors are planned, whose flows the tuner tries.
  bool may_try_few() const { return services_.tries_few_flows && membership_.ring->nodes > 1; }
  // One for each rail, unless a plan says how many.
  void use_few(bool few);

 private:
  void limit();

  JobServices& services_;
  const Membership& membership_;
  JobShare planned_;
  bool are_few_ = false;
};

}  // namespace braid
