// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/polling.h"
#include "base/status.h"
#include "connection.h"
#include "daemon_watch.h"
#include "ipc/rings.h"
#include "ipc/shared_memory.h"

namespace braid::client {

// The daemon enforces timeouts and says what was missing; only when it hangs, the client gives up
// by itself, this much later.
constexpr uint64_t kDaemonGraceNs = 5'000'000'000;

// The lock of `mutex`, unless it is held until the deadline, perhaps by this very thread.
std::unique_lock<std::mutex> lock_until(std::mutex& mutex, uint64_t deadline_ns);

// What passes between one job of this process and the daemon: the socket, the two rings, and the
// threads that wait for either.
//
// There is no background thread. One of the threads that wait is the leader: it sleeps in poll(2)
// on the socket and the done ring's wake-up, the others on a condition variable. The leader hands
// out whatever comes, and when it has what it waited for, another one becomes leader. Before it
// sleeps it may look at the done ring for a short time (PollingPolicy), where the daemon says that
// this pays. mutex() guards everything
// here, and the job's own state.
class Session {
 public:
  // Entries of the rings. Every ticket that is not released yet has a place in the done ring, so it
  // cannot overflow.
  static constexpr uint32_t kSubmitCapacity = 8192;
  static constexpr uint32_t kDoneCapacity = 8192;

  // `on_done` gets every completion, with the mutex held; its error ends the session.
  using OnDone = std::function<Status(const proto::DoneEntry&)>;

  explicit Session(std::string job_name) : job_name_(std::move(job_name)) {}

  const std::string& job_name() const { return job_name_; }

  // The rings, before the job is opened: their descriptors go to the daemon.
  Status create_rings();
  int rings_fd() const { return rings_.fd(); }
  int submit_wake_fd() const { return submit_wake_.get(); }
  // The daemon's wake-ups come over it.
  void set_done_wake(Fd done_wake) { done_wake_ = std::move(done_wake); }

  // Without threads yet, until begin().
  Connection& connection() { return connection_; }
  const std::string& socket_path() const { return connection_.path(); }
  // For the error of a wait that is over: "; braidd … has not answered for …", or empty.
  std::string silence() const;
  void begin(OnDone on_done) { on_done_ = std::move(on_done); }
  // How threads that wait do it: the daemon says so.
  void set_polling(PollingMode mode) { polling_ = PollingPolicy(mode); }

  // When a call that waits for the daemon has no patience left. 0: there is no limit. Any thread.
  void set_patience(uint32_t patience_ms) { patience_ms_ = patience_ms; }
  uint64_t end_of_patience() const;

  std::mutex& mutex() { return mutex_; }

  // From here on: with the mutex held, by `lock` where there is one.

  // Handles what has come, without waiting.
  void poll_once();
  // Waits until is_over(), failure or the deadline (then false).
  bool wait_until(std::unique_lock<std::mutex>& lock, uint64_t deadline_ns,
                  const std::function<bool()>& is_over);
  // All threads that wait look whether it is over.
  void wake_waiting();
  // Puts the entry into the submit ring; waits while it is full. Doesn't wake the daemon.
  Status push(std::unique_lock<std::mutex>& lock, const proto::SubmitEntry& entry,
              uint64_t deadline_ns);
  // The same without waiting: where the ring is full the entry goes in later, with
  // the next call. For releases, of which each ticket has one.
  void push_when_possible(const proto::SubmitEntry& entry);
  // Until all of those are in the ring.
  Status push_all_kept(std::unique_lock<std::mutex>& lock, uint64_t deadline_ns);
  void wake_daemon();
  // Sends one of the messages that have an answer, which may come from then on. None after
  // LeaveJob. One registration (RegisterTensors, UnregisterTensors, RegisterMemory) at a time.
  template <typename Body>
  Status ask(flatbuffers::FlatBufferBuilder& builder, flatbuffers::Offset<Body> question,
             std::span<const int> fds = {}) {
    finish_message(builder, question);
    return ask(proto::ClientBodyTraits<Body>::enum_value, builder, fds);
  }

  // Sends a message that has no answer, and that may be lost: if the socket has no room now, it is.
  template <typename Body>
  Status tell(flatbuffers::FlatBufferBuilder& builder, flatbuffers::Offset<Body> body) {
    finish_message(builder, body);
    return tell(builder);
  }

  // Once it is an error nothing goes in or out any more.
  const Status& failure() const { return failure_; }
  // The first reason counts. Returns it.
  const Status& fail(Status reason);

  // The daemon's answer to RegisterTensors, UnregisterTensors or RegisterMemory.
  struct Registration {
    Status refusal;       // of this registration only: the job goes on
    uint32_t number = 0;  // the first tensor's handle, or the arena's number
  };
  std::optional<Registration> take_registration() {
    return std::exchange(registration_, std::nullopt);
  }
  bool has_registration() const { return registration_.has_value(); }
  bool has_left() const { return has_left_; }

 private:
  Status ask(proto::ClientBody question, const flatbuffers::FlatBufferBuilder& message,
             std::span<const int> fds);
  Status tell(const flatbuffers::FlatBufferBuilder& message);
  void drain_done();
  void push_kept();
  Status ring_stayed_full() const;
  void receive_messages();
  void handle(const proto::ClientMessage& message);
  void answer_registration(Registration answer);
  bool poll_done_ring(std::unique_lock<std::mutex>& lock, uint64_t deadline_ns);
  void lead(std::unique_lock<std::mutex>& lock, int timeout_ms);
  void watch_daemon();

  const std::string job_name_;
  std::atomic<uint32_t> patience_ms_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;  // an operation ended, a message came, the leader left
  bool has_leader_ = false;
  PollingPolicy polling_;
  Connection connection_;
  DaemonWatch watch_;
  SharedMemory rings_;
  Fd submit_wake_;
  Fd done_wake_;
  Fd leader_wake_;  // for the other threads
  RingProducer<proto::SubmitEntry> submit_;
  std::deque<proto::SubmitEntry> kept_;  // for which the submit ring had no room; at most
                                         // kDoneCapacity
  RingConsumer<proto::DoneEntry> done_;
  OnDone on_done_;
  Status failure_;
  proto::ClientBody registration_asked_ = proto::ClientBody::NONE;  // what waits for its answer
  std::optional<Registration> registration_;
  bool awaits_leave_ = false;
  bool has_left_ = false;
};

// What a Failure or RegistrationRefused says.
Status daemon_error(uint8_t code, const flatbuffers::String* text);

}  // namespace braid::client
