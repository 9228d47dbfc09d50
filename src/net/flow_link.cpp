// SPDX-License-Identifier: Apache-2.0
#include "net/flow_link.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace braid {
namespace {

constexpr uint64_t kPauseMsMin = 100;
constexpr uint64_t kPauseMsMax = 2000;  // a path that is well again is soon used again

}  // namespace

FlowLink::FlowLink(IoContext& io, Owner& owner, Peer peer, uint64_t nonce, const LinkKey& key)
    : io_(io),
      owner_(owner),
      peer_(std::move(peer)),
      nonce_(nonce),
      key_(key),
      numbers_(io.board.of(peer_.name)),
      slots_(io.options.flows_per_link),
      loads_(slots_.size()),
      slow_flows_(slots_.size(), io.options.slow_flow_percent),
      silent_flows_(slots_.size()),
      full_size_losses_(io.rails.size()),
      waits_(slots_.size()),
      overdue_budget_(io.options.twice_sent_percent),
      overdue_timer_(io.loop),
      watch_timer_(io.loop),
      untried_(slots_.size()),
      lost_timer_(io.loop) {
  for (auto& slot : slots_) slot.timer = std::make_unique<Timer>(io.loop);
}

FlowLink::~FlowLink() { BRAID_ASSERT(is_closed_, "a link must be closed before it goes"); }

void FlowLink::start() {
  for (size_t index = 0; index < slots_.size(); ++index) open_soon(index);
}

void FlowLink::add_flows(size_t flows) {
  if (is_closed_ || flows <= slots_.size()) return;
  const size_t before = slots_.size();
  slots_.resize(flows);
  loads_.resize(flows);
  slow_flows_.add(flows - before);
  silent_flows_.add(flows - before);
  waits_.resize(flows);
  for (size_t index = before; index < flows; ++index) {
    slots_[index].timer = std::make_unique<Timer>(io_.loop);
    slots_[index].was_tried = true;  // who waits for the link does not wait for these
    open_soon(index);
  }
}

std::string FlowLink::description_of(uint16_t index) const {
  return fmt::format("flow {} to node '{}' ({}) on rail {}", index, peer_.name, peer_.address,
                     io_.rail_name_of(index));
}

LogFields FlowLink::fields_of(uint16_t index) const {
  return {.peer = peer_.name, .rail = io_.rail_name_of(index), .flow = index};
}

void FlowLink::open_soon(size_t slot) {
  if (std::exchange(slots_[slot].is_to_open, true)) return;
  ++to_open_;
  const auto index = static_cast<uint16_t>(slot);
  const auto take = [this, index](UcxWorkerMaker::Made made) {
    slots_[index].is_to_open = false;
    --to_open_;
    open_flow(index, std::move(made));
    if (to_open_ == 0 && !offers_.empty() && !is_closed_)
      owner_.on_flows_offered(*this, std::exchange(offers_, {}));
  };
  slots_[slot].generation = ++io_.generations;
  io_.make_worker(this, index, keys_of(index).proof_key, std::nullopt, take,
                  full_size_loss_of(index).segment_bytes());
  count_flows();
}

void FlowLink::open_flow(uint16_t index, UcxWorkerMaker::Made made) {
  FlowSlot& slot = slots_[index];
  if (!io_.is_usable(index)) {
    if (made) io_.workers.destroy(std::move(*made));
    fail_flow(index, rail_is_down(index));
    return;
  }
  if (!made) {
    fail_flow(index, made.status().with_context(description_of(index)));
    return;
  }
  const std::string& rail = io_.rail_name_of(index);
  slot.flow.reset(new OutgoingFlow(io_, *this, std::move(made->worker),
                                   {peer_.id, index, keys_of(index).chunk_token},
                                   description_of(index)));
  offers_.push_back({io_.io_loop, index, slot.generation, rail, slot.flow->address()});
  // A little less than the whole: who waits for the link gets this answer, which says more than a
  // deadline does.
  slot.timer->start_once(uint64_t{io_.options.open_timeout_ms} * 4 / 5, [this, index] {
    slots_[index].flow->fail(
        {StatusCode::DeadlineExceeded,
         fmt::format("no answer within {} ms: is the node ({}) "
                     "reachable from this rail, and are UCX's ports "
                     "open?",
                     uint64_t{io_.options.open_timeout_ms} * 4 / 5, peer_.address)});
  });
}

