// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/control_connection.h"
#include "control/peer_session.h"

namespace braid {

// What carries the messages between this node and a peer: the session, which numbers them, over the
// newest connection. The older ones are read as well. There may be no connection for a while: what
// the peer may have missed goes out on the next one. Control loop only.
class PeerChannel {
 public:
  // A pair needs two at most; more come from several names of a host. The oldest makes room.
  static constexpr size_t kConnectionsMax = 8;

  // `connection` is established, and is the one for sending from now on.
  void add(std::unique_ptr<ControlConnection> connection, uint64_t now_ms);
  void remove(const ControlConnection& connection);
  // Closes those that are not used for sending, and on which nothing has come for so long.
  void close_idle(uint64_t silent_ms, uint64_t now_ms);
  void close();

  bool is_connected() const { return !connections_.empty(); }
  // As measured on the connection for sending. Nothing: not known.
  std::optional<uint64_t> round_trip_ns() const;
  uint64_t received_bytes() const;  // on all connections that exist
  bool has_taken_more();            // see ControlConnection

  // Once and in order, if not on this connection, then on the next one. ResourceExhausted: the peer
  // does not take what it is sent.
  Status send(std::span<const uint8_t> message);
  void send_heartbeat(uint64_t now_ms, uint64_t to_answer_ms);
  void send_goodbye(const std::string& reason);
  // The numbers of a frame that came on `connection`: see PeerSession.
  Result<bool> receive(const FrameNumbers& numbers, size_t message_bytes) {
    return session_.receive(numbers, message_bytes);
  }
  bool owes_acknowledgement() const { return session_.owes_acknowledgement(); }

 private:
  ControlConnection* sending() const {
    return connections_.empty() ? nullptr : connections_.back().get();
  }
  void send_kept();
  void send_unnumbered(proto::ControlBody type, flatbuffers::FlatBufferBuilder& builder,
                       flatbuffers::Offset<void> body);

  PeerSession session_{kControlSendQueueBytesMax};
  std::vector<std::unique_ptr<ControlConnection>> connections_;  // oldest first
};

}  // namespace braid
