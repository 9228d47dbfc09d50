// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "control/connect_attempt.h"
#include "control/control_connection.h"
#include "control/control_plane.h"
#include "control/own_address.h"
#include "control/peer_directory.h"
#include "control/stranger_log.h"
#include "loop/tcp_listener.h"
#include "loop/timer.h"

namespace braid {

// A peer that has not answered for so many heartbeats may be lost soon, or may lose us: nothing new
// is begun with it before that is known. In good times an answer is up to two of them old.
inline constexpr uint32_t kUnansweredHeartbeatsMax = 4;

class ControlPlaneImpl final : public ControlPlane, private ControlConnectionOwner {
 public:
  ControlPlaneImpl(Loop& loop, const Clock& clock, ControlPlaneOptions options,
                   ControlPlaneHandler& handler);
  ~ControlPlaneImpl() override;
  Status listen();

  const Peer& self() const override { return options_.self; }
  void connect_for(std::optional<uint32_t> user, const std::string& host, uint16_t port,
                   ConnectCallback callback) override;
  const Peer* find(NodeId id) const override;
  Status send(NodeId to, flatbuffers::FlatBufferBuilder& message) override;
  std::optional<uint64_t> round_trip_ns(NodeId id) const override;
  LinkKey link_key(NodeId opener, NodeId receiver, uint64_t nonce) const override {
    return make_link_key(options_.cluster_key, opener, receiver, nonce);
  }
  std::vector<Peer> peers() const override;
  size_t peer_count() const override { return peers_.entries().size(); }
  const ControlPlaneCounters& counters() const override { return counters_; }

 private:
  void on_established(ControlConnection& connection) override;
  void on_message(ControlConnection& connection, const FrameNumbers& numbers,
                  const proto::ControlMessage& message, size_t message_bytes) override;
  void on_broken(ControlConnection& connection, const Status& reason) override;

  // Strangers: those who connect to us.
  void on_stranger(Result<std::unique_ptr<TcpStream>> stream);
  void refuse(const std::string& who, const std::string& reason);
  std::unique_ptr<ControlConnection> take_stranger(const ControlConnection& connection);

  // Those to whom we connect.
  void start_attempt(std::optional<uint32_t> user, const std::string& host, uint16_t port,
                     ConnectCallback callback);
  void on_attempt_done(ConnectAttempt& attempt, Result<ConnectOutcome> outcome);
  Result<Peer> settle(const ConnectAttempt& attempt, Result<ConnectOutcome>& outcome);
  void answer_later(NodeId id, ConnectCallback callback);
  void answer_when_sure(PeerEntry& entry, WaitingConnect waiting);
  bool is_own(const SocketAddress& address) const;
  Status may_connect() const;
  HandshakeOptions handshake_options() const;

  // Peers: control_plane_peers.cpp.
  Status add_peer(std::unique_ptr<ControlConnection> connection);
  void send_kept(PeerEntry& entry);
  bool is_in_doubt(const PeerEntry& entry) const;
  void send_heartbeat(PeerEntry& entry);
  void send_goodbye(PeerEntry& entry, const std::string& reason);
  void take_heartbeat(PeerEntry& entry, const proto::Heartbeat& heartbeat);
  void take_goodbye(const PeerEntry& entry, const proto::Goodbye& goodbye);
  void on_peer_broken(ControlConnection& connection, const Status& reason);
  void begin_reconnect(PeerEntry& entry);
  void on_reconnected(NodeId id, std::unique_ptr<ControlConnection> connection);
  void on_reconnect_failed(NodeId id, const Status& reason);
  std::string describe_silence(const PeerEntry& entry) const;
  // Who has ended it: what the peer will be told, and whether it will have to believe it.
  enum class LostBy : uint8_t { Us, Peer };
  void lose(NodeId id, const Status& reason, LostBy by = LostBy::Us);
  void lose_later(NodeId id, Status reason);
  void tick();
  void note_movement(PeerEntry& entry, uint64_t now_ms);
  void close_idle(PeerEntry& entry, uint64_t now_ms);
  void deliver_to_self();

  Loop& loop_;
  const Clock& clock_;
  ControlPlaneOptions options_;
  ControlPlaneHandler& handler_;
  ControlPlaneCounters counters_;
  StrangerLog stranger_log_;
  std::unique_ptr<TcpListener> listener_;  // none without a cluster key
  std::unique_ptr<OwnAddress> own_address_;
  std::list<std::unique_ptr<ControlConnection>> strangers_;  // oldest first
  std::list<std::unique_ptr<ConnectAttempt>> attempts_;
  PeerDirectory peers_;
  Timer heartbeat_timer_;  // runs while there are peers
  uint64_t ticked_at_ms_ = 0;
  std::deque<flatbuffers::DetachedBuffer> to_self_;
  size_t to_self_bytes_ = 0;
  Lifetime lifetime_;  // of what is deferred
};

}  // namespace braid
