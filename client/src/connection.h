// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <flatbuffers/flatbuffers.h>
#include <sys/types.h>

#include "base/status.h"
#include "ipc/frame_reader.h"
#include "ipc/frame_writer.h"
#include "proto/client_generated.h"

namespace braid::client {

uint64_t now_ns();
// For poll(2): whole milliseconds until then, rounded up; 0 when it is over.
int milliseconds_until(uint64_t deadline_ns);

// `given`, else $BRAID_SOCKET, else where the packages put it. NULL: not given.
std::string socket_path_of(const char* given);

// Finishes the message that has this body.
template <typename Body>
void finish_message(flatbuffers::FlatBufferBuilder& builder, flatbuffers::Offset<Body> body) {
  builder.Finish(
      proto::CreateClientMessage(builder, proto::ClientBodyTraits<Body>::enum_value, body.Union()));
}

// A message of the daemon, checked by FlatBuffers.
struct Received {
  Frame frame;
  const proto::ClientMessage* message = nullptr;  // null: nothing has come; points into the frame
};

// The socket to the daemon. Not thread-safe: the job's mutex guards it. No call blocks but those
// with a deadline.
class Connection {
 public:
  // Connects and shakes hands.
  Status open(const std::string& path, uint64_t deadline_ns);
  // The same in pieces: begin(), then advance() until it sets `is_open`. Nothing of it yet by
  // `until_ns` is no error, but nothing by the deadline is.
  Status begin(const std::string& path, uint64_t deadline_ns);
  Status advance(uint64_t until_ns, bool& is_open);

  // Queues a message and sends what goes at once; flush() sends the rest when the socket has room.
  Status send(const flatbuffers::FlatBufferBuilder& message, std::span<const int> fds = {});
  template <typename Body>
  Status send(flatbuffers::FlatBufferBuilder& builder, flatbuffers::Offset<Body> body,
              std::span<const int> fds = {}) {
    finish_message(builder, body);
    return send(builder, fds);
  }
  Status flush();
  bool has_unsent() const { return !writer_.is_empty(); }

  // The next message if a whole one is there.
  Status receive(Received& received);
  // Waits for it; also sends what is unsent. Nothing by the deadline: DEADLINE_EXCEEDED.
  Status receive_until(uint64_t deadline_ns, Received& received);

  int fd() const { return socket_.get(); }
  const std::string& path() const { return path_; }
  // Where other nodes reach the daemon, and its number; empty: it is too old to say so.
  const std::string& daemon_address() const { return daemon_address_; }
  uint64_t daemon_node() const { return daemon_node_; }
  // Its process, as this one sees it; 0: it is in another PID namespace.
  pid_t daemon_process() const;

 private:
  enum class Stage : uint8_t { Connecting, Greeted, Open };

  Status connect(uint64_t until_ns, bool& is_connected);
  void greet();
  Status await_reply(uint64_t until_ns);
  Status take_reply(const proto::ClientMessage& message);
  Status explain_connect_error(int error) const;
  Status gone(const std::string& how) const;

  std::string path_;
  std::string daemon_address_;
  uint64_t daemon_node_ = 0;
  Stage stage_ = Stage::Connecting;
  uint64_t open_deadline_ns_ = 0;
  Status greeted_;  // a daemon that refuses us may have said why before it closed
  Fd socket_;
  uint32_t frame_bytes_max_ = kHelloFrameBytesMax;
  FrameReader reader_;
  FrameWriter writer_{2ull * kFrameBytesMax};
};

}  // namespace braid::client
