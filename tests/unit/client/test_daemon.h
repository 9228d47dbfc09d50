// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "ipc/client_connection.h"
#include "ipc/client_server.h"
#include "ipc/daemon_rings.h"
#include "ipc/extent_allocator.h"
#include "ipc/shared_memory.h"
#include "loop/door.h"
#include "loop/loop.h"

namespace braid {

// What the job layer is in the real daemon, for jobs in which only one rank speaks: results are
// that rank's inputs, and of an all-gather only its own block is filled. On its own thread, behind
// the real ClientServer and DaemonRings.
class TestDaemon final : public ClientHandler {
 public:
  struct Options {
    std::string path = {};
    std::string address = "10.0.0.1";
    std::vector<uint32_t> block_of_rank = {0};
    uint64_t result_bytes = 64 << 20;
    std::string open_failure = {};  // not empty: OpenJob is refused with this (MISMATCH)
    std::string refused_tensor =
        {};  // a registration that begins with this name is refused (MISMATCH)
    std::string refused_memory = {};  // not empty: RegisterMemory is refused with this (MISMATCH)
    uint32_t arenas_skipped = 0;      // further ones get numbers that are too high by so many
    bool answers_open = true;
    bool answers_leave = true;
    uint8_t polling = 0;  // PollingMode, or what is none
    bool lets_poll = false;
    bool takes_work = false;
    uint32_t nodes = 0;
  };

  // What clients have sent.
  struct Seen {
    uint32_t weight = 0;  // of the last OpenJob, as the next two
    std::string token;
    uint64_t master_node = 0;
    std::string reason;                          // of the last LeaveJob
    std::pair<uint32_t, uint32_t> unregistered;  // first handle and count; 0, 0: none
    uint32_t arena = 0;                          // of the last operation
    std::vector<uint32_t> timeouts_ms;           // of all operations
    // Of the last gather, scatter or all-to-all: elements to each rank, then from each.
    std::vector<uint64_t> splits;
    std::vector<std::string> told;  // of placed work, in words
  };

  static constexpr uint64_t kNode = 0x1234;

  explicit TestDaemon(Options options);
  ~TestDaemon() override;

  // Operations stay in flight until release_held().
  void hold_operations() { holds_ = true; }
  void complete_held();
  // As if the process were stopped, and continued.
  void stop();
  void go_on();
  // Every job fails with JOB_FAILED.
  void fail_jobs(const std::string& text);
  // As if the process had ended: all sockets close. The object lives on.
  void die();
  // Whatever completion, to everybody.
  void complete(const proto::DoneEntry& entry);
  // Whatever message, to everybody.
  void send_to_all(const std::function<void(flatbuffers::FlatBufferBuilder&)>& finish,
                   std::span<const int> fds = {});

  size_t live_results();
  size_t connections() {
    return get([&] { return server_->counters().connections_open; });
  }
  uint64_t messages_sent() {
    return get([&] { return server_->counters().messages_sent; });
  }
  std::vector<uint64_t> arenas();  // bytes of each that the last job has
  Seen seen() {
    return get([&] { return seen_; });
  }

 private:
  struct Session {
    ClientConnection* connection = nullptr;
    std::vector<SharedMemory> arenas;
    SharedMemory results;
    ExtentAllocator extents{0};
    std::unique_ptr<DaemonRings> rings;
    uint32_t rank = 0;
    uint32_t world_size = 1;
    uint32_t tensors = 0;
    std::map<uint64_t, uint64_t> offset_of_ticket;
    std::vector<proto::SubmitEntry> held;
  };

  void on_client_message(ClientConnection& connection, const proto::ClientMessage& message,
                         std::vector<Fd> fds) override;
  void on_client_closed(ClientConnection& connection, const Status& reason) override;

  void open_job(Session& session, const proto::OpenJob& open, std::vector<Fd> fds);
  void register_memory(Session& session, uint64_t bytes, Fd memory);
  void on_submit(Session& session);
  void complete(Session& session, const proto::SubmitEntry& entry);
  void complete_exchange(Session& session, const proto::SubmitEntry& entry);
  void call(std::function<void()> task);  // on the loop; returns when it is done
  template <typename Read>
  std::invoke_result_t<Read> get(Read&& read) {
    std::optional<std::invoke_result_t<Read>> got;
    call([&] { got = read(); });
    return *got;
  }

  Options options_;
  std::atomic<bool> holds_ = false;
  std::promise<void> going_on_;
  bool is_stopped_ = false;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<Door<std::function<void()>>> door_;
  std::unique_ptr<ClientServer> server_;
  std::map<uint64_t, std::unique_ptr<Session>> sessions_;
  Seen seen_;
  std::thread thread_;
};

}  // namespace braid
