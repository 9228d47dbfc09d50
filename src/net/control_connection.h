// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "loop/tcp_stream.h"
#include "loop/timer.h"
#include "net/control_frame_reader.h"
#include "net/handshake.h"
#include "proto/control_generated.h"

namespace braid {

inline constexpr size_t kControlSendQueueBytesMax = 64u << 20;  // per connection

// One TCP connection to another daemon: shakes hands, then carries verified messages. Its owner is
// told what happens and destroys it, but not from within a function of ControlConnectionOwner
// (destroy_later does it in time).
class ControlConnection;

class ControlConnectionOwner {
 public:
  virtual ~ControlConnectionOwner() = default;
  // The handshake is over: peer() is who it says. Another owner may be set in this call.
  virtual void on_established(ControlConnection& connection) = 0;
  // A verified message with a body that is not of the handshake. Heartbeats come here too.
  virtual void on_message(ControlConnection& connection, const proto::ControlMessage& message) = 0;
  // The last call: the handshake failed or the connection broke. It is closed already.
  virtual void on_broken(ControlConnection& connection, const Status& reason) = 0;
};

class ControlConnection final : private TcpStream::Handler {
 public:
  // Connects to `address`. The handshake must be over within `deadline_ms`.
  static std::unique_ptr<ControlConnection> connect(Loop& loop, const SocketAddress& address,
                                                    HandshakeOptions options, uint32_t deadline_ms,
                                                    ControlConnectionOwner& owner);
  // Takes over an accepted stream.
  static std::unique_ptr<ControlConnection> accept(Loop& loop, std::unique_ptr<TcpStream> stream,
                                                   HandshakeOptions options, uint32_t deadline_ms,
                                                   ControlConnectionOwner& owner);

  void set_owner(ControlConnectionOwner& owner) { owner_ = &owner; }
  // Closes without a word; what was sent still goes out as far as the socket takes it.
  void close();

  bool has_been_established() const { return handshake_ == nullptr; }
  const Peer& peer() const { return peer_; }               // once established
  const SocketAddress& remote() const { return remote_; }  // the other end of the socket
  const std::string& peer_braid_version() const { return peer_braid_version_; }
  // The peer opened this one though it has no other with us (any more).
  bool is_first_of_peer() const { return is_first_of_peer_; }
  size_t queued_bytes() const { return stream_ ? stream_->queued_bytes() : 0; }

  // `message` is a finished ControlMessage. ResourceExhausted: the peer does not read;
  // InvalidArgument: it is too long.
  Status send(std::span<const uint8_t> message);
  void set_unacknowledged_timeout(uint32_t timeout_ms);

 private:
  // Connecting ─connected→ Handshaking ─handshake done→ Established; any → Closed. An accepted one
  // begins as Handshaking.
  enum class State : uint8_t { Connecting, Handshaking, Established, Closed };

  ControlConnection(Loop& loop, HandshakeRole role, HandshakeOptions options, State state,
                    const SocketAddress& remote, std::unique_ptr<TcpStream> stream,
                    ControlConnectionOwner& owner);

  void on_connected() override;
  void on_bytes(std::span<const uint8_t> bytes) override;
  void on_end(const Status& reason) override;

  void start_deadline(uint32_t deadline_ms);
  void take_frame(std::span<const uint8_t> frame);
  void take_handshake_frame(std::span<const uint8_t> frame);
  void take_message(std::span<const uint8_t> frame);
  void write_frame(std::span<const uint8_t> frame);
  void fail(const Status& reason);

  Loop& loop_;
  State state_;
  const SocketAddress remote_;
  std::unique_ptr<TcpStream> stream_;  // none once closed
  ControlFrameReader reader_{kHandshakeFrameBytesMax};
  std::unique_ptr<Handshake> handshake_;  // none once established
  std::unique_ptr<Timer> deadline_;       // none once established
  Peer peer_;
  std::string peer_braid_version_;
  bool is_first_of_peer_ = false;
  ControlConnectionOwner* owner_;
};

// Destroys `object` after the callback that is being run now.
template <typename T>
void destroy_later(Loop& loop, std::unique_ptr<T> object) {
  if (object) loop.defer([held = std::shared_ptr<T>(std::move(object))] {});
}

}  // namespace braid
