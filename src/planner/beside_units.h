// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "planner/channels.h"
#include "planner/cost_model.h"
#include "planner/workload.h"

namespace braid {

// The units that others send beside a plan (Workload::beside), while a plan is played: in the order
// in which both are ready, a unit of others first where both are ready together. A value, as
// Channels is.
class BesideUnits {
 public:
  static constexpr uint32_t kUnit = UINT32_MAX;  // the number of all of them

  BesideUnits(const Workload& workload, const CostModel& cost)
      : workload_(&workload), cost_(&cost) {}

  void start_until(double seconds, Channels& channels, std::vector<Channels::End>& ends) {
    const std::vector<Workload::Unit>& units = workload_->beside;
    for (; next_ < units.size() && units[next_].ready_seconds <= seconds; ++next_)
      channels.start(kUnit, units[next_].ready_seconds, cost_->phases(units[next_].bytes), ends);
  }
  void start_all(Channels& channels, std::vector<Channels::End>& ends) {
    start_until(std::numeric_limits<double>::infinity(), channels, ends);
  }

 private:
  const Workload* workload_;
  const CostModel* cost_;
  size_t next_ = 0;
};

}  // namespace braid
