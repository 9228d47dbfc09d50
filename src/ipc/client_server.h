// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <flatbuffers/flatbuffers.h>
#include <sys/types.h>

#include "base/fd.h"
#include "base/lifetime.h"
#include "base/status.h"
#include "ipc/descriptor_closer.h"
#include "ipc/unix_listener.h"
#include "ipc/user_quotas.h"
#include "loop/loop.h"
#include "loop/poll.h"
#include "loop/timer.h"
#include "loop/user_turns.h"
#include "loop/user_work.h"

namespace braid::proto {
struct ClientMessage;
}

namespace braid {

class ClientConnection;

// Who connected, by the kernel's word. pid is 0 for a process in a pid namespace that we cannot
// see.
struct ClientCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

// What the server tells its user, on the control loop. The connection stays valid until
// on_client_closed returns.
class ClientHandler {
 public:
  virtual ~ClientHandler() = default;
  // After the handshake.
  virtual void on_client_connected(ClientConnection&) {}
  // Any message but Hello and HelloReply; verified by FlatBuffers, its body is not null.
  // Descriptors: those of an OpenJob, of the kinds that belong to it, so nothing they do blocks;
  // else none.
  virtual void on_client_message(ClientConnection& connection, const proto::ClientMessage& message,
                                 std::vector<Fd> fds) = 0;
  // Exactly once for each on_client_connected, never from within a call of the handler's own into
  // the connection.
  virtual void on_client_closed(ClientConnection& connection, const Status& reason) = 0;
};

struct ClientServerOptions {
  std::string path;      // client.socket
  std::string group;     // client.group; empty: the daemon's own
  uint32_t mode = 0660;  // of the socket: members of the group may train
  // Told to clients in the handshake.
  std::string node_name;
  std::string daemon_version;
  std::string address;  // where other nodes reach this daemon
  uint64_t node = 0;    // its NodeId
  uint32_t connections_max = 4096;
  uint32_t hello_timeout_ms = 5000;             // from accept to a whole Hello
  uint32_t linger_timeout_ms = 5000;            // from close_after_send to the close
  uint64_t send_queue_bytes_max = 64ull << 20;  // per connection
  std::shared_ptr<UserQuotas> quotas{};         // none: users are not told apart
  // With so many of clients' descriptors to be closed nobody is accepted: the sockets of those who
  // are refused may have to be closed by the same threads.
  size_t descriptors_closing_max = 2 * DescriptorCloser::kWaitingMax;
  std::function<void(Fd)> close_descriptor = [](Fd) {};  // see DescriptorCloser
  // Checks large messages, and outlives the server; none: the loop checks them.
  WorkThread* worker = nullptr;
  const Clock* clock = nullptr;  // of the time that reading takes; none: the system's
};

struct ClientServerCounters {
  uint64_t connections_open = 0;
  uint64_t connections_refused = 0;  // too many of all or of a user, or of descriptors
  uint64_t handshakes_timed_out = 0;
  uint64_t version_mismatches = 0;
  uint64_t protocol_errors = 0;  // garbage, oversized frames, Hello twice, …
  uint64_t messages_received = 0;
  uint64_t messages_sent = 0;
  uint64_t descriptors_closing = 0;  // of clients, that are not closed yet
};

// The daemon's Unix socket: listens, shakes hands, and hands messages with their descriptors to the
// handler. Messages are read in turns, one of each user, and for a millisecond in a round of the
// loop: so however many one user's processes send, others are heard. What is in a large message is
// checked by another thread; meanwhile nothing else is read of its sender. Control loop only.
// Destroying it closes every connection without telling the handler, and removes the socket.
class ClientServer {
 public:
  // The handler must outlive the server.
  static Result<std::unique_ptr<ClientServer>> create(Loop& loop, ClientServerOptions options,
                                                      ClientHandler& handler);
  ~ClientServer();

  // Removes the socket from the file system; connections that are open live on.
  void stop_accepting();
  ClientServerCounters counters() const;
  // nullptr: it has closed meanwhile.
  ClientConnection* find(uint64_t id);

 private:
  friend class ClientConnection;
  ClientServer(Loop& loop, ClientServerOptions options, ClientHandler& handler);

  Status start();
  void accept_some();
  void accept_one(Fd socket);
  void refuse(Fd socket, uid_t owner, const std::string& error);
  // Closes a client's socket without waiting.
  void drop(Fd socket, uid_t owner);
  void pause_accepting(const std::string& reason);
  void resume_accepting();
  void on_closed(ClientConnection& connection, Status reason);
  static void build_hello_reply(flatbuffers::FlatBufferBuilder& builder,
                                const ClientServerOptions& options, const std::string& error);

  Loop& loop_;
  const ClientServerOptions options_;
  ClientHandler& handler_;
  ClientServerCounters counters_;
  const SystemClock system_clock_;
  UserTurns reading_;                   // a frame each
  std::unique_ptr<UserWork> checking_;  // of large messages; none: the loop does it
  DescriptorCloser closer_;
  uint64_t next_id_ = 1;
  uint64_t next_waiting_log_ms_ = 0;
  std::unordered_map<uint64_t, std::unique_ptr<ClientConnection>> connections_;
  std::unique_ptr<UnixListener> listener_;
  std::unique_ptr<Poll> listener_poll_;
  Timer resume_timer_;
  Lifetime lifetime_;  // of what is deferred
};

inline ClientConnection* ClientServer::find(uint64_t id) {
  const auto connection = connections_.find(id);
  return connection == connections_.end() ? nullptr : connection->second.get();
}

}  // namespace braid
