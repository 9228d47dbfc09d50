// SPDX-License-Identifier: Apache-2.0
#include "net/flow_link.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace braid {

FlowLink::FlowLink(IoContext& io, Owner& owner, Peer peer, uint64_t nonce, const LinkKey& key)
    : io_(io),
      owner_(owner),
      peer_(std::move(peer)),
      nonce_(nonce),
      key_(key),
      numbers_(io.board.of(peer_.name)),
      full_size_losses_(io.options.rails.size()),
      overdue_(io, *this, flows_),
      watch_(io, peer_, flows_, queue_, *numbers_),
      slow_flows_(io.options.slow_flow_percent),
      lost_timer_(io.loop) {}

FlowLink::~FlowLink() { BRAID_ASSERT(is_closed_, "a link must be closed before it goes"); }

void FlowLink::start() { add_flows(io_.options.flows_per_link); }

void FlowLink::add_flows(size_t flows) {
  if (is_closed_ || flows <= flows_.size()) return;
  loads_.resize(flows);
  const size_t before = flows_.size();
  LinkFlow::Owner& owner = *this;
  while (flows_.size() < flows) {
    const auto index = static_cast<uint16_t>(flows_.size());
    flows_.push_back(
        std::make_unique<LinkFlow>(io_, owner, peer_, key_, index, numbers_->rail_of(index),
                                   full_size_losses_[index % full_size_losses_.size()]));
  }
  for (size_t index = before; index < flows; ++index) flows_[index]->open_soon();
}

void FlowLink::on_accepted(FlowOffer accepted) {
  if (LinkFlow* flow = flow_at(accepted.flow)) flow->on_accepted(std::move(accepted));
}

void FlowLink::on_refused(const FlowRefusal& refusal) {
  if (LinkFlow* flow = flow_at(refusal.flow)) flow->on_refused(refusal);
}

void FlowLink::prove() {
  if (is_closed_) return;
  watch_.prove();
  overdue_.start();
}

void FlowLink::on_rails_changed() {
  if (is_closed_) return;
  for (const auto& flow : flows_) flow->on_rail_changed();
}

// --- what flows tell ---

void FlowLink::on_channel_made(std::optional<FlowOffer> offer) {
  if (offer) offers_.push_back(std::move(*offer));
  const bool is_last = std::none_of(flows_.begin(), flows_.end(),
                                    [](const auto& flow) { return flow->is_making_channel(); });
  if (is_last && !offers_.empty()) owner_.on_flows_offered(*this, std::exchange(offers_, {}));
}

void FlowLink::on_flow_open(OutgoingFlow& flow) {
  flows_[flow.index()]->on_open();
  is_established_ = true;
  lost_timer_.stop();
  owner_.on_link_ready(*this);
  note_tried();
}

void FlowLink::on_gone(LinkFlow& flow, std::vector<OutgoingChunk> unacknowledged) {
  take_back(std::move(unacknowledged));
  last_error_ = flow.error();
  if (is_established_ && flows_open() == 0 && !lost_timer_.is_active()) {
    lost_timer_.start_once(io_.options.lost_timeout_ms, [this] {
      owner_.on_link_lost(
          *this, last_error_.with_context(fmt::format("no flow to node '{}' for {} ms", peer_.name,
                                                      io_.options.lost_timeout_ms)));
    });
  }
  owner_.on_link_ready(*this);
  note_tried();
}

void FlowLink::take_back(std::vector<OutgoingChunk> unacknowledged) {
  for (auto chunk = unacknowledged.rbegin(); chunk != unacknowledged.rend(); ++chunk)
    queue_.push_front({std::move(*chunk), true});
}

void FlowLink::note_tried() {
  if (was_tried_ || !std::all_of(flows_.begin(), flows_.end(),
                                 [](const auto& flow) { return flow->was_tried(); }))
    return;
  was_tried_ = true;
  owner_.on_link_tried(*this, flows_open(), last_error_);
}

size_t FlowLink::flows_open() const {
  return static_cast<size_t>(std::count_if(flows_.begin(), flows_.end(),
                                           [](const auto& flow) { return flow->is_open(); }));
}

// --- chunks ---

bool FlowLink::has_chunks() const {
  return !queue_.empty() || std::any_of(flows_.begin(), flows_.end(), [](const auto& one) {
    return one->flow() != nullptr && one->flow()->has_chunks_in_flight();
  });
}

void FlowLink::submit(OutgoingChunk chunk) {
  if (is_closed_) {
    io_.loop.defer([chunk = std::move(chunk)] { chunk.source->on_chunk_settled(chunk, false); });
    return;
  }
  queue_.push_back({std::move(chunk), false});
  owner_.on_link_ready(*this);
}

