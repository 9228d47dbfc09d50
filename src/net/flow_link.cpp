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

FlowLink::FlowLink(IoContext& io, Owner& owner, Peer peer, uint64_t secret)
    : io_(io),
      owner_(owner),
      peer_(std::move(peer)),
      secret_(secret),
      places_(io.options.flows_per_link),
      loads_(places_.size()),
      slow_flows_(places_.size(), io.options.slow_flow_percent),
      silent_flows_(places_.size()),
      waits_(places_.size()),
      overdue_budget_(io.options.twice_sent_percent),
      overdue_timer_(io.loop),
      watch_timer_(io.loop),
      untried_(places_.size()),
      lost_timer_(io.loop) {
  for (auto& place : places_) place.timer = std::make_unique<Timer>(io.loop);
}

FlowLink::~FlowLink() { BRAID_ASSERT(is_closed_, "a link must be closed before it goes"); }

void FlowLink::start() {
  for (size_t index = 0; index < places_.size(); ++index) open_soon(index);
}

void FlowLink::add_flows(size_t flows) {
  if (is_closed_ || flows <= places_.size()) return;
  const size_t before = places_.size();
  places_.resize(flows);
  loads_.resize(flows);
  slow_flows_.add(flows - before);
  silent_flows_.add(flows - before);
  waits_.resize(flows);
  for (size_t index = before; index < flows; ++index) {
    places_[index].timer = std::make_unique<Timer>(io_.loop);
    places_[index].was_tried = true;  // who waits for the link does not wait for these
    open_soon(index);
  }
}

std::string FlowLink::description_of(uint16_t index) const {
  return fmt::format("flow {} to node '{}' ({}) on rail {}", index, peer_.name, peer_.address,
                     io_.rail_name_of(index));
}

void FlowLink::open_soon(size_t place) {
  if (std::exchange(places_[place].is_to_open, true)) return;
  ++to_open_;
  const auto index = static_cast<uint16_t>(place);
  io_.make_worker(this, index, secret_, std::nullopt, [this, index](UcxWorkerMaker::Made made) {
    places_[index].is_to_open = false;
    --to_open_;
    open_flow(index, std::move(made));
    if (to_open_ == 0 && !offers_.empty() && !is_closed_)
      owner_.on_flows_offered(*this, std::exchange(offers_, {}));
  });
}

void FlowLink::open_flow(uint16_t index, UcxWorkerMaker::Made made) {
  Place& place = places_[index];
  if (!io_.is_usable(index)) {
    if (made) io_.workers.destroy(std::move(*made));
    fail_flow(index, rail_is_down(index));
    return;
  }
  if (!made) {
    fail_flow(index, made.status().with_context(description_of(index)));
    return;
  }
  place.generation = ++io_.generations;
  const std::string& rail = io_.rail_name_of(index);
  place.flow.reset(
      new OutgoingFlow(io_, *this, std::move(made->worker), index, secret_, description_of(index)));
  offers_.push_back({io_.io_loop, index, place.generation, rail, place.flow->address()});
  // A little less than the whole: who waits for the link gets this answer, which says more than a
  // deadline does.
  place.timer->start_once(uint64_t{io_.options.open_timeout_ms} * 4 / 5, [this, index] {
    places_[index].flow->fail(
        {StatusCode::DeadlineExceeded, fmt::format("no answer within {} ms: is the node reachable "
                                                   "from this rail, and are UCX's ports open?",
                                                   uint64_t{io_.options.open_timeout_ms} * 4 / 5)});
  });
}

OutgoingFlow* FlowLink::flow_of(uint16_t index, uint32_t generation) {
  if (index >= places_.size() || places_[index].generation != generation) return nullptr;
  OutgoingFlow* flow = places_[index].flow.get();
  return flow != nullptr && flow->state() == Flow::State::Opening ? flow : nullptr;
}

