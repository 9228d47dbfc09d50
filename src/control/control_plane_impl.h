// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "control/connect_attempt.h"
#include "control/control_plane.h"
#include "control/own_address.h"
#include "control/peers.h"
#include "control/strangers.h"
#include "loop/tcp_listener.h"

namespace braid {

// How connections come about: listens, connects, and takes messages to this node itself. What
// becomes of a connection is decided by Strangers before its handshake, and by Peers after it.
class ControlPlaneImpl final : public ControlPlane {
 public:
  ControlPlaneImpl(Loop& loop, const Clock& clock, ControlPlaneOptions options,
                   ControlPlaneHandler& handler);
  Status listen();

  const Peer& self() const override { return options_.self; }
  void connect_for(std::optional<uint32_t> user, const std::string& host, uint16_t port,
                   ConnectCallback callback) override;
  void connect_anew(const std::string& host, uint16_t port, ConnectCallback callback) override;
  const Peer* find(NodeId id) const override;
  Status send(NodeId to, flatbuffers::FlatBufferBuilder& message) override;
  std::optional<uint64_t> round_trip_ns(NodeId id) const override {
    return peers_.round_trip_ns(id);
  }
  LinkKey link_key(NodeId opener, NodeId receiver, uint64_t nonce) const override {
    return make_link_key(options_.cluster_key, opener, receiver, nonce);
  }
  std::vector<Peer> peers() const override { return peers_.all(); }
  size_t peer_count() const override { return peers_.count(); }
  const ControlPlaneCounters& counters() const override { return counters_; }

 private:
  // `attempt` takes the callback.
  void start_attempt(std::unique_ptr<ConnectAttempt> attempt, std::optional<uint32_t> user,
                     bool is_anew);
  std::unique_ptr<ConnectAttempt> make_attempt(const std::string& host, uint16_t port,
                                               ConnectCallback callback);
  void on_attempt_done(ConnectAttempt& attempt, Result<ConnectOutcome> outcome);
  Result<Peer> settle(const ConnectAttempt& attempt, Result<ConnectOutcome>& outcome);
  void answer_when_sure(NodeId id, WaitingConnect waiting);
  std::optional<Peer> known_at(const SocketAddress& address) const;
  Status may_connect() const;
  Status send_to_self(flatbuffers::FlatBufferBuilder& message);
  void deliver_to_self();

  Loop& loop_;
  const Clock& clock_;
  ControlPlaneOptions options_;
  ControlPlaneHandler& handler_;
  ControlPlaneCounters counters_;
  Peers peers_;
  Strangers strangers_;
  std::unique_ptr<TcpListener> listener_;  // none without a cluster key
  std::unique_ptr<OwnAddress> own_address_;
  std::list<std::unique_ptr<ConnectAttempt>> attempts_;
  std::deque<flatbuffers::DetachedBuffer> to_self_;
  size_t to_self_bytes_ = 0;
  Lifetime lifetime_;  // of what is deferred
};

}  // namespace braid
