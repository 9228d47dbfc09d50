// SPDX-License-Identifier: Apache-2.0
#include "device/device_worker.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <pthread.h>
#include <time.h>

#include "connection.h"
#include "device/staging_ring.h"

namespace braid::client {
namespace {

// How long the thread looks at words again and again before it sleeps between two looks, and for
// how long it then sleeps: a wake-up costs about as much as the shorter time.
constexpr uint64_t kLookNs = 50'000;
constexpr uint64_t kSleepNsMin = 20'000;
constexpr uint64_t kSleepNsMax = 100'000;
constexpr uint64_t kAwaitNs = 1'000'000'000;  // then it looks whether all is well
// How long after a failure the GPU may take to come to the copies that were queued before it.
constexpr uint64_t kInputGraceNs = 1'000'000'000;
constexpr uint64_t kStopNs = 2'000'000'000;
constexpr uint64_t kRoomPauseNs = 20'000;
constexpr int kFailedByte = 0xFF;  // NaN in every type of floats

std::chrono::steady_clock::time_point wake_time(uint64_t deadline_ns) {
  constexpr uint64_t kLongestNs = 3'600'000'000'000;
  return std::chrono::steady_clock::time_point(
      std::chrono::nanoseconds(std::min(deadline_ns, now_ns() + kLongestNs)));
}

void sleep_ns(uint64_t nanoseconds) {
  const timespec pause = {0, static_cast<long>(nanoseconds)};
  (void)::nanosleep(&pause, nullptr);
}

}  // namespace

DeviceWorker::DeviceWorker(Tickets& tickets, const Words& words,
                           std::function<void(const Status&)> on_failure)
    : tickets_(tickets), words_(words), on_failure_(std::move(on_failure)) {
  thread_ = std::thread([this] { run(); });
  (void)::pthread_setname_np(thread_.native_handle(), "braid-device");
}

DeviceWorker::~DeviceWorker() {
  stop(Status(StatusCode::Cancelled, "the job was closed"), now_ns() + kStopNs);
  thread_.join();
}

void DeviceWorker::add(QueuedPiece piece) {
  under_way_.fetch_add(1, std::memory_order_relaxed);
  State state = State::Working;
  {
    const std::lock_guard lock(mutex_);
    incoming_.push_back(std::move(piece));
    has_incoming_ = true;
    state = state_;
  }
  wake(state);
}

void DeviceWorker::wake(State state) {
  if (state == State::Sleeping) changed_.notify_all();
  if (state == State::AwaitingDaemon) tickets_.interrupt();
}

Status DeviceWorker::await_room(const DeviceRequest& request, uint64_t deadline_ns) const {
  while (under_way_.load(std::memory_order_relaxed) >= kPiecesMax) {
    BRAID_RETURN_IF_ERROR(failure());
    if (now_ns() >= deadline_ns) {
      return make_status(StatusCode::DeadlineExceeded,
                         "the {}: {} pieces of earlier operations are under way, the limit, and "
                         "none has ended in its time",
                         request.text, kPiecesMax);
    }
    sleep_ns(kRoomPauseNs);
  }
  return {};
}

void DeviceWorker::fail(Status reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.is_ok()) return;
    failure_ = std::move(reason);
    has_incoming_ = true;
  }
  changed_.notify_all();
  tickets_.interrupt();
}

Status DeviceWorker::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

Status DeviceWorker::outcome(const DeviceOperation& operation) const {
  const std::lock_guard lock(mutex_);
  return operation.failure;
}

Result<bool> DeviceWorker::await_piece(const DeviceOperation& operation, uint32_t index,
                                       uint64_t deadline_ns) {
  braid_ticket ticket = 0;
  {
    std::unique_lock lock(mutex_);
    const auto is_over = [&] { return operation.tickets[index] != 0 || !failure_.is_ok(); };
    while (!is_over() && now_ns() < deadline_ns) changed_.wait_until(lock, wake_time(deadline_ns));
    ticket = operation.tickets[index];
    if (ticket == 0 && !failure_.is_ok()) return failure_;
    if (ticket == 0) return false;
  }
  return tickets_.await(ticket, deadline_ns, [] { return false; });
}

braid_ticket DeviceWorker::ticket_of(const DeviceOperation& operation, uint32_t index) const {
  const std::lock_guard lock(mutex_);
  return operation.tickets[index];
}

