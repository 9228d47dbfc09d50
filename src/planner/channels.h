// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/cost_model.h"

namespace braid {

// The network as the simulator sees it: k channels on which units run side by side. Each unit goes
// through a startup of its own, then through a transfer; transfers that run at the same time share
// the network and all slow down alike (processor sharing).
//
// Because all transfers progress at the same rate, who is done first never changes while others
// come and go. So each transfer's end is known from its beginning on a clock of work done, which
// stands still or slows down with the rate, and a heap over that clock is all that is needed.
//
// A value: a copy taken between two units goes on from there (planners try variants of a plan's
// tail this way). One stream is the papers' recurrence, end = max(end, ready) + T, in its order of
// additions.
class Channels {
 public:
  struct End {
    uint32_t unit = 0;
    double seconds = 0;
  };

  // `slowdown[n - 1]` is that of n transfers, for each n up to the number of streams, at least one.
  explicit Channels(std::span<const double> slowdown) : slowdown_(slowdown) {}

  // Starts `unit` as soon as it is ready, no unit before it waits and a channel is free, and
  // returns that time. Units that ended before are put into `ends`.
  double start(uint32_t unit, double ready_seconds, CostModel::Phases phases,
               std::vector<End>& ends);
  // When the next unit can start, if it is ready by then: a channel is free from then on.
  double free_seconds(std::vector<End>& ends);
  // Goes on up to `seconds`; no unit may start before that any more.
  void run_until(double seconds, std::vector<End>& ends);
  // Goes on to the next end of a startup or of a transfer. False: nothing runs.
  bool go_on(std::vector<End>& ends);
  // Until nothing runs any more. Returns when the last of all units ended, 0 if there was none.
  double finish(std::vector<End>& ends);
  // When the last unit ended; 0 if none has ended so far.
  double last_end_seconds() const { return last_end_; }
  // Units that have started and not ended when the last one started.
  size_t busy() const { return starting_.size() + running_.size(); }

 private:
  struct Event {
    double at = 0;  // seconds of a startup's end; work done at a transfer's end
    double transfer_seconds = 0;
    uint32_t unit = 0;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at > b.at : a.unit > b.unit;
    }
  };

  double rate_divisor() const { return slowdown_[running_.size() - 1]; }
  double next_transfer_end() const;
  // Handles the next event; there must be one. Not beyond `until`: then false.
  bool step(double until, std::vector<End>& ends);
  void move_to(double seconds);
  void begin_transfer(const Event& event, std::vector<End>& ends);
  double start_alone(uint32_t unit, double ready_seconds, CostModel::Phases phases,
                     std::vector<End>& ends);

  std::span<const double> slowdown_;
  double now_ = 0;
  double work_ = 0;      // seconds of transfer that each running one has got since all began
  double last_end_ = 0;  // of all units so far
  std::vector<Event> starting_;  // heap, by time
  std::vector<Event> running_;   // heap, by work
};

// slowdown(1) … slowdown(n), n being `streams`, but not many more than there are `units`.
std::vector<double> slowdowns(const CostModel& cost, uint32_t streams, uint64_t units);

}  // namespace braid
