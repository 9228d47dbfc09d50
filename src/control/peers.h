// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "control/control_connection.h"
#include "control/control_plane.h"
#include "control/peer_directory.h"
#include "loop/timer.h"

namespace braid {

// The daemons that this one talks with, each from its first handshake until it is lost: beats
// hearts with them, connects again with those whose connection broke or through which nothing
// comes, and gives up those that give no sign of life. Their messages and losses go to the handler.
// Control loop only. Not to be destroyed from within a callback; when it is destroyed, the peers
// are told.
class Peers final : private ControlConnectionOwner {
 public:
  using ConnectAgain = std::function<void(WaitingConnect)>;
  // All that is passed by reference outlives this. `connect_again` is for those who waited for a
  // peer that was lost then.
  Peers(Loop& loop, const Clock& clock, const ControlPlaneOptions& options,
        ControlPlaneHandler& handler, ControlPlaneCounters& counters, ConnectAgain connect_again);
  ~Peers() override;

  // What this node says of itself, and of its sessions, in any handshake.
  HandshakeOptions handshake_options() const;
  // Takes an established connection. Unavailable: one of both has lost the other meanwhile.
  Status add(std::unique_ptr<ControlConnection> connection);
  void add_name(NodeId id, const std::string& host, uint16_t port) {
    directory_.add_name(id, host, port);
  }

  const Peer* find(NodeId id) const;  // nullptr: none, as for what follows
  const Peer* find(const std::string& host, uint16_t port) const;
  std::vector<Peer> all() const;
  size_t count() const { return directory_.entries().size(); }
  std::optional<uint64_t> round_trip_ns(NodeId id) const;
  // See ControlPlane::send().
  Status send(NodeId to, const flatbuffers::FlatBufferBuilder& message);
  // Calls back when the peer has shown that it hears us, or is lost; not from within this call.
  void answer_when_sure(NodeId id, WaitingConnect waiting);

 private:
  void on_message(ControlConnection& connection, const FrameNumbers& numbers,
                  const proto::ControlMessage& message, size_t message_bytes) override;
  void on_broken(ControlConnection& connection, const Status& reason) override;

  PeerEntry& entry_of(const ControlConnection& connection);
  void answer_later(const Peer& peer, ControlPlane::ConnectCallback callback);
  void answer_waiting(PeerEntry& entry);
  void take_heartbeat(PeerEntry& entry, const proto::Heartbeat& heartbeat);
  void take_goodbye(const PeerEntry& entry, const proto::Goodbye& goodbye);
  void begin_reconnect(PeerEntry& entry);
  void on_reconnected(NodeId id, std::unique_ptr<ControlConnection> connection);
  void on_reconnect_failed(NodeId id, const Status& reason);
  void tick();
  void look_at(PeerEntry& entry, uint64_t stood_still_ms, uint64_t now_ms);
  // Who has ended it: what the peer will be told, and whether it will have to believe it.
  enum class LostBy : uint8_t { Us, Peer };
  void lose(NodeId id, const Status& reason, LostBy by = LostBy::Us);
  void lose_later(NodeId id, Status reason);

  Loop& loop_;
  const Clock& clock_;
  const ControlPlaneOptions& options_;
  ControlPlaneHandler& handler_;
  ControlPlaneCounters& counters_;
  const ConnectAgain connect_again_;
  PeerDirectory directory_;
  Timer heartbeat_timer_;  // runs while there are peers
  uint64_t ticked_at_ms_ = 0;
  Lifetime lifetime_;  // of what is deferred
};

}  // namespace braid