void DeviceWorker::release(const std::shared_ptr<DeviceOperation>& operation) {
  State state = State::Working;
  {
    const std::lock_guard lock(mutex_);
    incoming_released_.push_back(operation);
    has_incoming_ = true;
    state = state_;
  }
  wake(state);
}

void DeviceWorker::stop(Status reason, uint64_t deadline_ns) {
  fail(std::move(reason));
  std::unique_lock lock(mutex_);
  is_stopping_ = true;
  stop_deadline_ns_ = std::min(stop_deadline_ns_, deadline_ns);
  has_incoming_ = true;
  changed_.notify_all();
}

void DeviceWorker::run() {
  uint64_t idle_since_ns = now_ns();
  while (take_incoming()) {
    bool has_moved = submit_staged();
    has_moved = collect_ended() || has_moved;
    has_moved = stage_results() || has_moved;
    has_moved = drop_released() || has_moved;
    if (has_moved) {
      idle_since_ns = now_ns();
    } else if (has_work()) {
      pause(idle_since_ns);
    }
  }
  // What a stream still waits for has no room, because the GPU stands still.
  if (!results_.empty()) words_.result_staged.store(results_.back().piece.result_number);
}

// Sleeps while there is nothing to do. False: it is time to end.
bool DeviceWorker::take_incoming() {
  if (has_work() && !has_incoming_) return true;
  Status failure;
  {
    std::unique_lock lock(mutex_);
    state_ = State::Sleeping;
    changed_.wait(lock, [&] { return has_work() || has_incoming_; });
    state_ = State::Working;
    has_incoming_ = false;
    std::ranges::move(incoming_, std::back_inserter(staged_));
    incoming_.clear();
    std::ranges::move(incoming_released_, std::back_inserter(released_));
    incoming_released_.clear();
    failure = failure_;
    const bool is_over = !has_work() || now_ns() >= stop_deadline_ns_;
    if (is_stopping_ && has_failed_ && is_over) return false;
    if (is_stopping_) has_incoming_ = true;
  }
  if (!failure.is_ok()) give_up(failure);
  return true;
}

bool DeviceWorker::submit_staged() {
  bool has_moved = false;
  while (!staged_.empty() && !has_failed_) {
    const QueuedPiece& piece = staged_.front();
    const DeviceRequest& request = piece.operation->request;
    if (!has_reached(words_.input_staged.load(), piece.number)) {
      if (now_ns() < request.deadline_ns) break;
      give_up(make_status(StatusCode::DeadlineExceeded,
                          "the {}: the GPU has not come to it in the time of the operation; what "
                          "was queued on its stream before it has not ended",
                          request.text));
      return true;
    }
    // After the word: what comes when all is over is no input.
    if (const Status reason = failure(); !reason.is_ok()) {
      give_up(reason);
      return true;
    }
    braid_ticket ticket = 0;
    if (Status status = submit(piece, ticket); !status) {
      give_up(status);
      return true;
    }
    {
      const std::lock_guard lock(mutex_);
      piece.operation->tickets[piece.index] = ticket;
    }
    if (!request.stream_waits) changed_.notify_all();
    if (piece.is_in_ring) {
      flying_.push_back({piece, ticket});
    } else {
      count_end();
    }
    staged_.pop_front();
    has_moved = true;
  }
  return has_moved;
}

Status DeviceWorker::submit(const QueuedPiece& piece, braid_ticket& ticket) {
  const DeviceRequest& request = piece.operation->request;
  braid_operation operation = request.operation;
  const uint64_t now = now_ns();
  const uint64_t left_ms = now < request.deadline_ns ? (request.deadline_ns - now) / 1'000'000 : 0;
  operation.timeout_ms = static_cast<uint32_t>(std::max<uint64_t>(left_ms, 1));
  operation.input = piece.input;
  if (request.update) operation.update = &*request.update;
  if (!request.splits.empty()) {
    operation.input_splits = request.splits.data();
    operation.output_splits = request.splits.data() + request.splits.size() / 2;
  }
  if (request.is_dynamic) {
    operation.step += piece.index;
    operation.count = request.pieces[piece.index].count;
  }
  return tickets_.submit(&operation, &ticket);
}

