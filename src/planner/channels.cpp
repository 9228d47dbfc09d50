// SPDX-License-Identifier: Apache-2.0
#include "planner/channels.h"

#include <algorithm>
#include <limits>

namespace braid {

double Channels::start(uint32_t unit, double ready_seconds, CostModel::Phases phases,
                       std::vector<End>& ends) {
  if (slowdown_.size() == 1) return start_alone(unit, ready_seconds, phases, ends);
  free_seconds(ends);
  run_until(ready_seconds, ends);
  move_to(std::max(now_, ready_seconds));
  starting_.push_back({now_ + phases.startup_seconds, phases.transfer_seconds, unit});
  std::push_heap(starting_.begin(), starting_.end(), Later());
  return now_;
}

double Channels::start_alone(uint32_t unit, double ready_seconds, CostModel::Phases phases,
                             std::vector<End>& ends) {
  const double start_seconds = std::max(last_end_, ready_seconds);
  last_end_ = start_seconds + phases.seconds();
  ends.push_back({unit, last_end_});
  return start_seconds;
}

double Channels::free_seconds(std::vector<End>& ends) {
  if (slowdown_.size() == 1) return last_end_;
  while (busy() == slowdown_.size()) go_on(ends);
  return now_;
}

void Channels::run_until(double seconds, std::vector<End>& ends) {
  while (busy() > 0 && step(seconds, ends)) {
  }
}

bool Channels::go_on(std::vector<End>& ends) {
  return busy() > 0 && step(std::numeric_limits<double>::infinity(), ends);
}

double Channels::finish(std::vector<End>& ends) {
  while (go_on(ends)) {
  }
  return last_end_;
}

double Channels::next_transfer_end() const {
  if (running_.empty()) return std::numeric_limits<double>::infinity();
  // Never before now: rounding may have moved the work beyond its end.
  return now_ + std::max(0.0, running_.front().at - work_) * rate_divisor();
}

bool Channels::step(double until, std::vector<End>& ends) {
  const double transfer_end = next_transfer_end();
  const double startup_end =
      starting_.empty() ? std::numeric_limits<double>::infinity() : starting_.front().at;
  // At the same moment a transfer ends first: it no longer slows down the one that begins.
  if (std::min(transfer_end, startup_end) > until) return false;
  if (transfer_end <= startup_end) {
    now_ = transfer_end;
    work_ = running_.front().at;
    last_end_ = now_;
    ends.push_back({running_.front().unit, now_});
    std::pop_heap(running_.begin(), running_.end(), Later());
    running_.pop_back();
    return true;
  }
  const Event event = starting_.front();
  std::pop_heap(starting_.begin(), starting_.end(), Later());
  starting_.pop_back();
  move_to(startup_end);
  begin_transfer(event, ends);
  return true;
}

void Channels::move_to(double seconds) {
  if (!running_.empty()) work_ += (seconds - now_) / rate_divisor();
  now_ = seconds;
}

void Channels::begin_transfer(const Event& event, std::vector<End>& ends) {
  if (event.transfer_seconds <= 0) {
    last_end_ = now_;
    ends.push_back({event.unit, now_});
    return;
  }
  // From time to time nothing runs: the clock of work begins anew, so that it stays precise.
  if (running_.empty()) work_ = 0;
  running_.push_back({work_ + event.transfer_seconds, event.transfer_seconds, event.unit});
  std::push_heap(running_.begin(), running_.end(), Later());
}

std::vector<double> slowdowns(const CostModel& cost, uint32_t streams, uint64_t units) {
  // Two for a single unit: the arithmetic depends on the streams, not on how many there are to use.
  const auto most = static_cast<uint32_t>(
      std::min<uint64_t>(std::max(streams, 1u), std::max<uint64_t>(units, 2)));
  std::vector<double> slowdown(most);
  for (uint32_t i = 0; i < most; ++i) slowdown[i] = cost.slowdown(i + 1);
  return slowdown;
}

}  // namespace braid
