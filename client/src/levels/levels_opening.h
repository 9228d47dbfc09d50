// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/device_lane.h"
#include "levels/level_report.h"
#include "levels/two_levels.h"
#include "opening.h"
#include "registry.h"
#include "tickets.h"

namespace braid::client {

class Job;

// The ranks of a job agree on how many levels its operations on device memory have, and open two.
// All of them do it at once, and come to the same end: what fails on one rank is a reason for all.
class LevelsOpening {
 public:
  // `request` is the job's.
  LevelsOpening(const JobRequest& request, Registry& registry, Tickets& tickets,
                TwoLevels::Owner owner, uint64_t deadline_ns);
  ~LevelsOpening();

  // `lane` is this rank's, or why it has none. `node` is the number of its daemon. `levels` is null
  // unless two were chosen. Errors are the job's.
  Status run(const Result<DeviceLane*>& lane, uint64_t node, LevelChoice& choice,
             std::unique_ptr<TwoLevels>& levels);

 private:
  // Each rank's, in their order.
  template <typename Said>
  Status exchange(const Said& own, std::vector<Said>& all);
  Status agree(const Result<DeviceLane*>& lane, uint64_t node, LevelChoice& choice);
  Status open_both(DeviceLane& lane, LevelChoice& choice, std::unique_ptr<TwoLevels>& levels);
  Status open(DeviceLane& lane, const LevelPlace& place, const LocalIds& ids,
              std::unique_ptr<TwoLevels>& levels);
  Status open_across(const LevelPlace& place, uint32_t& tensor);
  uint32_t left_ms() const;

  const JobRequest& request_;
  Registry& registry_;
  Tickets& tickets_;
  const TwoLevels::Owner owner_;
  const uint64_t deadline_ns_;
  // Until two levels have it: the other ranks need it until they have heard how it went here.
  std::unique_ptr<Job> across_;
  uint32_t tensor_ = 0;
  uint64_t next_step_ = 0;
};

}  // namespace braid::client