// In order: the ring's memory is used again in order.
bool DeviceWorker::collect_ended() {
  bool has_moved = false;
  while (!flying_.empty() && !has_failed_) {
    FlyingPiece& flying = flying_.front();
    int done = 0;
    if (Status status = tickets_.test(flying.ticket, &done); !status) {
      give_up(status);
      return true;
    }
    if (done == 0) break;
    words_.input_over.store(flying.piece.number);
    ++flying.piece.operation->collected;
    if (flying.piece.operation->request.stream_waits) {
      results_.push_back(std::move(flying));
    } else {
      count_end();
    }
    flying_.pop_front();
    has_moved = true;
  }
  return has_moved;
}

bool DeviceWorker::stage_results() {
  bool has_moved = false;
  while (!results_.empty()) {
    const FlyingPiece& ended = results_.front();
    const auto& after = ended.piece.result_after;
    if (after && !has_reached(words_.result_over.load(), *after)) break;
    if (is_input_in_use(ended)) break;
    stage(ended);
    words_.result_staged.store(ended.piece.result_number);
    results_.pop_front();
    count_end();
    has_moved = true;
  }
  return has_moved;
}

// The result may lie where the input does, and in two levels NCCL may still be writing that.
bool DeviceWorker::is_input_in_use(const FlyingPiece& ended) const {
  return has_failed_ && !has_reached(words_.input_staged.load(), ended.piece.number) &&
         now_ns() < failed_ns_ + kInputGraceNs;
}

void DeviceWorker::stage(const FlyingPiece& ended) {
  const QueuedPiece& piece = ended.piece;
  const uint64_t bytes = piece.operation->request.pieces[piece.index].result.bytes();
  if (!has_failed_) {
    Status status;
    if (bytes != 0) status = tickets_.copy_result(ended.ticket, piece.result, bytes);
    if (status) status = tickets_.release(ended.ticket);
    if (status) return;
    give_up(status);
  }
  if (ended.ticket != 0) (void)tickets_.release(ended.ticket);
  if (bytes != 0) std::memset(piece.result, kFailedByte, bytes);
  const std::lock_guard lock(mutex_);
  if (piece.operation->failure.is_ok()) piece.operation->failure = failure_;
}

// The tickets of operations that nobody wants any more, as far as the daemon has ended them.
bool DeviceWorker::drop_released() {
  bool has_moved = false;
  std::erase_if(released_, [&](const std::shared_ptr<DeviceOperation>& operation) {
    const size_t pieces = operation->tickets.size();
    const bool is_collected = !operation->request.is_dynamic || operation->collected == pieces;
    if (!is_collected && !has_failed_) return false;
    while (operation->dropped < pieces) {
      const braid_ticket ticket = operation->tickets[operation->dropped];
      if (ticket == 0 && !has_failed_) return false;
      if (ticket != 0 && !tickets_.release(ticket) && !has_failed_) return false;
      ++operation->dropped;
      has_moved = true;
    }
    return true;
  });
  return has_moved;
}

void DeviceWorker::give_up(const Status& reason) {
  if (!has_failed_) {
    fail(reason);
    has_failed_ = true;
    failed_ns_ = now_ns();
    on_failure_(reason);
  }
  abandon_all();
}

// Every piece becomes a result, in their order; the stream of inputs waits for none any more.
void DeviceWorker::abandon_all() {
  const auto abandon = [&](QueuedPiece piece, braid_ticket ticket) {
    if (piece.is_in_ring) words_.input_over.store(piece.number);
    if (piece.operation->request.stream_waits) {
      results_.push_back({std::move(piece), ticket});
    } else {
      count_end();
    }
  };
  for (FlyingPiece& flying : flying_) abandon(std::move(flying.piece), flying.ticket);
  flying_.clear();
  for (QueuedPiece& piece : staged_) abandon(std::move(piece), 0);
  staged_.clear();
}

// Nothing has moved. The words change without a sign, what the daemon ends has one.
void DeviceWorker::pause(uint64_t idle_since_ns) {
  if (staged_.empty() && results_.empty() && released_.empty()) return await_daemon();
  const uint64_t idle_ns = now_ns() - idle_since_ns;
  if (idle_ns < kLookNs) return;
  sleep_ns(std::clamp(idle_ns / 8, kSleepNsMin, kSleepNsMax));
}

void DeviceWorker::await_daemon() {
  {
    const std::lock_guard lock(mutex_);
    if (has_incoming_) return;
    state_ = State::AwaitingDaemon;
  }
  (void)tickets_.await(flying_.front().ticket, now_ns() + kAwaitNs,
                       [this] { return has_incoming_.load(); });
  const std::lock_guard lock(mutex_);
  state_ = State::Working;
}

}  // namespace braid::client
