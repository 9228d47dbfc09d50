// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/peer.h"
#include "control/flow_keys.h"
#include "loop/loop.h"
#include "proto/control_generated.h"

namespace braid {

class NodeKey;

struct ControlPlaneOptions {
  Peer self;  // name and advertised address; port 0: the one that was bound. Its id is node_key's.
  std::shared_ptr<const NodeKey> node_key;  // none: a new one
  std::string listen_address;               // numeric
  uint16_t listen_port = 0;                 // 0: any (tests)
  std::vector<uint8_t> cluster_key;         // empty: there are no peers, and nobody can connect
  bool encrypts = false;                    // what is sent to peers; they must do so, too
  uint32_t heartbeat_interval_ms = 500;
  uint32_t peer_timeout_ms = 5000;  // a peer that is silent for so long is lost
  uint32_t connect_timeout_ms =
      5000;  // connecting and shaking hands, together; also for strangers who connect to us
  // Connections that have not shaken hands yet: the nodes of a large job all come at once.
  size_t strangers_max = 64;
};

// What the control plane tells its owner, always on the control loop and never from within a call
// into it.
class ControlPlaneHandler {
 public:
  virtual ~ControlPlaneHandler() = default;
  // `message` was verified as a FlatBuffer and is not of the handshake; what it says is not
  // checked.
  virtual void on_control_message(const Peer& from, const proto::ControlMessage& message) = 0;
  // It was silent for too long, its process has ended, it left, or it does not take what it is
  // sent. It is unknown from now on; comes once per peer. A connection that broke is no lost peer
  // yet.
  virtual void on_peer_lost(const Peer& peer, const Status& reason) = 0;
};

struct ControlPlaneCounters {
  uint64_t connections_refused =
      0;  // strangers: bad handshake, wrong key, garbage, too slow, too many at once
  uint64_t frames_refused = 0;  // that came on a connection and were not the peer's
  uint64_t reconnects = 0;      // a peer was reached again before it was lost
  uint64_t messages_sent = 0;
  uint64_t messages_received = 0;
};

// The connections between this daemon and others: listens, connects, proves on both sides the
// knowledge of the cluster key, carries FlatBuffers messages once and in order, watches for
// silence. A connection that breaks, or that nothing comes through, is replaced by a new one, and
// what the peer may have missed is sent again; only a peer that gives no sign of life for
// peer_timeout_ms is lost, or one whose process has ended. Several connections with a peer may
// exist: the newest is used for sending, all are read. A message to oneself is delivered on the
// next round of the loop. Control loop only. Not to be destroyed from within a callback; once it is
// destroyed, no callback comes any more, and peers are told that this node closed its connections.
class ControlPlane {
 public:
  using ConnectCallback = std::function<void(Result<Peer>)>;

  static Result<std::unique_ptr<ControlPlane>> create(Loop& loop, const Clock& clock,
                                                      ControlPlaneOptions options,
                                                      ControlPlaneHandler& handler);
  virtual ~ControlPlane() = default;

  virtual const Peer& self() const = 0;  // with the port that was bound
  // Connects to the daemon at host:port (a name or an address) unless it is connected already, or
  // is this daemon itself. `callback` comes exactly once, within connect_timeout_ms, never from
  // within this call. A connected peer that has not answered some heartbeats must answer first, or
  // is lost and connected anew: peer_timeout_ms more.
  void connect(const std::string& host, uint16_t port, ConnectCallback callback) {
    connect_for(std::nullopt, host, port, std::move(callback));
  }
  // For a user of this node, who named the host: see Resolver::resolve().
  virtual void connect_for(std::optional<uint32_t> user, const std::string& host, uint16_t port,
                           ConnectCallback callback) = 0;
  // As connect(), also where a connection exists: by a new one, so that it is known whether the
  // daemon there can be reached now. An answer from this daemon itself is `self`.
  virtual void connect_anew(const std::string& host, uint16_t port, ConnectCallback callback) = 0;
  virtual const Peer* find(NodeId id) const = 0;  // nullptr: not connected; self is always found
  // Queues `message` (a finished ControlMessage), which may then be sent to others: unless `to` is
  // this node, which takes it. Unavailable: not connected. ResourceExhausted: the peer does not
  // take what it is sent, and is lost for it; InvalidArgument: the message is too long for a frame.
  virtual Status send(NodeId to, flatbuffers::FlatBufferBuilder& message) = 0;
  // The shortest round trip to a connected peer that the kernel has seen lately; nothing: not
  // known.
  virtual std::optional<uint64_t> round_trip_ns(NodeId id) const = 0;
  // The key of a link between this node and another one.
  virtual LinkKey link_key(NodeId opener, NodeId receiver, uint64_t nonce) const = 0;
  virtual std::vector<Peer> peers() const = 0;
  virtual size_t peer_count() const { return peers().size(); }
  virtual const ControlPlaneCounters& counters() const = 0;
};

}  // namespace braid