void FlowLink::look_at_flows() {
  for (size_t index = 0; index < flows_.size(); ++index) {
    const LinkFlow& one = *flows_[index];
    const bool is_open = one.is_open() && !one.flow()->is_overdue;
    loads_[index] = !is_open ? FlowLoad{}
                             : FlowLoad{true, false, one.flow()->unacknowledged_bytes(),
                                        one.flow()->bytes_per_second()};
  }
}

void FlowLink::note_room(uint32_t window_bytes) {
  for (size_t index = 0; index < flows_.size(); ++index) {
    const LinkFlow& one = *flows_[index];
    loads_[index].has_room =
        loads_[index].is_open && !one.is_leaving() && one.flow()->has_room(window_bytes);
  }
}

// So many open ones, and what lies between them: the first ones, of which every rail has its share.
std::span<FlowLoad> FlowLink::open_flows(size_t count) {
  size_t end = 0;
  while (end < loads_.size() && count > 0) {
    if (loads_[end++].is_open) --count;
  }
  return std::span(loads_).first(end);
}

void FlowLink::replace_slow_flows() {
  const uint64_t now_ns = SystemClock().now_ns();
  if (slow_flows_.is_due(now_ns)) {
    if (const size_t slow = slow_flows_.look(loads_, now_ns); slow != kNoFlow) {
      flows_[slow]->leave();
      BRAID_LOG_INFO(flows_[slow]->fields(),
                     "{}: {:.0f} Mbit/s, most flows of its link {:.0f}; it is opened again",
                     flows_[slow]->description(), loads_[slow].bytes_per_second * 8e-6,
                     median_rate(loads_) * 8e-6);
    }
  }
  for (size_t index = 0; index < flows_.size(); ++index) {
    if (!flows_[index]->is_to_replace()) continue;
    loads_[index] = FlowLoad{};
    flows_[index]->replace(now_ns);
    has_formers_ = true;
  }
}

void FlowLink::drop_formers() {
  has_formers_ = false;
  for (const auto& one : flows_) {
    if (one->has_former() && one->is_open()) one->drop_former();
    has_formers_ = has_formers_ || one->has_former();
  }
}

void FlowLink::pump() {
  if (has_formers_) drop_formers();
  if (queue_.empty()) return;
  look_at_flows();
  replace_slow_flows();
  even_out(loads_);
  queue_.take_back_all();
  std::optional<uint64_t> job_key;  // whose limits and flows these are
  LinkLimits limits;
  std::span<FlowLoad> flows;
  while (queue_.has_front()) {
    const proto::ChunkHeader& header = queue_.front().chunk.header;
    if (job_key != header.job_key) {
      job_key = header.job_key;
      limits = io_.limits.of(header.job_key);
      flows = open_flows(limits.flows);
      note_room(limits.window_bytes);
    }
    const size_t first = next_flow_ < flows.size() ? next_flow_ : 0;
    const size_t chosen = choose_flow(flows, header.bytes, queue_.bytes(), first);
    if (chosen == kNoFlow) {
      queue_.put_aside();
      continue;
    }
    QueuedChunk next = queue_.pop_front(limits.weight);
    const auto bytes = next.chunk.source->payload_of(next.chunk);
    if (bytes.empty()) {
      // Its operation is over. The source was given a promise if the bytes were out before.
      if (next.was_sent) next.chunk.source->on_chunk_settled(next.chunk, false);
      continue;
    }
    if (next.was_sent) {
      next.chunk.is_resent = true;
      io_.counters.chunks_resent.fetch_add(1, std::memory_order_relaxed);
    }
    LinkFlow& flow = *flows_[chosen];
    flow.send(std::move(next.chunk), bytes, limits.window_bytes / 2);
    overdue_.on_sent();
    watch_.start();
    loads_[chosen].has_room = flow.flow()->has_room(limits.window_bytes);
    loads_[chosen].unacknowledged_bytes = flow.flow()->unacknowledged_bytes();
    next_flow_ = (chosen + 1) % flows_.size();
  }
}

void FlowLink::close(const Status& reason) {
  if (is_closed_) return;
  is_closed_ = true;
  lost_timer_.stop();
  overdue_.stop();
  BRAID_LOG_DEBUG("link to node '{}' closed: {}", peer_.name, reason.message());
  for (const auto& flow : flows_) take_back(flow->close());
  queue_.take_back_all();
  while (!queue_.empty()) {
    const QueuedChunk next = queue_.pop_front();
    next.chunk.source->on_chunk_settled(next.chunk, false);
  }
  watch_.stop();
}

void FlowLink::list_flows(std::vector<FlowStatus>& out) const {
  const uint64_t now_ns = SystemClock().now_ns();
  for (const auto& flow : flows_) out.push_back(flow->status(now_ns));
}

}  // namespace braid
