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

Result<std::unique_ptr<IncomingFlow>> IncomingFlow::create(IoContext& io, Owner& owner,
                                                           UcxConnection connection, NodeId from,
                                                           uint64_t token, std::string description,
                                                           std::shared_ptr<RailNumbers> numbers) {
  std::unique_ptr<IncomingFlow> flow(
      new IncomingFlow(io, owner, from, token, std::move(description), std::move(numbers)));
  if (Status taken = flow->take_connection(std::move(connection), proto::kChunkMessage); !taken)
    return taken.with_context(flow->description());
  // Longer than the sender waits: it gives up first, and says why.
  flow->open_timer_.start_once(2 * uint64_t{io.options.open_timeout_ms}, [flow = flow.get()] {
    flow->fail({StatusCode::DeadlineExceeded, "the sender has sent nothing since it asked for it"});
  });
  return flow;
}

IncomingFlow::~IncomingFlow() { close(); }

void IncomingFlow::on_message(std::span<const uint8_t> header, std::span<const uint8_t> payload,
                              bool is_whole) {
  if (is_closing() || state() == State::Failed) return;
  const auto parsed = proto::parse_chunk_header(header, payload.size());
  if (!is_whole || !parsed || parsed->flow_token != token_) {
    reject();
    return;
  }
  if (state() == State::Opening) {
    set_open();
    open_timer_.stop();
    io_.counters.flows_open.fetch_add(1, std::memory_order_relaxed);
  }
  last_message_ms_ = uv_now(io_.loop.uv());
  ack_due_ms_ =
      std::min(ack_due_ms_, last_message_ms_ +
                                proto::ack_wait_ms(static_cast<proto::AckTime>(parsed->ack_time)));
  if (parsed->sequence == 0) return;  // a probe
  if (!received_.accept(parsed->sequence)) {
    reject();
    return;
  }
  bytes_received_ += payload.size();
  numbers_->bytes_received.add(payload.size());
  io_.counters.chunks_received.fetch_add(1, std::memory_order_relaxed);
  io_.counters.bytes_received.fetch_add(payload.size(), std::memory_order_relaxed);
  io_.sink.on_chunk(from_, *parsed, payload);
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
  if (ack_due_ms_ == kNever || is_ack_sending_ || state() == State::Failed) return;
  ack_due_ms_ = kNever;
  ack_.sequence = received_.contiguous();
  const auto result = endpoint()->send(
      proto::kAckMessage, {reinterpret_cast<const uint8_t*>(&ack_), sizeof(ack_)}, {}, 0);
  is_ack_sending_ = result == UcxEndpoint::SendResult::InProgress;
}

void IncomingFlow::on_send_done(uint64_t /*token*/, const Status& status) {
  is_ack_sending_ = false;
  if (!status) fail(status);
}

}  // namespace braid
