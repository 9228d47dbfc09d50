// SPDX-License-Identifier: Apache-2.0
#include "net/overdue_chunks.h"

#include <algorithm>
#include <array>

#include "net/flow_messages.h"

namespace braid {
namespace {

constexpr uint64_t kLookEveryMs = 2;
constexpr uint32_t kIdleLooksMax = 16;
// A flow is overdue after what chunks usually take at most, within these bounds. Below the least,
// waking up takes too large a part of it.
constexpr uint64_t kDueNsMin = 3'000'000;
constexpr uint64_t kDueNsMax = 250'000'000;
constexpr uint64_t kDueNsUnknown = 25'000'000;
// A flow may take a second copy when what it has on its way waits for less than this share of its
// round trip: it has hardly lost anything, and the copy must not get stuck there, too.
constexpr double kWellShare = 0.7;

}  // namespace

OverdueChunks::OverdueChunks(IoContext& io, OutgoingFlow::Owner& owner, const LinkFlows& flows)
    : io_(io),
      owner_(owner),
      flows_(flows),
      budget_(io.options.twice_sent_percent),
      timer_(io.loop) {}

void OverdueChunks::start() {
  if (timer_.is_active() || io_.options.twice_sent_percent == 0) return;
  idle_looks_ = 0;
  timer_.start_repeating(kLookEveryMs, [this] { look(); });
}

// What most flows' chunks take at most. A flow that has been stuck knows only long round trips of
// its own, and would be given time when it is stuck again.
uint64_t OverdueChunks::usual_wait_ns() const {
  std::array<uint64_t, kFlowsPerLinkMax> usual{};
  size_t known = 0;
  for (const auto& one : flows_) {
    const OutgoingFlow* flow = one->flow();
    if (flow != nullptr && flow->round_trip().is_known())
      usual[known++] = flow->round_trip().usual_most_ns();
  }
  if (known == 0) return kDueNsUnknown;
  const auto median = usual.begin() + static_cast<ptrdiff_t>(known / 2);
  std::nth_element(usual.begin(), median, usual.begin() + static_cast<ptrdiff_t>(known));
  return std::max(*median, kDueNsMin);
}

void OverdueChunks::look() {
  const uint64_t now_ns = SystemClock().now_ns();
  const uint64_t usual_ns = std::min(
      kDueNsMax, static_cast<uint64_t>(budget_.patience() * static_cast<double>(usual_wait_ns())));
  bool is_any_waiting = false;
  bool is_any_overdue = false;
  bool is_any_well = false;
  for (const auto& one : flows_) {
    if (!one->is_open()) continue;
    OutgoingFlow& flow = *one->flow();
    const bool is_waiting = flow.has_unacknowledged();
    flow.is_overdue = is_waiting && flow.waited_ns(now_ns) > usual_ns;
    is_any_waiting = is_any_waiting || is_waiting;
    is_any_overdue = is_any_overdue || flow.is_overdue;
    is_any_well = is_any_well || !flow.is_overdue;
  }
  idle_looks_ = is_any_waiting ? 0 : idle_looks_ + 1;
  if (idle_looks_ > kIdleLooksMax) timer_.stop();
  if (!is_any_overdue) return;
  if (!is_any_well) owner_.on_flow_has_room();  // they get chunks again
  for (const auto& one : flows_) {
    if (one->flow() == nullptr || !one->flow()->is_overdue) continue;
    if (is_any_well) {
      repeat(*one);
    } else {
      one->flow()->is_overdue = false;  // the other node is slow, or the path that they share
    }
  }
}

void OverdueChunks::repeat(LinkFlow& from) {
  while (budget_.has_any()) {
    LinkFlow* other = flow_for_second_copy();
    if (other == nullptr) return;
    auto again = from.flow()->repeat_oldest();
    if (!again) return;
    const auto bytes = again->source->payload_of(*again);
    if (bytes.empty()) {  // its operation is over
      again->source->on_chunk_settled(*again, false);
      continue;
    }
    budget_.take();
    io_.counters.chunks_sent_twice.fetch_add(1, std::memory_order_relaxed);
    from.numbers().chunks_overdue.add(1);
    other->send(std::move(*again), bytes, 0);
  }
}

// The flow that is well and has the least on its way.
LinkFlow* OverdueChunks::flow_for_second_copy() const {
  const uint64_t now_ns = SystemClock().now_ns();
  LinkFlow* best = nullptr;
  for (const auto& one : flows_) {
    const OutgoingFlow* flow = one->flow();
    if (flow == nullptr || one->is_leaving() || flow->is_overdue ||
        !flow->has_room(io_.options.window_bytes))
      continue;
    if (flow->round_trip().is_known() &&
        static_cast<double>(flow->waited_ns(now_ns)) >
            kWellShare * static_cast<double>(flow->round_trip().mean_ns()))
      continue;
    if (best == nullptr || flow->unacknowledged_bytes() < best->flow()->unacknowledged_bytes())
      best = one.get();
  }
  return best;
}

}  // namespace braid
