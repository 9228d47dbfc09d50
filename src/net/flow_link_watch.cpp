// SPDX-License-Identifier: Apache-2.0
//
// What a link does about flows that have gone silent, and about rails that come and go.
#include "base/log.h"
#include "net/flow_link.h"

namespace braid {
namespace {

constexpr uint32_t kQuietLooksMax = 20;

double seconds(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

void FlowLink::start_watching() {
  quiet_looks_ = 0;
  watch_timer_.start_repeating(SilentFlows::kLookEveryMs, [this] { watch(); });
}

void FlowLink::prove() {
  if (is_closed_) return;
  for (const Place& place : places_) {
    if (place.flow != nullptr) place.flow->prove();
  }
  if (!watch_timer_.is_active()) start_watching();
}

void FlowLink::watch() {
  bool is_any_waiting = false;
  for (size_t index = 0; index < places_.size(); ++index) {
    const OutgoingFlow* flow = places_[index].flow.get();
    waits_[index] = {};
    if (flow == nullptr || flow->state() != Flow::State::Open) continue;
    waits_[index] = {true, flow->waiting_since_ns(), flow->heard_at_ns(),
                     flow->round_trip().usual_most_ns()};
    is_any_waiting = is_any_waiting || waits_[index].waiting_since_ns != 0;
  }
  for (const size_t silent : silent_flows_.look(waits_, SystemClock().now_ns()))
    give_up(*places_[silent].flow);
  if (silent_flows_.wants_proof()) return prove();
  quiet_looks_ = is_any_waiting ? 0 : quiet_looks_ + 1;
  if (quiet_looks_ > kQuietLooksMax) watch_timer_.stop();
}

// Like one whose connection broke: it fails once no UCX call is under way.
void FlowLink::give_up(OutgoingFlow& flow) {
  io_.counters.flows_silent.fetch_add(1, std::memory_order_relaxed);
  const uint64_t silent_ns = SystemClock().now_ns() - flow.waiting_since_ns();
  const RoundTrip& round_trip = flow.round_trip();
  flow.fail({StatusCode::Unavailable,
             fmt::format("nothing acknowledged for {:.1f} s ({})", seconds(silent_ns),
                         round_trip.is_known() ? fmt::format("round trip {:.1f} ms",
                                                             seconds(round_trip.mean_ns()) * 1e3)
                                               : "round trip not known")});
}

Status FlowLink::rail_is_down(uint16_t index) const {
  return Status(StatusCode::Unavailable, "the rail is down").with_context(description_of(index));
}

void FlowLink::on_rails_changed() {
  if (is_closed_) return;
  for (size_t at = 0; at < places_.size(); ++at) {
    const auto index = static_cast<uint16_t>(at);
    Place& place = places_[at];
    if (!io_.is_usable(index)) {
      if (place.flow != nullptr) place.flow->fail({StatusCode::Unavailable, "the rail is down"});
    } else if (place.flow == nullptr) {
      place.pause_ms = 0;
      place.timer->stop();
      reopen_flow(index);
    }
  }
}

}  // namespace braid