OutgoingFlow* FlowLink::flow_of(uint16_t index, uint32_t generation) {
  if (index >= slots_.size() || slots_[index].generation != generation) return nullptr;
  OutgoingFlow* flow = slots_[index].flow.get();
  return flow != nullptr && flow->state() == Flow::State::Opening ? flow : nullptr;
}

void FlowLink::on_accepted(FlowOffer accepted) {
  OutgoingFlow* flow = flow_of(accepted.flow, accepted.generation);
  if (flow == nullptr) return;  // too late
  // A second answer is no answer.
  if (std::exchange(slots_[accepted.flow].accepted, accepted.generation) == accepted.generation)
    return;
  flow->connect(std::move(accepted.worker_address));
}

void FlowLink::on_refused(const FlowRefusal& refusal) {
  OutgoingFlow* flow = flow_of(refusal.flow, refusal.generation);
  if (flow != nullptr) flow->fail({StatusCode::Unavailable, "refused: " + refusal.reason});
}

void FlowLink::on_flow_open(OutgoingFlow& flow) {
  FlowSlot& slot = slots_[flow.index()];
  slot.timer->stop();
  slot.pause_ms = 0;
  if (slot.failures > 0)
    BRAID_LOG_INFO(fields_of(flow.index()), "{}: open again", flow.description());
  io_.counters.flows_open.fetch_add(1, std::memory_order_relaxed);
  count_flows();
  full_size_loss_of(flow.index()).on_flow_open();
  is_established_ = true;
  lost_timer_.stop();
  owner_.on_link_ready(*this);
  note_tried(slot);
}

void FlowLink::on_flow_failed(OutgoingFlow& flow) {
  if (FlowSlot& slot = slots_[flow.index()]; slot.former.get() == &flow) return drop_former(slot);
  Status error = flow.error();  // a copy: the flow goes
  fail_flow(flow.index(), std::move(error));
}

void FlowLink::fail_flow(uint16_t index, Status error) {
  FlowSlot& slot = slots_[index];
  const uint64_t failures = ++slot.failures;
  slot.failed_at_ns = SystemClock().now_ns();
  io_.counters.flow_failures.fetch_add(1, std::memory_order_relaxed);
  numbers_of(index).flow_failures.add(1);
  last_error_ = slot.error = std::move(error);
  if (slot.flow != nullptr) retire_flow(slot);
  slot.pause_ms = std::clamp(slot.pause_ms * 2, kPauseMsMin, kPauseMsMax);
  if (io_.is_usable(index)) {
    BRAID_LOG_INFO(fields_of(index), "{}; failure {}, next try in {} ms", last_error_.message(),
                   failures, slot.pause_ms);
    slot.timer->start_once(slot.pause_ms, [this, index] { open_soon(index); });
  } else {
    BRAID_LOG_INFO(fields_of(index), "{}; failure {}, it waits for its rail", last_error_.message(),
                   failures);
    slot.timer->stop();
  }
  count_flows();
  if (is_established_ && flows_open() == 0 && !lost_timer_.is_active()) {
    lost_timer_.start_once(io_.options.lost_timeout_ms, [this] {
      owner_.on_link_lost(
          *this, last_error_.with_context(fmt::format("no flow to node '{}' for {} ms", peer_.name,
                                                      io_.options.lost_timeout_ms)));
    });
  }
  owner_.on_link_ready(*this);
  note_tried(slot);
}

void FlowLink::retire_flow(FlowSlot& slot) {
  if (slot.flow->was_open()) io_.counters.flows_open.fetch_sub(1, std::memory_order_relaxed);
  slot.bytes_sent += slot.flow->bytes_sent();
  slot.is_leaving = false;
  if (!slot.flow->has_chunks_in_flight()) return io_.free_later(std::move(slot.flow));
  auto unacknowledged = slot.flow->close_and_reclaim();
  if (!is_closed_) numbers_of(slot.flow->index()).chunks_returned.add(unacknowledged.size());
  for (auto chunk = unacknowledged.rbegin(); chunk != unacknowledged.rend(); ++chunk) {
    queue_.push_front({std::move(*chunk), true});
  }
  slot.flow.reset();
}

