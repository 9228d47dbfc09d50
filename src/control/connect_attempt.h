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
#include "control/control_connection.h"
#include "control/control_plane.h"
#include "loop/resolver.h"

namespace braid {

// What came of an attempt: a new connection, or somebody who needs none (known already, or this
// daemon itself).
struct ConnectOutcome {
  std::unique_ptr<ControlConnection> connection;
  std::optional<Peer> known;
};

// One attempt to reach the daemon at host:port, on behalf of everybody who asked for it meanwhile:
// looks the name up, then tries its addresses one after the other, all within one deadline. Ends by
// exactly one call of `done`, never from within the constructor or start(); destroying it before
// cancels. Control loop only.
class ConnectAttempt final : private ControlConnectionOwner {
 public:
  struct Hooks {
    // Asked before an address is tried: is that somebody we know?
    std::function<std::optional<Peer>(const SocketAddress&)> known_peer_at;
    // Asked when nobody listens there: is it an address of this very host, so that it meant us?
    std::function<std::optional<Peer>(const SocketAddress&)> self_at;
    // May it be tried at all?
    std::function<Status(const SocketAddress&)> check;
    std::function<void(Result<ConnectOutcome>)> done;
  };

  ConnectAttempt(Loop& loop, const Clock& clock, std::string host, uint16_t port,
                 HandshakeOptions options, uint32_t timeout_ms);
  // `user`: whose look-up it is, where somebody named the host.
  void start(Hooks hooks, std::optional<uint32_t> user);

  const std::string& host() const { return host_; }
  uint16_t port() const { return port_; }
  void add(ControlPlane::ConnectCallback callback) { callbacks_.push_back(std::move(callback)); }
  std::vector<ControlPlane::ConnectCallback> take_callbacks() { return std::move(callbacks_); }

 private:
  void on_established(ControlConnection& connection) override;
  void on_broken(ControlConnection& connection, const Status& reason) override;

  void try_next_address();
  void note_failure(const SocketAddress& address, const Status& reason);
  void finish(Result<ConnectOutcome> outcome);
  void fail();
  uint64_t remaining_ms() const;
  std::string target() const;

  Loop& loop_;
  const Clock& clock_;
  const std::string host_;
  const uint16_t port_;
  const HandshakeOptions options_;
  const uint32_t timeout_ms_;
  const uint64_t deadline_at_ms_;
  Hooks hooks_;
  std::vector<ControlPlane::ConnectCallback> callbacks_;
  Resolver resolver_;
  Timer timer_;  // first the way out of start(), then the deadline of the look-up
  std::vector<SocketAddress> addresses_;
  size_t next_address_ = 0;
  Status first_failure_;  // of the first address: what people should look at
  size_t failures_ = 0;
  std::unique_ptr<ControlConnection> connection_;
};

}  // namespace braid
