// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "planner/update_rounds.h"

namespace braid {

// What a step takes with an update method: means over the steps of a long run.
struct UpdateTimes {
  double iteration_seconds = 0;
  double compute_seconds = 0;        // forward and backward, of the slowest worker
  double communication_seconds = 0;  // in which something is under way
  double exposed_seconds = 0;        // in which compute waits for it
  // Bytes that a node sends, of those that it sends with Sync.
  double wire_share = 1;
  size_t groups = 0;

  // How much of the communication that compute could hide at best it hides; 1 where there is none.
  double hidden_share() const;
};

// Runs many steps event by event, with the same backward times in each.
//
//   Sync     as simulate()
//   Sharded  as simulate_sharded()
//   others   A step's gradients, or the parameters, are ready together at the end of backward: the
//            local update and the clipping of gradients need all of them. What is sent then travels
//            behind later steps' compute (UpdateRounds). The end of the step that is `delay` later
//            waits for it, and the step after that begins. So with OdSgd, SsdSgd, CdSgd and Acco no
//            node is ever more than one round ahead of the network. A step of Acco is half a round
//            of its paper: an update of the optimizer takes two.
//
// Units of an earlier round start before those of a later one. Local updates, owners' updates and
// encoding take no time. The steps at the beginning of a run do not count: steps are simulated
// until periods repeat each other, or for kUpdatePeriodsMax periods. If they do not repeat, the
// later half counts.
//
// INVALID_ARGUMENT: more fragments than tensors, or a period with too many units to simulate.
Result<UpdateTimes> simulate_update(const Workload& workload, const CostModel& cost,
                                    const Planner& planner, const UpdateMethod& method,
                                    const UpdateOptions& options);

inline constexpr uint32_t kUpdatePeriodsMax = 100;
inline constexpr uint64_t kUpdateUnitsMax = 20'000'000;  // of all periods

}  // namespace braid