void FlowLink::drop_former(FlowSlot& slot) {
  io_.counters.flows_open.fetch_sub(1, std::memory_order_relaxed);
  slot.bytes_sent += slot.former->bytes_sent();
  io_.free_later(std::move(slot.former));
}

void FlowLink::note_tried(FlowSlot& slot) {
  if (slot.was_tried) return;
  slot.was_tried = true;
  if (--untried_ == 0) owner_.on_link_tried(*this, flows_open(), last_error_);
}

size_t FlowLink::flows_open() const {
  return static_cast<size_t>(std::count_if(slots_.begin(), slots_.end(), [](const FlowSlot& slot) {
    return slot.flow != nullptr && slot.flow->state() == Flow::State::Open;
  }));
}

// Sums modulo 2^64: what has become less is added, too.
void FlowLink::count_flows() {
  std::vector<LinkStatus::Rail> rails(numbers_->rails().size());
  for (size_t index = 0; index < slots_.size() && !is_closed_; ++index) {
    const FlowSlot& slot = slots_[index];
    LinkStatus::Rail& rail = rails[index % rails.size()];
    if (slot.flow == nullptr) {
      ++(slot.is_to_open ? rail.flows_opening : rail.flows_failed);
    } else if (slot.flow->state() == Flow::State::Open) {
      ++rail.flows_open;
    } else {
      ++(slot.flow->state() == Flow::State::Opening ? rail.flows_opening : rail.flows_failed);
    }
  }
  uint64_t opening = 0;
  uint64_t failed = 0;
  for (size_t i = 0; i < rails.size(); ++i) {
    opening += rails[i].flows_opening;
    failed += rails[i].flows_failed;
    RailNumbers& numbers = numbers_of(i);
    numbers.flows_open.set(rails[i].flows_open);
    numbers.flows_opening.set(rails[i].flows_opening);
    numbers.flows_failed.set(rails[i].flows_failed);
  }
  io_.counters.flows_opening.fetch_add(opening - std::exchange(flows_opening_, opening),
                                       std::memory_order_relaxed);
  io_.counters.flows_failed.fetch_add(failed - std::exchange(flows_failed_, failed),
                                      std::memory_order_relaxed);
}

