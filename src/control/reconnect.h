// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>

#include "control/control_connection.h"
#include "loop/timer.h"

namespace braid {

// Tries to get a new connection with a peer that was reached before: again and again, since what
// was sent into a network that is gone comes back only after TCP's own timers, and several at a
// time, since an answer may be slow. Closed and destroyed by its owner, but not from within a hook
// (destroy_later does it in time). Control loop only.
class Reconnect final : private ControlConnectionOwner {
 public:
  static constexpr size_t kAttemptsMax = 8;  // at a time: the oldest makes room

  struct Hooks {
    // An established connection with the process that is there: not necessarily the peer.
    std::function<void(std::unique_ptr<ControlConnection>)> established;
    std::function<void(const Status&)> failed;  // one attempt
  };

  Reconnect(Loop& loop, HandshakeOptions options, uint32_t every_ms, uint32_t deadline_ms,
            Hooks hooks);
  // The first attempt is made at once, the others every `every_ms`.
  void start(const SocketAddress& address);
  // Makes no more attempts. Those that have reached somebody go on: the peer may have counted on
  // one of them, and given up its own.
  void stop();
  // Nothing comes any more.
  void close();

  bool is_trying() const { return timer_.is_active(); }
  const SocketAddress& address() const { return *address_; }  // once started

 private:
  void on_established(ControlConnection& connection) override;
  void on_broken(ControlConnection& connection, const Status& reason) override;

  void attempt();

  Loop& loop_;
  std::optional<SocketAddress> address_;
  const HandshakeOptions options_;
  const uint32_t every_ms_;
  const uint32_t deadline_ms_;
  const Hooks hooks_;
  std::list<std::unique_ptr<ControlConnection>> attempts_;  // oldest first
  Timer timer_;
};

}  // namespace braid
