// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "planner/beside_units.h"
#include "planner/channels.h"
#include "planner/cost_model.h"
#include "planner/plan.h"
#include "planner/workload.h"

namespace braid {

// Plays plans on k streams and changes one for the better: local search in which every change is
// played by the simulator's own rules (plan/channels.h), from the first changed group on and until
// the network is idle at the same moment as without the change. It ends when no change helps, or
// when it has played as many units as it may.
//
// The last groups decide when all is through: of a plan with more than kGroupsMax only so many are
// changed, from the last one on. So a change, and what is remembered, is bounded too.
class StreamSearch {
 public:
  static constexpr size_t kGroupsMax = 4096;

  struct Options {
    uint32_t streams = 1;
    uint64_t piece_bytes_min = 1;
    bool fewest_units = true;  // as good as before with fewer units is better
  };
  struct Score {
    double end_seconds = 0;
    uint64_t units = 0;
  };

  StreamSearch(const Workload& workload, const CostModel& cost, const Options& options);

  Score score(const Plan& plan);
  bool better(const Score& a, const Score& b) const;
  // Never worse than `plan`. A change that is being played when `units_max` are used up is played
  // to its end.
  Plan improve(const Plan& plan, uint64_t units_max);
  // The same group in as many of these pieces as its size allows.
  Plan::Group cut(Plan::Group group, uint64_t pieces) const;

 private:
  using Groups = std::vector<Plan::Group>;
  struct Checkpoint {
    Channels channels;
    BesideUnits beside;
    uint64_t units = 0;
    bool was_idle = false;  // when the group before began, which was when it was ready
  };

  Checkpoint beginning() const { return {Channels(slowdown_), BesideUnits(workload_, cost_)}; }
  void play(Checkpoint& state, const Plan::Group& group);
  double finish(Checkpoint& state);
  void play_from(size_t first);
  Score score_of_change(size_t first, size_t removed, const Groups& instead);
  bool try_change(size_t first, size_t removed, const Groups& instead);
  bool try_merge(size_t first);
  bool try_boundaries(size_t first);
  bool try_splits(size_t first);
  bool try_pieces(size_t first);
  bool improve_group(size_t first);
  uint32_t middle(const Plan::Group& group) const;

  const Workload& workload_;
  const CostModel& cost_;
  const Options options_;
  std::vector<uint64_t> bytes_;  // of the first i tensors
  std::vector<double> slowdown_;

  Groups groups_;                        // the last ones of the plan that is being improved
  Score score_;                          // the plan's
  std::vector<Checkpoint> checkpoints_;  // before each of its groups
  Checkpoint trial_;
  std::vector<Channels::End> ends_;  // nobody reads them
  uint64_t units_played_ = 0;
};

}  // namespace braid
