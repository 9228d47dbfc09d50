// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "control/control_connection.h"
#include "control/control_plane.h"
#include "control/stranger_log.h"

namespace braid {

// The accepted connections that have not shaken hands yet. Their number is bounded: the oldest
// makes room for a new one. A connection that has shaken hands goes to the owner; a refused one is
// counted and logged. Control loop only. Destroyed by its owner, but not from within the hook.
class Strangers final : private ControlConnectionOwner {
 public:
  using Established = std::function<void(std::unique_ptr<ControlConnection>)>;
  // `options` and `refused`, which counts the refused connections, outlive this.
  Strangers(Loop& loop, const Clock& clock, const ControlPlaneOptions& options, uint64_t& refused,
            Established established);

  void take(Result<std::unique_ptr<TcpStream>> stream, HandshakeOptions handshake);

 private:
  void on_established(ControlConnection& connection) override;
  void on_message(ControlConnection& connection, const FrameNumbers& numbers,
                  const proto::ControlMessage& message, size_t message_bytes) override;
  void on_broken(ControlConnection& connection, const Status& reason) override;

  void refuse(const std::string& who, const std::string& reason);

  Loop& loop_;
  const ControlPlaneOptions& options_;
  uint64_t& refused_;
  const Established established_;
  StrangerLog log_;
  std::list<std::unique_ptr<ControlConnection>> connections_;  // oldest first
};

}  // namespace braid