void FlowLink::on_accepted(FlowOffer accepted) {
  OutgoingFlow* flow = flow_of(accepted.flow, accepted.generation);
  if (flow == nullptr) return;  // too late
  // A second answer is no answer.
  if (std::exchange(places_[accepted.flow].accepted, accepted.generation) == accepted.generation)
    return;
  flow->connect(std::move(accepted.worker_address));
}

void FlowLink::on_refused(const FlowRefusal& refusal) {
  OutgoingFlow* flow = flow_of(refusal.flow, refusal.generation);
  if (flow != nullptr) flow->fail({StatusCode::Unavailable, "refused: " + refusal.reason});
}

void FlowLink::on_flow_open(OutgoingFlow& flow) {
  Place& place = places_[flow.index()];
  place.timer->stop();
  place.pause_ms = 0;
  if (place.failures > 0) BRAID_LOG_INFO("{}: open again", flow.description());
  io_.counters.flows_open.fetch_add(1, std::memory_order_relaxed);
  is_established_ = true;
  lost_timer_.stop();
  owner_.on_link_ready(*this);
  note_tried(place);
}

void FlowLink::on_flow_failed(OutgoingFlow& flow) {
  if (Place& place = places_[flow.index()]; place.former.get() == &flow) return drop_former(place);
  Status error = flow.error();  // a copy: the flow goes
  fail_flow(flow.index(), std::move(error));
}

void FlowLink::fail_flow(uint16_t index, Status error) {
  Place& place = places_[index];
  const uint64_t failures = ++place.failures;
  io_.counters.flow_failures.fetch_add(1, std::memory_order_relaxed);
  last_error_ = place.error = std::move(error);
  if (place.flow != nullptr) retire_flow(place);
  place.pause_ms = std::clamp(place.pause_ms * 2, kPauseMsMin, kPauseMsMax);
  if (io_.is_usable(index)) {
    BRAID_LOG_INFO("{}; failure {}, next try in {} ms", last_error_.message(), failures,
                   place.pause_ms);
    place.timer->start_once(place.pause_ms, [this, index] { open_soon(index); });
  } else {
    BRAID_LOG_INFO("{}; failure {}, it waits for its rail", last_error_.message(), failures);
    place.timer->stop();
  }
  if (is_established_ && flows_open() == 0 && !lost_timer_.is_active()) {
    lost_timer_.start_once(io_.options.open_timeout_ms, [this] {
      owner_.on_link_lost(
          *this, last_error_.with_context(fmt::format("no flow to node '{}' for {} ms", peer_.name,
                                                      io_.options.open_timeout_ms)));
    });
  }
  owner_.on_link_ready(*this);
  note_tried(place);
}

void FlowLink::retire_flow(Place& place) {
  if (place.flow->was_open()) io_.counters.flows_open.fetch_sub(1, std::memory_order_relaxed);
  place.bytes_sent += place.flow->bytes_sent();
  place.is_leaving = false;
  if (!place.flow->has_chunks_in_flight()) return io_.free_later(std::move(place.flow));
  auto unacknowledged = place.flow->close_and_reclaim();
  for (auto chunk = unacknowledged.rbegin(); chunk != unacknowledged.rend(); ++chunk) {
    queue_.push_front({std::move(*chunk), true});
  }
  place.flow.reset();
}

void FlowLink::drop_former(Place& place) {
  io_.counters.flows_open.fetch_sub(1, std::memory_order_relaxed);
  place.bytes_sent += place.former->bytes_sent();
  io_.free_later(std::move(place.former));
}

void FlowLink::note_tried(Place& place) {
  if (place.was_tried) return;
  place.was_tried = true;
  if (--untried_ == 0) owner_.on_link_tried(*this, flows_open(), last_error_);
}

size_t FlowLink::flows_open() const {
  return static_cast<size_t>(std::count_if(places_.begin(), places_.end(), [](const Place& place) {
    return place.flow != nullptr && place.flow->state() == Flow::State::Open;
  }));
}

