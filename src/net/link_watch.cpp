// SPDX-License-Identifier: Apache-2.0
#include "net/link_watch.h"

#include <algorithm>
#include <cstring>

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"

namespace braid {
namespace {

constexpr uint32_t kQuietLooksMax = 20;

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

LinkWatch::LinkWatch(IoContext& io, const Peer& peer, const LinkFlows& flows,
                     const FairQueue& queue, LinkNumbers& numbers)
    : io_(io), peer_(peer), flows_(flows), queue_(queue), numbers_(numbers), timer_(io.loop) {}

void LinkWatch::start() {
  if (timer_.is_active()) return;
  quiet_looks_ = 0;
  timer_.start_repeating(SilentFlows::kLookEveryMs, [this] { look(); });
}

void LinkWatch::stop() {
  timer_.stop();
  show_traffic(true);
}

void LinkWatch::prove() {
  for (const auto& one : flows_) {
    if (one->flow() != nullptr) one->flow()->prove();
  }
  start();
}

void LinkWatch::look() {
  waits_.assign(flows_.size(), {});
  bool is_any_waiting = false;
  for (size_t index = 0; index < flows_.size(); ++index) {
    if (!flows_[index]->is_open()) continue;
    OutgoingFlow& flow = *flows_[index]->flow();
    flows_[index]->full_size_loss().on_acknowledged(flow.take_largest_acknowledged());
    waits_[index] = {true, flow.waiting_since_ns(), flow.heard_at_ns(),
                     flow.round_trip().usual_most_ns()};
    is_any_waiting = is_any_waiting || waits_[index].waiting_since_ns != 0;
  }
  if (tells_trouble_ && std::none_of(flows_.begin(), flows_.end(), [](const auto& flow) {
        return flow->full_size_loss().is_hopeless();
      })) {
    tells_trouble_ = false;
    numbers_.set_trouble({});
  }
  for (const size_t silent : silent_flows_.look(waits_, SystemClock().now_ns()))
    give_up(*flows_[silent]);
  show_traffic(false);
  if (silent_flows_.wants_proof()) return prove();
  quiet_looks_ = is_any_waiting ? 0 : quiet_looks_ + 1;
  if (quiet_looks_ > kQuietLooksMax) stop();
}

// `is_quiet`: nothing has been on its way for some time, and what was measured is not so any more.
void LinkWatch::show_traffic(bool is_quiet) {
  const uint64_t now_ns = SystemClock().now_ns();
  std::vector<LinkStatus::Rail> rails(numbers_.rails().size());
  std::vector<LinkNumbers::FlowRate> rates;
  for (size_t index = 0; index < flows_.size() && !is_quiet; ++index) {
    if (!flows_[index]->is_open()) continue;
    const OutgoingFlow& flow = *flows_[index]->flow();
    LinkStatus::Rail& rail = rails[index % rails.size()];
    rail.unacknowledged_bytes += flow.unacknowledged_bytes();
    if (const auto socket = flow.socket_state()) {
      rail.path_round_trip_ns = std::max(rail.path_round_trip_ns, socket->round_trip_ns);
      flows_[index]->numbers().segments_resent.add(
          flows_[index]->flow()->take_segments_resent(*socket));
    }
    if (const uint64_t sent_at_ns = flow.oldest_sent_at_ns(); sent_at_ns != 0)
      rail.oldest_ns = std::max(rail.oldest_ns, now_ns - sent_at_ns);
    if (const double rate = flow.bytes_per_second(); rate > 0)
      rates.push_back({index % rails.size(), rate});
  }
  for (size_t rail = 0; rail < rails.size(); ++rail) {
    RailNumbers& numbers = numbers_.rail_of(static_cast<uint16_t>(rail));
    numbers.unacknowledged_bytes.set(rails[rail].unacknowledged_bytes);
    numbers.oldest_ns.set(rails[rail].oldest_ns);
    numbers.path_round_trip_ns.set(rails[rail].path_round_trip_ns);
  }
  numbers_.show_rates(std::move(rates));
  numbers_.queued_bytes.set(queue_.bytes());
}

// Like one whose connection broke: it fails once no UCX call is under way.
void LinkWatch::give_up(LinkFlow& silent) {
  OutgoingFlow& flow = *silent.flow();
  io_.counters.flows_silent.fetch_add(1, std::memory_order_relaxed);
  const uint64_t silent_ns = SystemClock().now_ns() - flow.waiting_since_ns();
  const RoundTrip& round_trip = flow.round_trip();
  std::string why =
      fmt::format("nothing acknowledged for {:.1f} s ({})", seconds(silent_ns),
                  round_trip.is_known()
                      ? fmt::format("round trip {:.1f} ms", seconds(round_trip.mean_ns()) * 1e3)
                      : "round trip not known");
  FullSizeLoss& loss = silent.full_size_loss();
  if (!loss.on_given_up(flow.largest_unacknowledged()))
    return flow.fail({StatusCode::Unavailable, why});
  const std::string what = describe_full_size_loss(silent);
  if (loss.is_hopeless()) {
    tells_trouble_ = true;
    numbers_.set_trouble(what);
  }
  const Status reason(StatusCode::Unavailable, why + "; " + what);
  BRAID_LOG_WARN(silent.fields(), "{}: {}", flow.description(), reason.message());
  // The others of the rail have the same before them.
  for (const auto& one : flows_) {
    if (&one->full_size_loss() == &loss && one->is_open() && one->flow()->has_unacknowledged())
      one->flow()->fail(reason);
  }
}

std::string LinkWatch::describe_full_size_loss(const LinkFlow& flow) const {
  const FullSizeLoss& loss = flow.full_size_loss();
  const std::string& rail = io_.rail_name_of(flow.index());
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

}  // namespace braid
