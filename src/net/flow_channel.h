// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/hmac.h"
#include "base/status.h"
#include "engine/link.h"
#include "proto/chunk.h"

namespace braid {

// What carries a flow's messages. Those of a flow that a node sends on are a ChunkHeader with the
// chunk's bytes one way, and an AckHeader the other way.
enum class ChannelRole : uint8_t { SendsChunks, TakesChunks };

// Told what happens on a channel, from within progress(), send() or connect(): it may only take
// note, and say more to the channel.
class FlowChannelHandler {
 public:
  virtual ~FlowChannelHandler() = default;

  // progress() has something to do.
  virtual void on_work() = 0;
  // Messages may be sent from now on.
  virtual void on_connected() = 0;
  virtual void on_channel_error(const Status& error) = 0;
  // A send that did not end within send() has ended; its memory is the caller's again.
  virtual void on_send_done(uint64_t token, const Status& status) = 0;

  // A message; `is_whole`: `payload` holds all of it, else its sender used a protocol that braid
  // does not speak. Both are valid during the call only.
  virtual void on_message(std::span<const uint8_t> header, std::span<const uint8_t> payload,
                          bool is_whole) = 0;

  // Channels that read a stream of bytes also ask, before they have all bytes of a message, what
  // its header says: how many bytes follow. An error: this is no message, and nothing that follows
  // can be.
  virtual Result<uint32_t> payload_bytes(std::span<const uint8_t> header) = 0;
  // For a payload that has not come as a whole: see ChunkSink. If its bytes can be taken in as they
  // come, on_message_taken() ends it, else on_message().
  virtual ChunkIntake intake(std::span<const uint8_t> /*header*/) { return {}; }
  virtual void fold(std::span<const uint8_t> /*header*/, uint32_t /*offset*/,
                    std::span<const uint8_t> /*piece*/) {}
  // `was_dropped`: the answer of intake() was another one before the end, so the rest was not
  // taken.
  virtual void on_message_taken(std::span<const uint8_t> /*header*/, bool /*was_dropped*/) {}
};

// What a connection looks like to the kernel, where it is a TCP socket.
struct SocketState {
  uint64_t round_trip_ns = 0;    // the kernel's smoothed one
  uint64_t segments_resent = 0;  // since the connection was made
};

// One connection to another node, of one flow. One loop only. Closing breaks the connection for
// good; sends that are on their way end from within, and nothing reads their memory any more.
class FlowChannel {
 public:
  enum class SendResult : uint8_t { Done, InProgress, Failed };

  virtual ~FlowChannel() = default;  // closes it

  // Once, before anything else.
  virtual void start(FlowChannelHandler& handler) = 0;
  // What the other node has to know to connect this channel with its own.
  virtual const std::vector<uint8_t>& address() const = 0;
  // The other node has answered with its channel's address. on_connected() or on_channel_error()
  // follows.
  virtual void connect(std::vector<uint8_t> remote_address) = 0;
  virtual bool is_connected() const = 0;
  // Sends a message. `header` and `payload` must stay until it has ended: on InProgress that is
  // when on_send_done(token) comes. Failed means that on_channel_error() was called.
  virtual SendResult send(std::span<const uint8_t> header, std::span<const uint8_t> payload,
                          uint64_t token) = 0;
  // Does a part of what can be done without waiting. False: there was nothing.
  virtual bool progress() = 0;
  // After progress() has returned false: true if on_work() tells of anything new, false if there
  // is more to do already.
  virtual bool arm() = 0;
  // The flow is open: no other connection is let in.
  virtual void shut() = 0;
  // Nothing is told any more, but sends that end.
  virtual void retire() = 0;
  virtual void close() = 0;

  // Looks whether something has come that on_work() was not called for. Only channels that may
  // miss a wake-up have to be asked.
  virtual bool may_miss_work() const { return false; }
  virtual bool find_missed_work() { return false; }

  // Nothing: it is no TCP socket of ours.
  virtual std::optional<SocketState> socket_state() const { return std::nullopt; }
};

// What a channel is made for.
struct ChannelRequest {
  size_t rail = 0;  // its place in TransportOptions::rails
  ChannelRole role = ChannelRole::SendsChunks;
  Sha256Digest proof_key{};  // both ends prove that they hold it, where strangers could connect
  // The flow's messages are encrypted with keys made from it; nothing: they travel in clear. No
  // two connections, and no two directions of one, may encrypt with the same key.
  std::optional<Sha256Digest> cipher_key;
  uint64_t token = 0;     // names the flow's generation (FlowKeys::chunk_token)
  int segment_bytes = 0;  // TCP's segments are no larger; 0: as large as the path takes
  std::vector<uint8_t> remote_address;  // TakesChunks: of the channel that is to be connected
};

// Makes the channels of one I/O loop. Made, used and destroyed on the loop's thread.
class FlowChannels {
 public:
  using Made = Result<std::unique_ptr<FlowChannel>>;

  virtual ~FlowChannels() = default;

  // The rail has had a carrier. If not yet, on_rail_here comes when it has.
  virtual bool has_rail(size_t rail) const = 0;
  virtual void set_on_rail_here(std::function<void(size_t rail)> on_rail_here) = 0;
  // `take` comes on the loop, never from within this call; without the rail it gets an error.
  virtual void make(const void* owner, ChannelRequest request, std::function<void(Made)> take) = 0;
  // This owner takes nothing any more.
  virtual void drop(const void* owner) = 0;
  // No rail comes any more. `done` comes on the loop when all channels that were destroyed until
  // now are gone.
  virtual void close(std::function<void()> done) = 0;
};

}  // namespace braid
