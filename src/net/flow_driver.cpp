// SPDX-License-Identifier: Apache-2.0
#include "net/flow_driver.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "net/flow.h"

namespace braid {
namespace {

// Between two looks at the rest of the loop (doors, timers): so many rounds over the flows, so many
// calls per flow, and no call is begun after so long. Progress on a flow adds up the chunks that it
// finds.
constexpr int kRoundsMax = 4;
constexpr unsigned kProgressCallsMax = 64;
constexpr uint64_t kDriveNsMax = 1'000'000;

// Some versions of UCX miss a wake-up: while something is on its way, every flow that has not moved
// is looked at.
constexpr uint64_t kTickMs = 100;
constexpr uint32_t kQuietTicksMax = 20;

}  // namespace

FlowDriver::FlowDriver(Loop& loop, Owner& owner) : loop_(loop), owner_(owner), tick_timer_(loop) {
  uv_prepare_init(loop.uv(), prepare_.get());
  prepare_.set_initialised();
  prepare_.get()->data = this;
  uv_prepare_start(prepare_.get(),
                   [](uv_prepare_t* prepare) { static_cast<FlowDriver*>(prepare->data)->drive(); });
  uv_idle_init(loop.uv(), idle_.get());
  idle_.set_initialised();
}

void FlowDriver::add(Flow& flow) {
  flows_.push_back(&flow);
  may_miss_work_ = may_miss_work_ || flow.channel().may_miss_work();
}

void FlowDriver::remove(Flow& flow) {
  std::erase(flows_, &flow);
  std::erase(dirty_, &flow);
  std::replace(batch_.begin(), batch_.end(), &flow, static_cast<Flow*>(nullptr));
}

void FlowDriver::mark(Flow& flow) {
  if (flow.is_dirty) return;
  flow.is_dirty = true;
  dirty_.push_back(&flow);
  wake();
}

void FlowDriver::wake() {
  if (is_awake_) return;
  is_awake_ = true;
  uv_idle_start(idle_.get(), [](uv_idle_t*) {});
}

void FlowDriver::drive() {
  if (!is_awake_) return;
  loop_.polling().note_work();
  drive_until_ns_ = SystemClock().now_ns() + kDriveNsMax;
  for (int round = 0; round < kRoundsMax; ++round) {
    owner_.before_round();
    if (dirty_.empty()) break;
    batch_.swap(dirty_);
    size_t at = 0;  // an index: on_failed may remove flows
    for (; at < batch_.size() && !is_over_time(); ++at) {
      if (batch_[at] != nullptr) drive_flow(*batch_[at]);
    }
    put_back(at);
    if (is_over_time()) break;
  }
  start_tick();
  if (!dirty_.empty()) return;  // the idle handle brings us back
  owner_.before_round();
  if (!dirty_.empty()) return;
  is_awake_ = false;
  uv_idle_stop(idle_.get());
}

bool FlowDriver::is_over_time() const { return SystemClock().now_ns() >= drive_until_ns_; }

// Those that have had no turn are first next time.
void FlowDriver::put_back(size_t from) {
  batch_.erase(batch_.begin(), batch_.begin() + static_cast<ptrdiff_t>(from));
  std::erase(batch_, nullptr);
  dirty_.insert(dirty_.begin(), batch_.begin(), batch_.end());
  batch_.clear();
}

void FlowDriver::drive_flow(Flow& flow) {
  flow.is_dirty = false;
  unsigned calls = 0;
  bool is_drained = !flow.is_connected();
  while (calls < kProgressCallsMax && !is_over_time() && !is_drained) {
    is_drained = !flow.channel().progress();
    if (!is_drained) ++calls;
  }
  if (calls > 0) flow.has_moved_since_tick = true;
  if (flow.state() != Flow::State::Failed) flow.after_progress();
  if (flow.state() == Flow::State::Failed) {
    // Not armed again: a connection that failed may go on telling of work until it is closed.
    flow.on_failed();
    return;
  }
  if (!is_drained || (flow.is_connected() && !flow.channel().arm())) mark(flow);
}

void FlowDriver::start_tick() {
  quiet_ticks_ = 0;
  if (is_ticking_ || !may_miss_work_) return;
  is_ticking_ = true;
  tick_timer_.start_repeating(kTickMs, [this] { tick(); });
}

void FlowDriver::tick() {
  if (owner_.expects_progress()) quiet_ticks_ = 0;
  if (++quiet_ticks_ > kQuietTicksMax) {
    is_ticking_ = false;
    tick_timer_.stop();
    return;
  }
  for (Flow* flow : flows_) {
    if (flow->has_moved_since_tick || flow->is_dirty) {
      flow->has_moved_since_tick = false;
      continue;
    }
    if (!flow->is_connected() || !flow->channel().find_missed_work()) continue;
    if (!std::exchange(was_wakeup_missed_, true)) {
      BRAID_LOG_DEBUG("{}: the channel told of no work, but had some; the safety tick found it",
                      flow->description());
    }
    mark(*flow);
  }
}

}  // namespace braid
