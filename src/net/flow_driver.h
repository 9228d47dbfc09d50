// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "loop/loop.h"
#include "loop/timer.h"

namespace braid {

class Flow;

// Drives the channels of one loop's flows. A channel is progressed and armed again only when it has
// told of work or something was sent on it: an idle daemon sleeps, and a busy one does not touch
// the flows that have nothing to do. The work is done in the prepare phase, just before the loop
// would sleep.
class FlowDriver {
 public:
  struct Owner {
    virtual ~Owner() = default;
    // Puts what waits onto flows that have room; called before flows are progressed.
    virtual void before_round() = 0;
    // Is anything on its way that should make flows move?
    virtual bool expects_progress() const = 0;
  };

  FlowDriver(Loop& loop, Owner& owner);
  FlowDriver(const FlowDriver&) = delete;
  FlowDriver& operator=(const FlowDriver&) = delete;

  void add(Flow& flow);
  void remove(Flow& flow);
  // `flow` needs progress: its channel has told of work, something was sent on it, or it failed.
  void mark(Flow& flow);
  // There is something for before_round().
  void wake();

 private:
  void drive();
  void drive_flow(Flow& flow);
  bool is_over_time() const;
  void put_back(size_t from);
  void start_tick();
  void tick();

  Loop& loop_;
  Owner& owner_;
  Handle<uv_prepare_t> prepare_;
  Handle<uv_idle_t> idle_;  // active while there is work: keeps the loop from sleeping
  Timer tick_timer_;
  uint32_t quiet_ticks_ = 0;
  bool is_ticking_ = false;
  bool is_awake_ = false;
  bool may_miss_work_ = false;      // of any channel: then there are ticks
  bool was_wakeup_missed_ = false;  // the safety tick found work that no channel had told of
  uint64_t drive_until_ns_ = 0;     // no progress is begun later
  std::vector<Flow*> flows_;
  std::vector<Flow*> dirty_;
  std::vector<Flow*> batch_;  // of dirty_, being driven; nullptr where a flow went meanwhile
};

}  // namespace braid
