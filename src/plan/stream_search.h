// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/channels.h"
#include "plan/cost_model.h"
#include "plan/plan.h"
#include "plan/workload.h"

namespace braid {

// How good a plan is: first the time, then how much there is to do for it.
struct StreamScore {
  double end_seconds = 0;
  uint64_t units = 0;
  bool operator==(const StreamScore&) const = default;
  auto operator<=>(const StreamScore&) const = default;
};

// Plays plans on k streams and changes one for the better: local search in which every change is
// played by the simulator's own rules (plan/channels.h). Only the groups after a change are played
// again. Bounded: it ends when no change helps or the units that it may play are used up.
class StreamSearch {
 public:
  // `units_max`: how many units may be played; a plan that is begun is played to its end.
  StreamSearch(const Workload& workload, const CostModel& cost, uint32_t streams,
               uint64_t piece_bytes_min, uint64_t units_max);

  StreamScore score(const Plan& plan);
  // Of the same workload; never worse than `plan`.
  Plan improve(const Plan& plan);
  // The most pieces that a group may be cut into.
  uint32_t pieces_max(uint32_t begin, uint32_t end) const;

  bool used_up() const { return units_left_ == 0; }
  void allow(uint64_t units) { units_left_ = units; }

 private:
  struct Checkpoint {
    Channels channels;
    uint64_t units = 0;  // before this group
  };
  using Groups = std::vector<Plan::Group>;

  void play(Channels& channels, uint64_t& units, const Plan::Group& group);
  void remember(size_t first);
  bool try_change(size_t first, size_t removed, const Groups& instead);
  bool improve_at(size_t group);
  bool merge(size_t group);
  bool move_boundary(size_t group);
  bool split(size_t group);
  bool cut(size_t group);

  const Workload& workload_;
  const CostModel& cost_;
  const uint32_t streams_;
  const uint64_t piece_bytes_min_;
  uint64_t units_left_;
  std::vector<uint64_t> bytes_;  // of the first i tensors
  std::vector<double> slowdown_;
  std::vector<Channels::End> ends_;  // not looked at: Channels wants to tell

  Groups groups_;                        // the plan that is being improved
  StreamScore best_;                     // its
  std::vector<Checkpoint> checkpoints_;  // its state before each group
};

}  // namespace braid
