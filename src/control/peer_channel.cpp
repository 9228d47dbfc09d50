// SPDX-License-Identifier: Apache-2.0
#include "control/peer_channel.h"

#include <utility>

namespace braid {

void PeerChannel::add(std::unique_ptr<ControlConnection> connection, uint64_t now_ms) {
  if (connections_.size() >= kConnectionsMax) {
    ControlConnection::discard(std::move(connections_.front()));
    connections_.erase(connections_.begin());
  }
  connection->set_heard_at_ms(now_ms);
  connections_.push_back(std::move(connection));
  send_kept();
}

void PeerChannel::remove(const ControlConnection& connection) {
  const bool was_sending = &connection == sending();
  ControlConnection::discard(take_out(connections_, connection));
  if (was_sending) send_kept();
}

void PeerChannel::close_idle(uint64_t silent_ms, uint64_t now_ms) {
  for (auto& connection : connections_) {
    const bool is_idle =
        connection.get() != sending() && now_ms > connection->heard_at_ms() + silent_ms;
    if (is_idle) ControlConnection::discard(std::move(connection));
  }
  std::erase(connections_, nullptr);
}

void PeerChannel::close() {
  for (auto& connection : connections_) ControlConnection::discard(std::move(connection));
  connections_.clear();
}

std::optional<uint64_t> PeerChannel::round_trip_ns() const {
  return connections_.empty() ? std::nullopt : sending()->round_trip_ns();
}

uint64_t PeerChannel::received_bytes() const {
  uint64_t received = 0;
  for (const auto& connection : connections_) received += connection->received_bytes();
  return received;
}

bool PeerChannel::has_taken_more() { return !connections_.empty() && sending()->has_taken_more(); }

Status PeerChannel::send(std::span<const uint8_t> message) {
  const Result<uint64_t> sequence = session_.keep(message);
  if (!sequence) return sequence.status();
  if (ControlConnection* connection = sending())
    (void)connection->send({*sequence, session_.acknowledge()}, message);
  return Status::ok();
}

// What the peer may have missed.
void PeerChannel::send_kept() {
  if (connections_.empty()) return;
  for (const PeerSession::Kept& kept : session_.kept()) {
    const Status sent = sending()->send({kept.sequence, session_.acknowledge()}, kept.message);
    if (!sent) return;  // this one breaks, too
  }
}

void PeerChannel::send_heartbeat(uint64_t now_ms, uint64_t to_answer_ms) {
  // Bytes that wait will be a sign of life as well, once the peer reads.
  if (connections_.empty() || sending()->queued_bytes() != 0) return;
  flatbuffers::FlatBufferBuilder builder;
  const auto body = proto::CreateHeartbeat(builder, now_ms, to_answer_ms);
  send_unnumbered(proto::ControlBody::Heartbeat, builder, body.Union());
}

void PeerChannel::send_goodbye(const std::string& reason) {
  if (connections_.empty()) return;
  flatbuffers::FlatBufferBuilder builder;
  const auto body = proto::CreateGoodbyeDirect(builder, reason.c_str());
  send_unnumbered(proto::ControlBody::Goodbye, builder, body.Union());
}

void PeerChannel::send_unnumbered(proto::ControlBody type, flatbuffers::FlatBufferBuilder& builder,
                                  flatbuffers::Offset<void> body) {
  builder.Finish(proto::CreateControlMessage(builder, type, body));
  (void)sending()->send({0, session_.acknowledge()},
                        {builder.GetBufferPointer(), builder.GetSize()});
}

}  // namespace braid
