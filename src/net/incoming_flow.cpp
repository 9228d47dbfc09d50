// SPDX-License-Identifier: Apache-2.0
#include "net/incoming_flow.h"

#include <algorithm>

#include "base/log.h"
#include "net/flow_driver.h"

namespace braid {
namespace {

constexpr uint64_t kIdleMs = 500;

}  // namespace

IncomingFlow::IncomingFlow(IoContext& io, Owner& owner, NodeId from, uint64_t token,
                           std::string description, std::shared_ptr<RailNumbers> numbers)
    : Flow(io, std::move(description)),
      owner_(owner),
      from_(from),
      token_(token),
      numbers_(std::move(numbers)),
      open_timer_(io.loop),
      ack_timer_(io.loop) {
  ack_.magic = proto::kChunkMagic;
  ack_.version = proto::kChunkVersion;
  ack_.flow_token = token;
}

std::unique_ptr<IncomingFlow> IncomingFlow::create(IoContext& io, Owner& owner,
                                                   std::unique_ptr<FlowChannel> channel,
                                                   NodeId from, uint64_t token,
                                                   std::string description,
                                                   std::shared_ptr<RailNumbers> numbers) {
  std::unique_ptr<IncomingFlow> flow(
      new IncomingFlow(io, owner, from, token, std::move(description), std::move(numbers)));
  // Longer than the sender waits: it gives up first, and says why.
  flow->open_timer_.start_once(2 * uint64_t{io.options.open_timeout_ms}, [flow = flow.get()] {
    flow->fail({StatusCode::DeadlineExceeded, "the sender has sent nothing since it asked for it"});
  });
  flow->take_channel(std::move(channel));
  return flow;
}

IncomingFlow::~IncomingFlow() { close(); }

void IncomingFlow::on_message(std::span<const uint8_t> header, std::span<const uint8_t> payload,
                              bool is_whole) {
  if (is_closing() || state() == State::Failed) return;
  const auto parsed = proto::parse_chunk_header(header, payload.size());
  if (!is_whole || !parsed || parsed->flow_token != token_) return reject();
  if (note(*parsed)) io_.sink.on_chunk(from_, *parsed, payload);
}

// A chunk, or a probe, is here. True: it is a chunk, and has not been here before.
bool IncomingFlow::note(const proto::ChunkHeader& header) {
  if (state() == State::Opening) {
    set_open();
    open_timer_.stop();
    io_.counters.flows_open.fetch_add(1, std::memory_order_relaxed);
  }
  last_message_ms_ = uv_now(io_.loop.uv());
  ack_due_ms_ =
      std::min(ack_due_ms_,
               last_message_ms_ + proto::ack_wait_ms(static_cast<proto::AckTime>(header.ack_time)));
  if (header.sequence == 0) return false;  // a probe
  if (!received_.accept(header.sequence)) {
    reject();
    return false;
  }
  bytes_received_ += header.bytes;
  numbers_->bytes_received.add(header.bytes);
  io_.counters.chunks_received.fetch_add(1, std::memory_order_relaxed);
  io_.counters.bytes_received.fetch_add(header.bytes, std::memory_order_relaxed);
  return true;
}

Result<uint32_t> IncomingFlow::payload_bytes(std::span<const uint8_t> header) {
  if (is_closing() || state() == State::Failed)
    return Status(StatusCode::Cancelled, "the flow is given up");
  const uint32_t bytes = proto::chunk_payload_bytes(header);
  const auto parsed = proto::parse_chunk_header(header, bytes);
  if (!parsed || parsed->flow_token != token_ || bytes > io_.options.chunk_bytes) {
    reject();
    return Status(StatusCode::Protocol, "what came is no chunk of this link");
  }
  return bytes;
}

ChunkIntake IncomingFlow::intake(std::span<const uint8_t> header) {
  return io_.sink.intake(from_, proto::chunk_header(header));
}

void IncomingFlow::fold(std::span<const uint8_t> header, uint32_t offset,
                        std::span<const uint8_t> piece) {
  io_.sink.fold(from_, proto::chunk_header(header), offset, piece);
}

void IncomingFlow::on_message_taken(std::span<const uint8_t> header, bool was_dropped) {
  if (is_closing() || state() == State::Failed) return;
  const proto::ChunkHeader parsed = proto::chunk_header(header);
  if (note(parsed) && !was_dropped) io_.sink.on_chunk_taken(from_, parsed);
}

bool IncomingFlow::is_idle() const {
  return was_open() && uv_now(io_.loop.uv()) - last_message_ms_ >= kIdleMs;
}

void IncomingFlow::reject() {
  if (io_.counters.chunks_rejected.fetch_add(1, std::memory_order_relaxed) == 0) {
    BRAID_LOG_WARN("{}: dropped a message that is no chunk of this link; more are only counted",
                   description());
  }
}

// One acknowledgement for all that was taken, and one at a time: while it waits for the socket, the
// next one gathers.
void IncomingFlow::after_progress() {
  if (ack_due_ms_ == kNever) return;
  const uint64_t now_ms = uv_now(io_.loop.uv());
  if (ack_due_ms_ <= now_ms) return acknowledge();
  if (ack_timer_.is_active() && ack_timer_due_ms_ <= ack_due_ms_) return;
  ack_timer_due_ms_ = ack_due_ms_;
  ack_timer_.start_once(ack_due_ms_ - now_ms, [this] {
    if (is_closing()) return;
    acknowledge();
    io_.driver.mark(*this);
  });
}

void IncomingFlow::acknowledge() {
  ack_timer_.stop();
  if (ack_due_ms_ == kNever || is_ack_sending_ || state() != State::Open) return;
  ack_due_ms_ = kNever;
  ack_.sequence = received_.contiguous();
  const auto result =
      channel().send({reinterpret_cast<const uint8_t*>(&ack_), sizeof(ack_)}, {}, 0);
  is_ack_sending_ = result == FlowChannel::SendResult::InProgress;
}

void IncomingFlow::on_send_done(uint64_t /*token*/, const Status& status) {
  is_ack_sending_ = false;
  if (!status) fail(status);
}

}  // namespace braid
