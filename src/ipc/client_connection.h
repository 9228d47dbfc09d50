// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <flatbuffers/flatbuffers.h>
#include <sys/types.h>

#include "base/fd.h"
#include "base/status.h"
#include "ipc/client_server.h"
#include "ipc/frame_writer.h"
#include "ipc/message_intake.h"
#include "ipc/process_watch.h"
#include "loop/poll.h"
#include "loop/timer.h"
#include "proto/client_generated.h"

namespace braid {

// One client of the daemon: the frames on its socket, its handshake and the life of its process.
// Control loop only; owned by the ClientServer, which frees it after on_client_closed.
//
//   AwaitHello → Open       Hello with our version
//   AwaitHello → Closing    Hello with another version: the reply says what to upgrade
//   Open → PeerGone         end of the stream: its process may be about to die, a moment will tell
//   Open → Closing          close_after_send
//   PeerGone → Closed       its process died, or lives on after the moment
//   Closing → Closed        everything was sent, or the client is too slow
//   any → Closed            error, garbage, process died, queue full, no Hello in time
class ClientConnection {
 public:
  enum class State { AwaitHello, Open, PeerGone, Closing, Closed };

  ~ClientConnection();

  uint64_t id() const { return id_; }  // never used twice by one server
  const ClientCredentials& credentials() const { return credentials_; }
  const std::string& process_name() const { return process_name_; }  // as Hello gave it, shortened
  const std::string& library_version() const { return library_version_; }
  // The process has died, or closed its end of the socket: not that braidd has ended with it.
  bool has_gone() const { return has_gone_; }

  // Queues one finished ClientMessage. The descriptors are duplicated, the caller may close its own
  // at once. A client that does not read is closed when the queue is full. Nothing happens once the
  // connection is closing.
  void send(flatbuffers::FlatBufferBuilder& message, std::span<const int> fds = {});

  // Closes once everything queued was sent (or after a few seconds); nothing more is read.
  // on_client_closed still comes, later, from the loop.
  void close_after_send();

  // Nothing more is read until resume(): what comes next has to wait for something else's end.
  void hold();
  void resume();

  // Nobody asks any more why it goes: when the client closes its end, this ends at once.
  void expect_end() { is_end_expected_ = true; }

  // The message that the handler is called with, for who needs it longer.
  std::shared_ptr<const std::vector<uint8_t>> message_bytes() const { return intake_.bytes(); }

 private:
  friend class ClientServer;
  ClientConnection(ClientServer& server, uint64_t id, Fd socket, ClientCredentials credentials);

  Status start();
  void on_ready(int events);
  void on_socket_error();
  void on_process_died();
  void read_in_turn();
  // Whether there may be more to read.
  bool read_one();
  void on_read_error();
  // What a client that is gone has left behind, then the end.
  void read_the_rest(Status reason);
  void finish_reading();
  bool may_read() const {
    return !is_on_hold_ && (state_ == State::AwaitHello || state_ == State::Open);
  }
  void handle_frame();
  void handle_message();
  void handle_verified(const proto::ClientMessage& message, std::vector<Fd> fds);
  void handle_hello(const proto::ClientMessage& message);
  // Its user has given too much that nobody can close.
  void refuse_to_hear();
  void fail(const Status& reason);  // tells the client, and closes
  void tell_and_close(const Status& reason);
  void reply_to_hello(const std::string& error);
  void on_end_of_stream();
  void queue(flatbuffers::FlatBufferBuilder& message, std::span<const int> fds);
  void flush();
  void finish_and_close(Status reason);
  void watch_socket();
  void close(Status reason);
  void close_for_protocol_error(const std::string& what);
  std::string describe() const;  // "process 123 ('python3')"

  ClientServer& server_;
  const uint64_t id_;
  const ClientCredentials credentials_;
  State state_ = State::AwaitHello;
  bool was_connected_ = false;  // on_client_connected was called
  bool can_write_ = true;       // false once the client closed its end
  bool has_opened_ = false;     // OpenJob has come
  bool is_dead_ = false;        // its process
  bool has_gone_ = false;
  bool is_end_expected_ = false;
  bool is_on_hold_ = false;    // see hold()
  bool is_reading_ = false;    // in its turns; meanwhile the socket need not be watched
  int frames_left_ = 0;        // to be read of a client that is gone
  std::optional<Status> end_;  // of a client that is gone: why, once the rest is read
  int watched_events_ = 0;
  std::string process_name_;
  std::string library_version_;
  Status closing_reason_;
  Fd socket_;
  MessageIntake intake_;
  FrameWriter writer_;
  UserCharge charge_;  // this connection
  UserCharge descriptors_;
  UserCharge unread_;  // what the writer holds
  Timer deadline_;     // of the Hello; of the client's end; of the last frames' way out
  std::unique_ptr<Poll> socket_poll_;
  std::unique_ptr<ProcessWatch> process_;  // none: it cannot be watched
};

}  // namespace braid
