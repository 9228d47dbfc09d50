// SPDX-License-Identifier: Apache-2.0
//
// What a link does about flows that have gone silent, and about rails that come and go.
#include <algorithm>
#include <array>
#include <cstring>

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/log.h"
#include "net/flow_link.h"
#include "net/flow_messages.h"

namespace braid {
namespace {

constexpr uint32_t kQuietLooksMax = 20;
constexpr uint64_t kOverdueLookMs = 2;
constexpr uint32_t kIdleLooksMax = 16;
// A flow is overdue after what chunks usually take at most, within these bounds. Below the least,
// waking up takes too large a part of it.
constexpr uint64_t kDueNsMin = 3'000'000;
constexpr uint64_t kDueNsMax = 250'000'000;
constexpr uint64_t kDueNsUnknown = 25'000'000;
// A flow may take a second copy when what it has on its way waits for less than this share of its
// round trip: it has hardly lost anything, and the copy must not get stuck there, too.
constexpr double kWellShare = 0.7;

double seconds(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

// 0: it is no network device.
int mtu_of(const std::string& rail) {
  ifreq request{};
  if (rail.size() >= sizeof(request.ifr_name)) return 0;
  std::memcpy(request.ifr_name, rail.data(), rail.size());
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return ::ioctl(socket.get(), SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
}

}  // namespace

void FlowLink::start_watching() {
  if (!watch_timer_.is_active()) {
    quiet_looks_ = 0;
    watch_timer_.start_repeating(SilentFlows::kLookEveryMs, [this] { watch(); });
  }
  if (!overdue_timer_.is_active() && io_.options.twice_sent_percent != 0) {
    idle_looks_ = 0;
    overdue_timer_.start_repeating(kOverdueLookMs, [this] { look_for_overdue(); });
  }
}

void FlowLink::prove() {
  if (is_closed_) return;
  for (const FlowSlot& slot : slots_) {
    if (slot.flow != nullptr) slot.flow->prove();
  }
  start_watching();
}

void FlowLink::watch() {
  bool is_any_waiting = false;
  for (size_t index = 0; index < slots_.size(); ++index) {
    OutgoingFlow* flow = slots_[index].flow.get();
    waits_[index] = {};
    if (flow == nullptr || flow->state() != Flow::State::Open) continue;
    full_size_loss_of(index).on_acknowledged(flow->take_largest_acknowledged());
    waits_[index] = {true, flow->waiting_since_ns(), flow->heard_at_ns(),
                     flow->round_trip().usual_most_ns()};
    is_any_waiting = is_any_waiting || waits_[index].waiting_since_ns != 0;
  }
  if (tells_trouble_ && std::none_of(full_size_losses_.begin(), full_size_losses_.end(),
                                     [](const auto& loss) { return loss.is_hopeless(); })) {
    tells_trouble_ = false;
    numbers_->set_trouble({});
  }
  for (const size_t silent : silent_flows_.look(waits_, SystemClock().now_ns()))
    give_up(*slots_[silent].flow);
  show_traffic(false);
  if (silent_flows_.wants_proof()) return prove();
  quiet_looks_ = is_any_waiting ? 0 : quiet_looks_ + 1;
  if (quiet_looks_ <= kQuietLooksMax) return;
  watch_timer_.stop();
  show_traffic(true);
}

// For metrics. `is_quiet`: nothing has been on its way for some time, and what was measured is not
// so any more.
void FlowLink::show_traffic(bool is_quiet) {
  const uint64_t now_ns = SystemClock().now_ns();
  std::vector<LinkStatus::Rail> rails(numbers_->rails().size());
  std::vector<LinkNumbers::FlowRate> rates;
  for (size_t index = 0; index < slots_.size() && !is_quiet; ++index) {
    const OutgoingFlow* flow = slots_[index].flow.get();
    if (flow == nullptr || flow->state() != Flow::State::Open) continue;
    LinkStatus::Rail& rail = rails[index % rails.size()];
    rail.unacknowledged_bytes += flow->unacknowledged_bytes();
    if (const uint64_t sent_at_ns = flow->oldest_sent_at_ns(); sent_at_ns != 0)
      rail.oldest_ns = std::max(rail.oldest_ns, now_ns - sent_at_ns);
    if (const double rate = flow->bytes_per_second(); rate > 0)
      rates.push_back({index % rails.size(), rate});
  }
  for (size_t i = 0; i < rails.size(); ++i) {
    numbers_of(i).unacknowledged_bytes.set(rails[i].unacknowledged_bytes);
    numbers_of(i).oldest_ns.set(rails[i].oldest_ns);
  }
  numbers_->show_rates(std::move(rates));
  numbers_->queued_bytes.set(queue_.bytes());
}

// Like one whose connection broke: it fails once no UCX call is under way.
void FlowLink::give_up(OutgoingFlow& flow) {
  io_.counters.flows_silent.fetch_add(1, std::memory_order_relaxed);
  const uint64_t silent_ns = SystemClock().now_ns() - flow.waiting_since_ns();
  const RoundTrip& round_trip = flow.round_trip();
  std::string why =
      fmt::format("nothing acknowledged for {:.1f} s ({})", seconds(silent_ns),
                  round_trip.is_known()
                      ? fmt::format("round trip {:.1f} ms", seconds(round_trip.mean_ns()) * 1e3)
                      : "round trip not known");
  if (!full_size_loss_of(flow.index()).on_given_up(flow.largest_unacknowledged()))
    return flow.fail({StatusCode::Unavailable, why});
  const std::string loss = describe_full_size_loss(flow.index());
  if (full_size_loss_of(flow.index()).is_hopeless()) {
    tells_trouble_ = true;
    numbers_->set_trouble(loss);
  }
  const Status reason(StatusCode::Unavailable, why + "; " + loss);
  BRAID_LOG_WARN(fields_of(flow.index()), "{}: {}", flow.description(), reason.message());
  // The others of the rail have the same before them.
  for (size_t index = flow.index() % full_size_losses_.size(); index < slots_.size();
       index += full_size_losses_.size()) {
    OutgoingFlow* other = slots_[index].flow.get();
    if (other != nullptr && other->state() == Flow::State::Open && other->has_unacknowledged())
      other->fail(reason);
  }
}

std::string FlowLink::describe_full_size_loss(uint16_t index) {
  const FullSizeLoss& loss = full_size_loss_of(index);
  const std::string& rail = io_.rail_name_of(index);
  const int mtu = mtu_of(rail);
  const std::string next =
      loss.is_hopeless()
          ? fmt::format("segments of {} bytes are lost, too", FullSizeLoss::kSegmentBytesLeast)
          : fmt::format("the next connections use segments of {} bytes", loss.segment_bytes());
  return fmt::format(
      "packets of full size are lost on the path from this node to node '{}' ({}), and small ones "
      "pass{}, and some hop takes less and does not say so: set the MTU of both nodes' rails to "
      "what the path takes; {}",
      peer_.name, peer_.address,
      mtu == 0 ? std::string() : fmt::format(": the MTU of rail {} is {} here", rail, mtu), next);
}

// What most flows' chunks take at most. A flow that has been stuck knows only long round trips of
// its own, and would be given time when it is stuck again.
uint64_t FlowLink::usual_wait_ns() const {
  std::array<uint64_t, kFlowsPerLinkMax> usual{};
  size_t known = 0;
  for (const FlowSlot& slot : slots_) {
    if (slot.flow != nullptr && slot.flow->round_trip().is_known())
      usual[known++] = slot.flow->round_trip().usual_most_ns();
  }
  if (known == 0) return kDueNsUnknown;
  const auto median = usual.begin() + static_cast<ptrdiff_t>(known / 2);
  std::nth_element(usual.begin(), median, usual.begin() + static_cast<ptrdiff_t>(known));
  return std::max(*median, kDueNsMin);
}

// A flow that has lost its last packets waits for TCP's timer, and one that has lost several sends
// little for many round trips; meanwhile the others could have carried its chunks.
void FlowLink::look_for_overdue() {
  const uint64_t now_ns = SystemClock().now_ns();
  const uint64_t usual_ns = std::min(
      kDueNsMax,
      static_cast<uint64_t>(overdue_budget_.patience() * static_cast<double>(usual_wait_ns())));
  bool is_any_waiting = false;
  bool is_any_overdue = false;
  bool is_any_well = false;
  for (const FlowSlot& slot : slots_) {
    OutgoingFlow* flow = slot.flow.get();
    if (flow == nullptr || flow->state() != Flow::State::Open) continue;
    const bool is_waiting = flow->has_unacknowledged();
    flow->is_overdue = is_waiting && flow->waited_ns(now_ns) > usual_ns;
    is_any_waiting = is_any_waiting || is_waiting;
    is_any_overdue = is_any_overdue || flow->is_overdue;
    is_any_well = is_any_well || !flow->is_overdue;
  }
  idle_looks_ = is_any_waiting ? 0 : idle_looks_ + 1;
  if (idle_looks_ > kIdleLooksMax) overdue_timer_.stop();
  if (!is_any_overdue) return;
  if (!is_any_well) owner_.on_link_ready(*this);  // they get chunks again
  for (const FlowSlot& slot : slots_) {
    if (slot.flow == nullptr || !slot.flow->is_overdue) continue;
    if (is_any_well) {
      repeat_overdue(*slot.flow);
    } else {
      slot.flow->is_overdue = false;  // the other node is slow, or the path that they share
    }
  }
}

void FlowLink::repeat_overdue(OutgoingFlow& flow) {
  while (overdue_budget_.has_any()) {
    OutgoingFlow* other = flow_for_second_copy();
    if (other == nullptr) return;
    auto again = flow.repeat_oldest();
    if (!again) return;
    const auto bytes = again->source->payload_of(*again);
    if (bytes.empty()) {  // its operation is over
      again->source->on_chunk_settled(*again, false);
      continue;
    }
    overdue_budget_.take();
    io_.counters.chunks_sent_twice.fetch_add(1, std::memory_order_relaxed);
    numbers_of(flow.index()).chunks_overdue.add(1);
    numbers_of(other->index()).bytes_sent.add(bytes.size());
    other->send(std::move(*again), bytes, 0);
  }
}

// Of those that are well, the one with the least on its way.
OutgoingFlow* FlowLink::flow_for_second_copy() {
  const uint64_t now_ns = SystemClock().now_ns();
  OutgoingFlow* best = nullptr;
  for (const FlowSlot& slot : slots_) {
    OutgoingFlow* flow = slot.flow.get();
    if (flow == nullptr || slot.is_leaving || flow->is_overdue ||
        !flow->has_room(io_.options.window_bytes))
      continue;
    if (flow->round_trip().is_known() &&
        static_cast<double>(flow->waited_ns(now_ns)) >
            kWellShare * static_cast<double>(flow->round_trip().mean_ns()))
      continue;
    if (best == nullptr || flow->unacknowledged_bytes() < best->unacknowledged_bytes()) best = flow;
  }
  return best;
}

Status FlowLink::rail_is_down(uint16_t index) const {
  return Status(StatusCode::Unavailable, "the rail is down").with_context(description_of(index));
}

void FlowLink::on_rails_changed() {
  if (is_closed_) return;
  for (size_t at = 0; at < slots_.size(); ++at) {
    const auto index = static_cast<uint16_t>(at);
    FlowSlot& slot = slots_[at];
    if (!io_.is_usable(index)) {
      if (slot.flow != nullptr) slot.flow->fail({StatusCode::Unavailable, "the rail is down"});
    } else if (slot.flow == nullptr) {
      slot.pause_ms = 0;
      slot.timer->stop();
      open_soon(at);
    }
  }
}

}  // namespace braid
