// SPDX-License-Identifier: Apache-2.0
#include "net/outgoing_flow.h"

#include <algorithm>

#include "base/log.h"
#include "net/flow_driver.h"
#include "net/twice_sent.h"

namespace braid {
namespace {

// Rates and round trips come from acknowledgements that the other side does not hold back, so there
// is one now and then.
constexpr uint64_t kAskEveryNs = 20'000'000;
constexpr uint64_t kChunksWaitingMax = kChunksInFlightMax / 4;
constexpr uint64_t kAckTimerLateMs = 2;  // the other side's timer comes no later than that

proto::AckTime ack_time_of(const proto::ChunkHeader& header) {
  return static_cast<proto::AckTime>(header.ack_time);
}

// What a chunk takes of the window: also those without bytes take something.
uint64_t window_cost(const OutgoingChunk& chunk) {
  return sizeof(proto::ChunkHeader) + chunk.header.bytes;
}

std::span<const uint8_t> bytes_of(const proto::ChunkHeader& header) {
  return {reinterpret_cast<const uint8_t*>(&header), sizeof(header)};
}

}  // namespace

OutgoingFlow::OutgoingFlow(IoContext& io, Owner& owner, std::unique_ptr<FlowChannel> channel,
                           Identity identity, std::string description)
    : Flow(io, std::move(description)),
      owner_(owner),
      peer_(identity.peer),
      index_(identity.index),
      token_(identity.token) {
  probe_.magic = proto::kChunkMagic;
  probe_.version = proto::kChunkVersion;
  probe_.phase = static_cast<uint8_t>(proto::Phase::ReduceScatter);
  probe_.flow_token = token_;
  take_channel(std::move(channel));
}

OutgoingFlow::~OutgoingFlow() { close(); }

void OutgoingFlow::connect(std::vector<uint8_t> remote_address) {
  channel().connect(std::move(remote_address));
}

void OutgoingFlow::on_connected() {
  Flow::on_connected();
  send_probe();
}

Result<uint32_t> OutgoingFlow::payload_bytes(std::span<const uint8_t> header) {
  const auto ack = proto::parse_ack_header(header);
  if (ack && ack->flow_token == token_ && ack->sequence < next_sequence_) return 0;
  io_.counters.chunks_rejected.fetch_add(1, std::memory_order_relaxed);
  return Status(StatusCode::Protocol, "what came is no acknowledgement of this flow");
}

void OutgoingFlow::send_probe() {
  probe_sent_at_ns_ = clock_.now_ns();
  is_probe_sending_ = true;
  const auto result = channel().send(bytes_of(probe_), {}, probe_.sequence);
  if (result != FlowChannel::SendResult::InProgress) is_probe_sending_ = false;
  if (result != FlowChannel::SendResult::Done) io_.driver.mark(*this);
}

void OutgoingFlow::prove() {
  if (state() == State::Open && waiting_since_ns() == 0 && !is_probe_sending_) send_probe();
}

uint64_t OutgoingFlow::waited_ns(uint64_t now_ns) const {
  const uint64_t since_ns = waiting_since_ns();
  if (since_ns == 0) return 0;
  const Slot& oldest = slots_[(acknowledged_ + 1) % kChunksInFlightMax];
  const proto::AckTime time =
      has_unacknowledged() ? ack_time_of(oldest.chunk.header) : proto::AckTime::AtOnce;
  const uint64_t held_back_ms =
      time == proto::AckTime::AtOnce ? 0 : proto::ack_wait_ms(time) + kAckTimerLateMs;
  return now_ns - std::min(now_ns, since_ns + held_back_ms * 1'000'000);
}

std::optional<OutgoingChunk> OutgoingFlow::repeat_oldest() {
  for (uint64_t sequence = acknowledged_ + 1; sequence < next_sequence_; ++sequence) {
    Slot& oldest = slot(sequence);
    if (oldest.is_sending || oldest.chunk.is_repeated) continue;
    const auto twice = std::make_shared<TwiceSent>(std::move(oldest.chunk));
    oldest.chunk = twice->first();
    return twice->second();
  }
  return std::nullopt;
}

uint64_t OutgoingFlow::waiting_since_ns() const {
  if (!has_unacknowledged() && probe_sent_at_ns_ == 0) return 0;
  const uint64_t sent_at_ns = has_unacknowledged()
                                  ? slots_[(acknowledged_ + 1) % kChunksInFlightMax].mark.sent_at_ns
                                  : probe_sent_at_ns_;
  return std::max(sent_at_ns, heard_at_ns_);
}

uint32_t OutgoingFlow::largest_unacknowledged() const {
  uint32_t largest = 0;
  for (uint64_t sequence = acknowledged_ + 1; sequence < next_sequence_; ++sequence)
    largest = std::max(largest, slots_[sequence % kChunksInFlightMax].chunk.header.bytes);
  return largest;
}

bool OutgoingFlow::needs_ack_at_once(uint64_t now_ns, uint64_t late_bytes_max) const {
  return unacknowledged_bytes_ >= late_bytes_max ||
         next_sequence_ - acknowledged_ > kChunksWaitingMax || now_ns - asked_at_ns_ >= kAskEveryNs;
}

void OutgoingFlow::send(OutgoingChunk chunk, std::span<const uint8_t> bytes,
                        uint64_t late_bytes_max) {
  BRAID_ASSERT(has_slot(), "a flow was given a chunk that it has no room for");
  BRAID_ASSERT(bytes.size() == chunk.header.bytes, "a chunk's header and its bytes disagree");
  BRAID_ASSERT(bytes.size() <= io_.options.chunk_bytes, "larger than the receiver has set up for");
  const uint64_t sequence = next_sequence_++;
  Slot& taken = slot(sequence);
  taken.chunk = std::move(chunk);
  taken.chunk.header.flow_token = token_;
  taken.chunk.header.sequence = sequence;
  const uint64_t now_ns = clock_.now_ns();
  taken.mark = rate_.on_sent(now_ns, unacknowledged_bytes_ == 0);
  unacknowledged_bytes_ += window_cost(taken.chunk);
  if (needs_ack_at_once(now_ns, late_bytes_max))
    taken.chunk.header.ack_time = static_cast<uint8_t>(proto::AckTime::AtOnce);
  if (ack_time_of(taken.chunk.header) == proto::AckTime::AtOnce) asked_at_ns_ = now_ns;
  bytes_sent_ += bytes.size();
  io_.counters.chunks_sent.fetch_add(1, std::memory_order_relaxed);
  io_.counters.bytes_sent.fetch_add(bytes.size(), std::memory_order_relaxed);
  taken.is_sending = true;
  const auto result = channel().send(bytes_of(taken.chunk.header), bytes, sequence);
  if (result != FlowChannel::SendResult::InProgress) taken.is_sending = false;
  // What is done leaves nothing to drive: the channel stays armed.
  if (result != FlowChannel::SendResult::Done) io_.driver.mark(*this);
}

void OutgoingFlow::on_send_done(uint64_t sequence, const Status& status) {
  if (sequence == 0) {  // a probe
    is_probe_sending_ = false;
    if (!status) fail(status);
    return;
  }
  slot(sequence).is_sending = false;
  if (!status) {
    fail(status);
    return;
  }
  settle_acknowledged();
}

void OutgoingFlow::on_message(std::span<const uint8_t> header, std::span<const uint8_t> payload,
                              bool is_whole) {
  const auto ack = proto::parse_ack_header(header);
  if (!is_whole || !payload.empty() || !ack || ack->flow_token != token_ ||
      ack->sequence >= next_sequence_) {
    io_.counters.chunks_rejected.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (is_closing() || state() == State::Failed) return;
  heard_at_ns_ = clock_.now_ns();
  is_overdue = false;
  probe_sent_at_ns_ = 0;
  if (state() == State::Opening) {
    set_open();
    owner_.on_flow_open(*this);
  }
  acknowledge(ack->sequence);
}

void OutgoingFlow::acknowledge(uint64_t sequence) {
  if (sequence <= acknowledged_) return;
  const uint64_t before = unacknowledged_bytes_;
  while (acknowledged_ < sequence) {
    const Slot& next = slot(++acknowledged_);
    unacknowledged_bytes_ -= window_cost(next.chunk);
    largest_acknowledged_ = std::max(largest_acknowledged_, next.chunk.header.bytes);
    if (io_.timeline != nullptr) note_chunk(next);
  }
  // Those that the other side held back tell no rate and no round trip.
  const Slot& last = slot(sequence);
  if (ack_time_of(last.chunk.header) == proto::AckTime::AtOnce) {
    rate_.on_delivered(before - unacknowledged_bytes_, last.mark, heard_at_ns_);
    // One that was stuck until TCP's timer is no usual one.
    if (!last.chunk.is_repeated) round_trip_.add(heard_at_ns_ - last.mark.sent_at_ns);
  }
  settle_acknowledged();
  owner_.on_flow_has_room();
}

void OutgoingFlow::note_chunk(const Slot& slot) const {
  const proto::ChunkHeader& header = slot.chunk.header;
  TimelineEvent event;
  event.kind = SpanKind::Chunk;
  event.job_key = header.job_key;
  event.tensor = header.tensor;
  event.step = header.step;
  event.number = header.unit;
  event.slot = index_;
  event.begin_ns = slot.mark.sent_at_ns;
  event.end_ns = heard_at_ns_;
  event.bytes = header.bytes;
  event.go_or_peer = peer_;
  event.is_sum = header.phase == static_cast<uint8_t>(proto::Phase::AllGather);
  event.is_resent = slot.chunk.is_resent;
  io_.timeline->record(event);
}

void OutgoingFlow::settle_acknowledged() {
  while (settled_ < acknowledged_ && !slot(settled_ + 1).is_sending) {
    // Taken out first: the source may submit more from within.
    const OutgoingChunk chunk = std::exchange(slot(++settled_).chunk, OutgoingChunk{});
    chunk.source->on_chunk_settled(chunk, true);
  }
}

std::vector<OutgoingChunk> OutgoingFlow::close_and_reclaim() {
  close();
  // Nothing reads the chunks' memory any more.
  for (uint64_t sequence = settled_ + 1; sequence < next_sequence_; ++sequence) {
    slot(sequence).is_sending = false;
  }
  settle_acknowledged();
  std::vector<OutgoingChunk> unacknowledged;
  while (settled_ + 1 < next_sequence_) {
    unacknowledged.push_back(std::move(slot(++settled_).chunk));
  }
  return unacknowledged;
}

}  // namespace braid
