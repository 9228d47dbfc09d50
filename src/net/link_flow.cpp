// SPDX-License-Identifier: Apache-2.0
#include "net/link_flow.h"

#include <algorithm>
#include <utility>

namespace braid {
namespace {

constexpr uint64_t kPauseMsMin = 100;
constexpr uint64_t kPauseMsMax = 2000;  // a path that is well again is soon used again

}  // namespace

LinkFlow::LinkFlow(IoContext& io, Owner& owner, const Peer& peer, const LinkKey& key,
                   uint16_t index, RailNumbers& numbers, FullSizeLoss& full_size_loss)
    : io_(io),
      owner_(owner),
      peer_(peer),
      key_(key),
      index_(index),
      numbers_(numbers),
      full_size_loss_(full_size_loss),
      timer_(io.loop) {}

std::string LinkFlow::description() const {
  return fmt::format("flow {} to node '{}' ({}) on rail {}", index_, peer_.name, peer_.address,
                     io_.rail_name_of(index_));
}

LogFields LinkFlow::fields() const {
  return {.peer = peer_.name, .rail = io_.rail_name_of(index_), .flow = index_};
}

void LinkFlow::open_soon() {
  if (std::exchange(is_making_channel_, true)) return;
  generation_ = ++io_.generations;
  const FlowKeys own = keys();
  io_.channels.make(this,
                    {.rail = io_.rail_of(index_),
                     .role = ChannelRole::SendsChunks,
                     .proof_key = own.proof_key,
                     .cipher_key = io_.cipher_key_of(own),
                     .token = own.chunk_token,
                     .segment_bytes = full_size_loss_.segment_bytes(),
                     .remote_address = {}},
                    [this](FlowChannels::Made made) {
                      is_making_channel_ = false;
                      open(std::move(made));
                    });
  show(Shown::Opening);
}

void LinkFlow::open(FlowChannels::Made made) {
  if (!io_.is_usable(index_)) made = Status(StatusCode::Unavailable, "the rail is down");
  if (!made) {
    fail(made.status().with_context(description()));
    return owner_.on_channel_made(std::nullopt);
  }
  flow_.reset(new OutgoingFlow(io_, owner_, std::move(*made),
                               {peer_.id, index_, keys().chunk_token}, description()));
  // A little less than the whole: who waits for the link gets this answer, which says more than a
  // deadline does.
  const uint64_t deadline_ms = uint64_t{io_.options.open_timeout_ms} * 4 / 5;
  timer_.start_once(deadline_ms, [this, deadline_ms] {
    flow_->fail(make_status(StatusCode::DeadlineExceeded,
                            "no answer within {} ms: is the node ({}) reachable from this rail, "
                            "and are the ports of its flows open?",
                            deadline_ms, peer_.address));
  });
  owner_.on_channel_made(
      FlowOffer{io_.io_loop, index_, generation_, io_.rail_name_of(index_), flow_->address()});
}

OutgoingFlow* LinkFlow::opening(uint32_t generation) const {
  if (flow_ == nullptr || generation_ != generation) return nullptr;
  return flow_->state() == Flow::State::Opening ? flow_.get() : nullptr;
}

void LinkFlow::on_accepted(FlowOffer accepted) {
  OutgoingFlow* flow = opening(accepted.generation);
  if (flow == nullptr) return;  // too late
  // A second answer is no answer.
  if (std::exchange(accepted_, accepted.generation) == accepted.generation) return;
  flow->connect(std::move(accepted.address));
}

void LinkFlow::on_refused(const FlowRefusal& refusal) {
  OutgoingFlow* flow = opening(refusal.generation);
  if (flow != nullptr) flow->fail({StatusCode::Unavailable, "refused: " + refusal.reason});
}

void LinkFlow::on_open() {
  timer_.stop();
  pause_ms_ = 0;
  if (failures_ > 0) BRAID_LOG_INFO(fields(), "{}: open again", flow_->description());
  io_.counters.flows_open.fetch_add(1, std::memory_order_relaxed);
  show(Shown::Open);
  full_size_loss_.on_flow_open();
}

void LinkFlow::on_failed(OutgoingFlow& flow) {
  if (former_.get() == &flow) return drop_former();
  fail(Status(flow.error()));  // a copy: the flow goes
}

void LinkFlow::fail(Status error) {
  ++failures_;
  failed_at_ns_ = SystemClock().now_ns();
  io_.counters.flow_failures.fetch_add(1, std::memory_order_relaxed);
  numbers_.flow_failures.add(1);
  error_ = std::move(error);
  std::vector<OutgoingChunk> unacknowledged = retire();
  numbers_.chunks_returned.add(unacknowledged.size());
  pause_ms_ = std::clamp(pause_ms_ * 2, kPauseMsMin, kPauseMsMax);
  if (io_.is_usable(index_)) {
    BRAID_LOG_INFO(fields(), "{}; failure {}, next try in {} ms", error_.message(), failures_,
                   pause_ms_);
    timer_.start_once(pause_ms_, [this] { open_soon(); });
  } else {
    BRAID_LOG_INFO(fields(), "{}; failure {}, it waits for its rail", error_.message(), failures_);
    timer_.stop();
  }
  show(Shown::Failed);
  owner_.on_gone(*this, std::move(unacknowledged));
}

std::vector<OutgoingChunk> LinkFlow::retire() {
  std::vector<OutgoingChunk> unacknowledged;
  if (flow_ == nullptr) return unacknowledged;
  if (flow_->was_open()) io_.counters.flows_open.fetch_sub(1, std::memory_order_relaxed);
  bytes_sent_ += flow_->bytes_sent();
  is_leaving_ = false;
  if (flow_->has_chunks_in_flight()) {
    unacknowledged = flow_->close_and_reclaim();
    flow_.reset();
  } else {
    io_.free_later(std::move(flow_));
  }
  return unacknowledged;
}

void LinkFlow::replace(uint64_t now_ns) {
  io_.counters.flows_replaced.fetch_add(1, std::memory_order_relaxed);
  numbers_.flow_replacements.add(1);
  is_leaving_ = false;
  replaced_at_ns_ = now_ns;
  if (has_former()) drop_former();
  former_ = std::move(flow_);
  open_soon();
}

void LinkFlow::drop_former() {
  io_.counters.flows_open.fetch_sub(1, std::memory_order_relaxed);
  bytes_sent_ += former_->bytes_sent();
  io_.free_later(std::move(former_));
}

void LinkFlow::on_rail_changed() {
  if (!io_.is_usable(index_)) {
    if (flow_ != nullptr) flow_->fail({StatusCode::Unavailable, "the rail is down"});
  } else if (flow_ == nullptr) {
    pause_ms_ = 0;
    timer_.stop();
    open_soon();
  }
}

std::vector<OutgoingChunk> LinkFlow::close() {
  io_.channels.drop(this);
  timer_.stop();
  if (has_former()) drop_former();
  show(Shown::Nothing);
  return retire();
}

void LinkFlow::show(Shown state) {
  count(std::exchange(shown_, state), UINT64_MAX);  // modulo 2^64: one less
  count(state, 1);
}

void LinkFlow::count(Shown state, uint64_t amount) {
  switch (state) {
    case Shown::Nothing:
      return;
    case Shown::Opening:
      numbers_.flows_opening.add(amount);
      io_.counters.flows_opening.fetch_add(amount, std::memory_order_relaxed);
      return;
    case Shown::Open:
      numbers_.flows_open.add(amount);
      return;
    case Shown::Failed:
      numbers_.flows_failed.add(amount);
      io_.counters.flows_failed.fetch_add(amount, std::memory_order_relaxed);
      return;
  }
}

FlowStatus LinkFlow::status(uint64_t now_ns) const {
  // 0 is "never".
  const auto ago = [now_ns](uint64_t at_ns) {
    return at_ns == 0 ? 0 : std::max<uint64_t>(now_ns - at_ns, 1);
  };
  FlowStatus status;
  status.peer = peer_.name;
  status.outgoing = true;
  status.io_loop = io_.io_loop;
  status.flow = index_;
  status.rail = io_.rail_name_of(index_);
  status.state = is_making_channel_ ? "opening" : "failed";
  status.bytes_sent = bytes_sent_ + (has_former() ? former_->bytes_sent() : 0);
  status.failures = failures_;
  if (failures_ > 0) status.error = error_.message();
  status.failed_ago_ns = ago(failed_at_ns_);
  status.replaced_ago_ns = ago(replaced_at_ns_);
  if (flow_ == nullptr) return status;
  status.state = to_string(flow_->state());
  status.bytes_sent += flow_->bytes_sent();
  status.round_trip_ns = flow_->round_trip().mean_ns();
  status.bytes_per_second = flow_->bytes_per_second();
  if (const auto socket = flow_->socket_state()) {
    status.path_round_trip_ns = socket->round_trip_ns;
    status.segments_resent = socket->segments_resent;
  }
  return status;
}

}  // namespace braid
