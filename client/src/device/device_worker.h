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
#include <thread>
#include <vector>

#include "device/device_operation.h"
#include "device/words.h"
#include "session.h"
#include "tickets.h"

namespace braid::client {

// A piece of an operation whose copies are queued.
struct QueuedPiece {
  std::shared_ptr<DeviceOperation> operation;
  uint32_t index = 0;   // which piece of it
  uint32_t number = 0;  // Words::input_staged comes to it
  uint8_t* input = nullptr;
  bool is_in_ring = false;  // its input is to be over in order
  // Of operations whose streams wait: where the result is copied from, and what lay there before.
  uint32_t result_number = 0;
  uint8_t* result = nullptr;
  std::optional<uint32_t> result_after;
};

// The thread between a lane's streams and the daemon: it gives the daemon each piece whose input
// has come, and stages each result for the stream that waits for it. It never calls CUDA, so
// nothing that CUDA holds up (a full queue, a free that waits for the GPU) can hold up what a
// stream waits for.
//
// Once it has failed, each result that a stream waits for is bytes of 0xFF: NaN, and -1 in
// integers. All functions but the constructor's may be called from any thread.
class DeviceWorker {
 public:
  // A caller who never waits is held from here on. Each piece has a ticket, and a job has twice as
  // many of them.
  static constexpr uint32_t kPiecesMax = Session::kDoneCapacity / 2;

  // `on_failure` is called once, by the worker's thread, when the fault is of this process; it ends
  // the job.
  DeviceWorker(Tickets& tickets, const Words& words, std::function<void(const Status&)> on_failure);
  // Stops.
  ~DeviceWorker();

  // Pieces in the order of their numbers.
  void add(QueuedPiece piece);
  // Before an operation is queued: waits until fewer than kPiecesMax pieces are under way, at most
  // until `deadline_ns`. What the pieces need is all queued by then, so they end even where all
  // streams share one queue of the GPU.
  Status await_room(const DeviceRequest& request, uint64_t deadline_ns) const;
  // No stream waits in vain from now on. The first reason counts.
  void fail(Status reason);
  Status failure() const;
  // How the operation went as far as it has come.
  Status outcome(const DeviceOperation& operation) const;

  // Whether the daemon has ended piece `index` of an operation whose streams do not wait. Waits
  // until `deadline_ns`; false: it has not yet.
  Result<bool> await_piece(const DeviceOperation& operation, uint32_t index, uint64_t deadline_ns);
  // The piece is one that the daemon has.
  braid_ticket ticket_of(const DeviceOperation& operation, uint32_t index) const;
  // Nobody wants the operation's results any more.
  void release(const std::shared_ptr<DeviceOperation>& operation);

  // Fails with `reason`, and ends when no stream waits any more; after `deadline_ns` in any case.
  void stop(Status reason, uint64_t deadline_ns);

 private:
  enum class State { Working, Sleeping, AwaitingDaemon };
  struct FlyingPiece {
    QueuedPiece piece;
    braid_ticket ticket = 0;
  };

  void run();
  // It was in this state when there came something to do.
  void wake(State state);
  bool take_incoming();
  bool submit_staged();
  Status submit(const QueuedPiece& piece, braid_ticket& ticket);
  bool collect_ended();
  bool stage_results();
  bool is_input_in_use(const FlyingPiece& ended) const;
  void stage(const FlyingPiece& piece);
  bool drop_released();
  void abandon_all();
  void pause(uint64_t idle_since_ns);
  void await_daemon();
  void give_up(const Status& reason);
  // From here on the piece needs nothing of this thread but, perhaps, that its ticket is given
  // back.
  void count_end() { under_way_.fetch_sub(1, std::memory_order_relaxed); }
  bool has_work() const {
    return !staged_.empty() || !flying_.empty() || !results_.empty() || !released_.empty();
  }

  Tickets& tickets_;
  const Words words_;
  const std::function<void(const Status&)> on_failure_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<QueuedPiece> incoming_;
  std::vector<std::shared_ptr<DeviceOperation>> incoming_released_;
  State state_ = State::Working;
  Status failure_;
  bool is_stopping_ = false;
  uint64_t stop_deadline_ns_ = UINT64_MAX;
  std::atomic<bool> has_incoming_ = false;
  std::atomic<uint32_t> under_way_ = 0;  // pieces that were added and have not ended

  // For the thread alone.
  bool has_failed_ = false;
  uint64_t failed_ns_ = 0;
  std::deque<QueuedPiece> staged_;   // whose inputs the streams are to stage
  std::deque<FlyingPiece> flying_;   // of rings: which the daemon has
  std::deque<FlyingPiece> results_;  // which the daemon has ended, for streams that wait
  std::vector<std::shared_ptr<DeviceOperation>> released_;
  std::thread thread_;
};

}  // namespace braid::client