bool FlowLink::has_chunks() const {
  return !queue_.empty() || std::any_of(places_.begin(), places_.end(), [](const Place& place) {
    return place.flow != nullptr && place.flow->has_chunks_in_flight();
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
  for (size_t index = 0; index < places_.size(); ++index) {
    const Place& place = places_[index];
    const bool is_open = place.flow != nullptr && place.flow->state() == Flow::State::Open &&
                         !place.flow->is_overdue;
    loads_[index] = !is_open ? FlowLoad{}
                             : FlowLoad{true, false, place.flow->unacknowledged_bytes(),
                                        place.flow->bytes_per_second()};
  }
}

void FlowLink::note_room(uint32_t window_bytes) {
  for (size_t index = 0; index < places_.size(); ++index) {
    const Place& place = places_[index];
    loads_[index].has_room =
        loads_[index].is_open && !place.is_leaving && place.flow->has_room(window_bytes);
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
      places_[slow].is_leaving = true;
      BRAID_LOG_INFO("{}: {:.0f} Mbit/s, most flows of its link {:.0f}; it is opened again",
                     places_[slow].flow->description(), loads_[slow].bytes_per_second * 8e-6,
                     median_rate(loads_) * 8e-6);
    }
  }
  for (size_t index = 0; index < places_.size(); ++index) {
    Place& place = places_[index];
    if (!place.is_leaving || place.flow->has_chunks_in_flight()) continue;
    loads_[index] = FlowLoad{};
    io_.counters.flows_replaced.fetch_add(1, std::memory_order_relaxed);
    place.is_leaving = false;
    if (place.former != nullptr) drop_former(place);
    place.former = std::move(place.flow);
    has_formers_ = true;
    open_soon(index);
  }
}

void FlowLink::drop_formers() {
  has_formers_ = false;
  for (Place& place : places_) {
    if (place.former == nullptr) continue;
    if (place.flow != nullptr && place.flow->state() == Flow::State::Open) {
      drop_former(place);
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
    if (next.was_sent) io_.counters.chunks_resent.fetch_add(1, std::memory_order_relaxed);
    OutgoingFlow& flow = *places_[chosen].flow;
    flow.send(std::move(next.chunk), bytes);
    overdue_budget_.on_sent();
    start_watching();
    loads_[chosen].has_room = flow.has_room(limits.window_bytes);
    loads_[chosen].unacknowledged_bytes = flow.unacknowledged_bytes();
    next_flow_ = (chosen + 1) % places_.size();
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
  for (auto& place : places_) {
    place.timer->stop();
    if (place.former != nullptr) drop_former(place);
    if (place.flow != nullptr) retire_flow(place);
  }
  queue_.take_back_all();
  while (!queue_.empty()) {
    const QueuedChunk next = queue_.pop_front();
    next.chunk.source->on_chunk_settled(next.chunk, false);
  }
}

void FlowLink::list_flows(std::vector<FlowStatus>& out) const {
  for (size_t index = 0; index < places_.size(); ++index) {
    const Place& place = places_[index];
    FlowStatus status;
    status.peer = peer_.name;
    status.outgoing = true;
    status.io_loop = io_.io_loop;
    status.flow = static_cast<uint16_t>(index);
    status.rail = io_.rail_name_of(static_cast<uint16_t>(index));
    status.state = place.flow == nullptr ? "failed" : to_string(place.flow->state());
    status.bytes_sent = place.bytes_sent + (place.flow == nullptr ? 0 : place.flow->bytes_sent()) +
                        (place.former == nullptr ? 0 : place.former->bytes_sent());
    status.failures = place.failures;
    if (place.failures > 0) status.error = place.error.message();
    if (place.flow != nullptr) status.round_trip_ns = place.flow->round_trip().mean_ns();
    out.push_back(std::move(status));
  }
}

}  // namespace braid
