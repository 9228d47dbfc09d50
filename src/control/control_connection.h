// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "control/control_frame_reader.h"
#include "control/frame_seal.h"
#include "control/handshake.h"
#include "loop/tcp_stream.h"
#include "loop/timer.h"
#include "proto/control_generated.h"

namespace braid {

inline constexpr size_t kControlSendQueueBytesMax = 64u << 20;  // of messages, per peer
// Heartbeats and farewells find room beyond the messages.
inline constexpr size_t kControlStreamBytesMax = kControlSendQueueBytesMax + (64u << 10);

// One TCP connection to another daemon: shakes hands, then carries verified messages in frames that
// only its two ends can make. Its owner is told what happens and destroys it, but not from within a
// function of ControlConnectionOwner (discard() does it in time).
class ControlConnection;

class ControlConnectionOwner {
 public:
  virtual ~ControlConnectionOwner() = default;
  // The handshake is over: peer() is who it says. Another owner may be set in this call.
  virtual void on_established(ControlConnection&) {
    BRAID_ASSERT(false, "this owner has established connections alone");
  }
  // A verified message with a body that is not of the handshake, of so many bytes. Heartbeats come
  // here too.
  virtual void on_message(ControlConnection&, const FrameNumbers&, const proto::ControlMessage&,
                          size_t /*message_bytes*/) {
    BRAID_ASSERT(false, "this owner gives established connections to another one");
  }
  // The last call: the handshake failed or the connection broke. It is closed already. Once it has
  // been established: Protocol if the peer itself did wrong, PermissionDenied if somebody else put
  // bytes in between.
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
  // Closes it, and destroys it after the callback that is being run now.
  static void discard(std::unique_ptr<ControlConnection> connection);

  bool is_connecting() const { return state_ == State::Connecting; }
  bool has_been_established() const { return handshake_ == nullptr; }
  const Peer& peer() const { return peer_; }               // once established
  const SocketAddress& remote() const { return remote_; }  // the other end of the socket
  HandshakeRole role() const { return role_; }
  const std::string& peer_braid_version() const { return peer_braid_version_; }
  const Generations& generations() const { return generations_; }
  size_t queued_bytes() const { return stream_ ? stream_->queued_bytes() : 0; }
  std::optional<uint64_t> round_trip_ns() const {
    return stream_ ? stream_->round_trip_ns() : std::nullopt;
  }
  uint64_t received_bytes() const { return received_bytes_; }  // also of unfinished frames
  // Whether the peer's kernel has acknowledged more of our numbered messages than at the last call.
  // Other frames do not count: they would show movement for as long as they are sent.
  bool has_taken_more();
  // When its owner last heard something on it.
  uint64_t heard_at_ms() const { return heard_at_ms_; }
  void set_heard_at_ms(uint64_t now_ms) { heard_at_ms_ = now_ms; }

  // `message` is a finished ControlMessage of at most kControlMessageBytesMax. ResourceExhausted:
  // the peer does not read; the connection breaks then.
  Status send(const FrameNumbers& numbers, std::span<const uint8_t> message);
  // Fails the connection as if it had broken: on_broken() follows, from within this call.
  void fail(const Status& reason);

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
  void take_frame(std::span<uint8_t> frame);
  void take_handshake_frame(std::span<const uint8_t> frame);
  void take_message(std::span<uint8_t> frame);
  void write_frame(std::span<const uint8_t> frame);

  Loop& loop_;
  const HandshakeRole role_;
  State state_;
  const SocketAddress remote_;
  std::unique_ptr<TcpStream> stream_;  // none once closed
  ControlFrameReader reader_{kHandshakeFrameBytesMax};
  std::unique_ptr<Handshake> handshake_;  // none once established
  std::unique_ptr<Timer> deadline_;       // of the handshake; once established: it is to break now
  std::optional<FrameSeal> sending_;      // once established
  std::optional<FrameSeal> receiving_;    // the same
  Peer peer_;
  std::string peer_braid_version_;
  Generations generations_;
  uint64_t heard_at_ms_ = 0;
  uint64_t received_bytes_ = 0;
  uint64_t written_bytes_ = 0;
  uint64_t messages_end_ = 0;  // of written_bytes_: behind the last numbered message
  uint64_t noted_taken_ = 0;   // of them, at the last has_taken_more()
  ControlConnectionOwner* owner_;
};

// Takes `object` out of a container of owning pointers.
template <typename Owners, typename T>
std::unique_ptr<T> take_out(Owners& owners, const T& object) {
  const auto found = std::find_if(owners.begin(), owners.end(),
                                  [&](const auto& one) { return one.get() == &object; });
  BRAID_ASSERT(found != owners.end(), "each is taken out once");
  std::unique_ptr<T> taken = std::move(*found);
  owners.erase(found);
  return taken;
}

// Destroys `object` after the callback that is being run now.
template <typename T>
void destroy_later(Loop& loop, std::unique_ptr<T> object) {
  if (object) loop.defer([held = std::shared_ptr<T>(std::move(object))] {});
}

}  // namespace braid