bool FlowLink::has_chunks() const {
  return !queue_.empty() || std::any_of(slots_.begin(), slots_.end(), [](const FlowSlot& slot) {
    return slot.flow != nullptr && slot.flow->has_chunks_in_flight();
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
  for (size_t index = 0; index < slots_.size(); ++index) {
    const FlowSlot& slot = slots_[index];
    const bool is_open =
        slot.flow != nullptr && slot.flow->state() == Flow::State::Open && !slot.flow->is_overdue;
    loads_[index] = !is_open ? FlowLoad{}
                             : FlowLoad{true, false, slot.flow->unacknowledged_bytes(),
                                        slot.flow->bytes_per_second()};
  }
}

void FlowLink::note_room(uint32_t window_bytes) {
  for (size_t index = 0; index < slots_.size(); ++index) {
    const FlowSlot& slot = slots_[index];
    loads_[index].has_room =
        loads_[index].is_open && !slot.is_leaving && slot.flow->has_room(window_bytes);
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
      slots_[slow].is_leaving = true;
      BRAID_LOG_INFO(fields_of(static_cast<uint16_t>(slow)),
                     "{}: {:.0f} Mbit/s, most flows of its link {:.0f}; it is opened again",
                     slots_[slow].flow->description(), loads_[slow].bytes_per_second * 8e-6,
                     median_rate(loads_) * 8e-6);
    }
  }
  for (size_t index = 0; index < slots_.size(); ++index) {
    FlowSlot& slot = slots_[index];
    if (!slot.is_leaving || slot.flow->has_chunks_in_flight()) continue;
    loads_[index] = FlowLoad{};
    io_.counters.flows_replaced.fetch_add(1, std::memory_order_relaxed);
    numbers_of(index).flow_replacements.add(1);
    slot.is_leaving = false;
    slot.replaced_at_ns = now_ns;
    if (slot.former != nullptr) drop_former(slot);
    slot.former = std::move(slot.flow);
    has_formers_ = true;
    open_soon(index);
  }
}

void FlowLink::drop_formers() {
  has_formers_ = false;
  for (FlowSlot& slot : slots_) {
    if (slot.former == nullptr) continue;
    if (slot.flow != nullptr && slot.flow->state() == Flow::State::Open) {
      drop_former(slot);
    } else {
      has_formers_ = true;
    }
  }
}

void FlowLink::pump() {
  if (has_formers_) drop_formers();
  if (queue_.empty()) return;
  look_at_flows();
  replace_slow_flows();
  even_out(loads_);
  queue_.take_back_all();
  LinkLimits limits;  // of the job whose flows these are
  std::span<FlowLoad> flows;
  while (queue_.has_front()) {
    const proto::ChunkHeader& header = queue_.front().chunk.header;
    if (const LinkLimits& own = io_.limits.of(header.job_key); own != limits) {
      limits = own;
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
    OutgoingFlow& flow = *slots_[chosen].flow;
    numbers_of(chosen).bytes_sent.add(bytes.size());
    flow.send(std::move(next.chunk), bytes, limits.window_bytes / 2);
    overdue_budget_.on_sent();
    start_watching();
    loads_[chosen].has_room = flow.has_room(limits.window_bytes);
    loads_[chosen].unacknowledged_bytes = flow.unacknowledged_bytes();
    next_flow_ = (chosen + 1) % slots_.size();
  }
}

void FlowLink::close(const Status& reason) {
  if (is_closed_) return;
  is_closed_ = true;
  io_.workers.drop(this);
  lost_timer_.stop();
  watch_timer_.stop();
  overdue_timer_.stop();
  BRAID_LOG_DEBUG("link to node '{}' closed: {}", peer_.name, reason.message());
  for (auto& slot : slots_) {
    slot.timer->stop();
    if (slot.former != nullptr) drop_former(slot);
    if (slot.flow != nullptr) retire_flow(slot);
  }
  count_flows();
  queue_.take_back_all();
  while (!queue_.empty()) {
    const QueuedChunk next = queue_.pop_front();
    next.chunk.source->on_chunk_settled(next.chunk, false);
  }
  show_traffic(true);
}

void FlowLink::list_flows(std::vector<FlowStatus>& out) const {
  const uint64_t now_ns = SystemClock().now_ns();
  // 0 is "never".
  const auto ago = [now_ns](uint64_t at_ns) {
    return at_ns == 0 ? 0 : std::max<uint64_t>(now_ns - at_ns, 1);
  };
  for (size_t index = 0; index < slots_.size(); ++index) {
    const FlowSlot& slot = slots_[index];
    FlowStatus status;
    status.peer = peer_.name;
    status.outgoing = true;
    status.io_loop = io_.io_loop;
    status.flow = static_cast<uint16_t>(index);
    status.rail = io_.rail_name_of(static_cast<uint16_t>(index));
    status.state = slot.flow != nullptr ? to_string(slot.flow->state())
                   : slot.is_to_open    ? "opening"
                                        : "failed";
    status.bytes_sent = slot.bytes_sent + (slot.flow == nullptr ? 0 : slot.flow->bytes_sent()) +
                        (slot.former == nullptr ? 0 : slot.former->bytes_sent());
    status.failures = slot.failures;
    if (slot.failures > 0) status.error = slot.error.message();
    status.failed_ago_ns = ago(slot.failed_at_ns);
    status.replaced_ago_ns = ago(slot.replaced_at_ns);
    if (slot.flow != nullptr) {
      status.round_trip_ns = slot.flow->round_trip().mean_ns();
      status.bytes_per_second = slot.flow->bytes_per_second();
    }
    out.push_back(std::move(status));
  }
}

}  // namespace braid
