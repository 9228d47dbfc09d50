// SPDX-License-Identifier: Apache-2.0
// The part of Job that submits operations, waits for them and gives out their results.
#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "job.h"

namespace braid::client {
namespace {

constexpr uint64_t kDaemonGraceNs =
    5'000'000'000;  // how much later than the daemon the client itself gives up

uint64_t deadline_of(uint32_t timeout_ms) { return now_ns() + timeout_ms * 1'000'000ull; }

}  // namespace

Status Job::set_timeout(uint32_t timeout_ms) {
  BRAID_RETURN_IF_ERROR(check_process());
  const Lock lock(session_.mutex());
  timeouts_.set_usual_ms(timeout_ms != 0 ? timeout_ms : opened_timeout_ms_);
  return {};
}

Status Job::extend_timeout(uint32_t more_ms) {
  BRAID_RETURN_IF_ERROR(check_process());
  const Lock lock(session_.mutex());
  timeouts_.extend_ms(more_ms);
  return {};
}

Status Job::set_patience(uint32_t patience_ms) {
  BRAID_RETURN_IF_ERROR(check_process());
  patience_ms_ = patience_ms;
  return {};
}

Status Job::current_failure() {
  BRAID_RETURN_IF_ERROR(check_process());
  const Lock lock(session_.mutex());
  session_.poll_once();
  return session_.failure();
}

Status Job::submit(const braid_operation* given, braid_ticket* ticket) {
  BRAID_RETURN_IF_ERROR(check_process());
  Lock lock(session_.mutex());
  Request request;
  BRAID_RETURN_IF_ERROR(parse_operation(given, tensors_, rank_, timeouts_, request));
  if (ticket == nullptr) return Status(StatusCode::InvalidArgument, "ticket is NULL");
  if (!session_.failure().is_ok()) return session_.failure();
  BRAID_RETURN_IF_ERROR(admit(request));
  const braid_ticket number = next_ticket_++;
  const std::optional<uint64_t> last_step =
      std::exchange(tensors_.at(request.tensor).last_step, request.step);
  // References into an unordered_map stay valid while others come and go; only this call can remove
  // this one.
  Operation& operation = operations_[number];
  operation.request = std::move(request);
  operation.deadline_ns = deadline_of(operation.request.timeout_ms) + kDaemonGraceNs;

  StagedInput input;
  Status status = stage(lock, operation, input);
  if (status.is_ok()) {
    operation.state = Operation::State::InFlight;
    status = session_.push(lock, entry_of(operation, number, input),
                           std::min(deadline_of(operation.request.timeout_ms), end_of_patience()));
  }
  if (!status) {
    if (!operations_.contains(number))
      return status;  // another thread guessed the ticket of a failed job
    // The daemon has not seen it: the step may be tried again.
    Tensor& tensor = tensors_.at(operation.request.tensor);
    if (tensor.last_step == operation.request.step) tensor.last_step = last_step;
    forget(number);
    return status;
  }
  session_.wake_daemon();
  *ticket = number;
  return {};
}

Status Job::admit(const Request& request) {
  if (operations_.size() >= Session::kDoneCapacity) {
    return make_status(StatusCode::ResourceExhausted,
                       "job '{}' has {} tickets that were not released, the limit; call "
                       "braid_release for each one that is done",
                       name_, operations_.size());
  }
  const Tensor& tensor = tensors_.at(request.tensor);
  if (!tensor.last_step || request.step > *tensor.last_step) return {};
  return make_status(StatusCode::InvalidArgument,
                     "step {} of tensor '{}' comes after step {}; the steps of a tensor must grow",
                     request.step, tensor.name, *tensor.last_step);
}

// Where the daemon finds the input: where it is, if that is in an arena, else a copy of it. The
// table is always copied, to where nothing else changes it.
Status Job::stage(Lock& lock, Operation& operation, StagedInput& input) {
  const Request& request = operation.request;
  const bool reorders = request.collective == Collective::ReduceScatter && !blocks_in_rank_order_;
  bool fits = true;
  const auto found = request.input == nullptr
                         ? std::nullopt
                         : arenas_.place_of(request.input, request.input_bytes, fits);
  if (found && !fits) {
    return make_status(StatusCode::InvalidArgument,
                       "input of the {} begins in the arena, but its {} bytes end outside",
                       describe(request, tensors_), request.input_bytes);
  }
  const bool is_in_place = found && found->offset % element_bytes(request.dtype) == 0 && !reorders;
  if (is_in_place) input.place = *found;
  if (request.table.empty() && (is_in_place || request.input == nullptr)) return {};
  // Copying may take milliseconds; the mutex is for microseconds.
  std::optional<ArenaPlace> staged;
  lock.unlock();
  Status status;
  if (is_in_place) status = stage_table_beside(request, input, staged);
  if (status.is_ok() && !staged) status = stage_copies(request, input, staged);
  lock.lock();
  operation.staged = staged;
  return status;
}

// The table lies in the arena of the input; nothing is staged if there is no room for it.
Status Job::stage_table_beside(const Request& request, StagedInput& input,
                               std::optional<ArenaPlace>& staged) {
  const size_t bytes = request.table.size() * sizeof(uint64_t);
  BRAID_RETURN_IF_ERROR(arenas_.allocate_in(input.place.arena, bytes, staged));
  if (!staged) return {};
  std::memcpy(arenas_.at(*staged), request.table.data(), bytes);
  input.table = staged->offset;
  return {};
}

Status Job::stage_copies(const Request& request, StagedInput& input,
                         std::optional<ArenaPlace>& staged) {
  const uint64_t input_bytes = request.input == nullptr ? 0 : request.input_bytes;
  const size_t table_bytes = request.table.size() * sizeof(uint64_t);
  const uint64_t table_at = round_up(input_bytes, sizeof(uint64_t));
  ArenaPlace place;
  BRAID_RETURN_IF_ERROR(
      allocate_in_arenas(table_bytes == 0 ? input_bytes : table_at + table_bytes, place));
  staged = place;
  input.place = place;
  if (input_bytes != 0) copy_input(request, arenas_.at(place));
  if (table_bytes != 0) {
    input.table = place.offset + table_at;
    std::memcpy(arenas_.at(place) + table_at, request.table.data(), table_bytes);
  }
  return {};
}

void Job::copy_input(const Request& request, uint8_t* to) const {
  const auto* from = static_cast<const uint8_t*>(request.input);
  if (request.collective != Collective::ReduceScatter || blocks_in_rank_order_) {
    std::memcpy(to, from, request.input_bytes);
    return;
  }
  // The caller's blocks are in the order of ranks, the daemon's in the order of its ring.
  const uint64_t block_bytes = request.input_bytes / rank_.world_size;
  for (uint32_t r = 0; r < rank_.world_size; ++r) {
    std::memcpy(to + block_of_rank_[r] * block_bytes, from + r * block_bytes, block_bytes);
  }
}

proto::SubmitEntry Job::entry_of(const Operation& operation, braid_ticket ticket,
                                 const StagedInput& input) {
  const Request& request = operation.request;
  proto::SubmitEntry entry{};
  entry.kind = static_cast<uint8_t>(proto::SubmitKind::Operation);
  entry.collective = static_cast<uint8_t>(request.collective);
  entry.dtype = static_cast<uint8_t>(request.dtype);
  entry.reduction = static_cast<uint8_t>(request.reduction);
  entry.tensor = request.tensor;
  entry.ticket = ticket;
  entry.step = request.step;
  entry.count = request.count;
  entry.root = request.root;
  entry.timeout_ms = request.timeout_ms;
  entry.arena = input.place.arena;
  entry.offset = input.place.offset;
  entry.table = input.table;
  return entry;
}

void Job::forget(braid_ticket ticket) {
  const auto found = operations_.find(ticket);
  if (found == operations_.end()) return;
  release_staged(found->second);
  operations_.erase(found);
}

void Job::release_staged(Operation& operation) {
  if (operation.staged) arenas_.release(*operation.staged);
  operation.staged.reset();
}

Status Job::on_done(const proto::DoneEntry& entry) {
  const auto found = operations_.find(entry.ticket);
  if (found == operations_.end() || found->second.state != Operation::State::InFlight) {
    return make_status(StatusCode::Protocol, "braidd completed ticket {}, which is not in flight",
                       entry.ticket);
  }
  Operation& operation = found->second;
  if (entry.result_bytes != operation.request.result_bytes ||
      !range_fits(entry.result_offset, entry.result_bytes, results_.size())) {
    return make_status(StatusCode::Protocol,
                       "braidd put the result of the {} at offset {} with {} bytes; expected were "
                       "{} within memory of {}",
                       describe(operation.request, tensors_), entry.result_offset,
                       entry.result_bytes, operation.request.result_bytes, results_.size());
  }
  operation.state = Operation::State::Done;
  timeouts_.take_back_ms(operation.request.extension_ms);
  operation.result_offset = entry.result_offset;
  release_staged(operation);
  return {};
}

Status Job::find(braid_ticket ticket, Operation*& operation) {
  const auto found = operations_.find(ticket);
  if (found == operations_.end() || found->second.state == Operation::State::Preparing) {
    return make_status(StatusCode::NotFound,
                       "ticket {} is unknown: it was released, or never given out", ticket);
  }
  operation = &found->second;
  return {};
}

Status Job::test(braid_ticket ticket, int* done) {
  BRAID_RETURN_IF_ERROR(check_process());
  if (done == nullptr) return Status(StatusCode::InvalidArgument, "done is NULL");
  *done = 0;
  const Lock lock(session_.mutex());
  Operation* operation = nullptr;
  BRAID_RETURN_IF_ERROR(find(ticket, operation));
  if (operation->state != Operation::State::Done) session_.poll_once();
  if (operation->state == Operation::State::Done) {
    *done = 1;
    return {};
  }
  if (!session_.failure().is_ok()) {
    *done = 1;
    return session_.failure();
  }
  if (now_ns() < operation->deadline_ns) return {};
  *done = 1;
  return overdue(*operation, 0);
}

Status Job::wait(braid_ticket ticket, uint32_t timeout_ms) {
  BRAID_RETURN_IF_ERROR(check_process());
  Lock lock(session_.mutex());
  Operation* operation = nullptr;
  BRAID_RETURN_IF_ERROR(find(ticket, operation));
  uint64_t deadline_ns = operation->deadline_ns;
  if (timeout_ms != 0) deadline_ns = std::min(deadline_ns, deadline_of(timeout_ms));
  // While this thread waits another one may release the ticket.
  session_.wait_until(lock, deadline_ns, [&] {
    const auto found = operations_.find(ticket);
    return found == operations_.end() || found->second.state == Operation::State::Done;
  });
  BRAID_RETURN_IF_ERROR(find(ticket, operation));
  if (operation->state == Operation::State::Done) return {};
  if (!session_.failure().is_ok()) return session_.failure();
  return overdue(*operation, timeout_ms);
}

Status Job::overdue(const Operation& operation, uint32_t timeout_ms) const {
  const std::string what = describe(operation.request, tensors_);
  if (now_ns() >= operation.deadline_ns) {
    return make_status(StatusCode::DeadlineExceeded,
                       "braidd at '{}' does not answer: the {} should have ended after {} ms",
                       session_.socket_path(), what, operation.request.timeout_ms);
  }
  return make_status(StatusCode::DeadlineExceeded, "the {} is still in flight after {} ms{}", what,
                     timeout_ms, session_.silence());
}

Status Job::find_result(braid_ticket ticket, Operation*& operation) {
  BRAID_RETURN_IF_ERROR(find(ticket, operation));
  if (operation->state != Operation::State::Done) session_.poll_once();
  if (operation->state == Operation::State::Done) return {};
  if (!session_.failure().is_ok()) return session_.failure();
  return make_status(StatusCode::InvalidArgument, "the {} is still in flight: wait for it first",
                     describe(operation->request, tensors_));
}

Status Job::result(braid_ticket ticket, const void** data, size_t* bytes) {
  BRAID_RETURN_IF_ERROR(check_process());
  if (data == nullptr || bytes == nullptr) {
    return make_status(StatusCode::InvalidArgument, "{} is NULL",
                       data == nullptr ? "data" : "bytes");
  }
  const Lock lock(session_.mutex());
  Operation* operation = nullptr;
  BRAID_RETURN_IF_ERROR(find_result(ticket, operation));
  if (operation->request.collective == Collective::AllGather) {
    return Status(StatusCode::InvalidArgument,
                  "the blocks of an all-gather are not in the order of ranks: use "
                  "braid_result_of_rank or braid_copy_result");
  }
  *bytes = operation->request.result_bytes;
  *data = *bytes == 0 ? nullptr : results_.data() + operation->result_offset;
  return {};
}

Status Job::result_of_rank(braid_ticket ticket, uint32_t rank, const void** data, size_t* bytes) {
  BRAID_RETURN_IF_ERROR(check_process());
  if (data == nullptr || bytes == nullptr) {
    return make_status(StatusCode::InvalidArgument, "{} is NULL",
                       data == nullptr ? "data" : "bytes");
  }
  const Lock lock(session_.mutex());
  Operation* operation = nullptr;
  BRAID_RETURN_IF_ERROR(find_result(ticket, operation));
  if (operation->request.collective != Collective::AllGather || rank >= rank_.world_size) {
    return make_status(
        StatusCode::InvalidArgument,
        "the {} has no block of rank {} (only an all-gather has blocks, of ranks 0 to {})",
        describe(operation->request, tensors_), rank, rank_.world_size - 1);
  }
  *bytes = operation->request.input_bytes;
  *data = results_.data() + operation->result_offset + block_of_rank_[rank] * *bytes;
  return {};
}

Status Job::copy_result(braid_ticket ticket, void* out, size_t bytes) {
  BRAID_RETURN_IF_ERROR(check_process());
  Lock lock(session_.mutex());
  Operation* operation = nullptr;
  BRAID_RETURN_IF_ERROR(find_result(ticket, operation));
  const Request& request = operation->request;
  if (bytes != request.result_bytes || (out == nullptr && bytes != 0)) {
    return make_status(StatusCode::InvalidArgument, "out has {} bytes; the result of the {} has {}",
                       out == nullptr ? 0 : bytes, describe(request, tensors_),
                       request.result_bytes);
  }
  const uint8_t* from = results_.data() + operation->result_offset;
  auto* to = static_cast<uint8_t*>(out);
  const bool reorders = request.collective == Collective::AllGather && !blocks_in_rank_order_;
  const uint64_t block_bytes = request.input_bytes;
  lock.unlock();  // the result is the caller's until braid_release
  if (!reorders) {
    if (bytes != 0) std::memcpy(to, from, bytes);
    return {};
  }
  for (uint32_t r = 0; r < rank_.world_size; ++r) {
    std::memcpy(to + r * block_bytes, from + block_of_rank_[r] * block_bytes, block_bytes);
  }
  return {};
}

Status Job::release(braid_ticket ticket) {
  BRAID_RETURN_IF_ERROR(check_process());
  Lock lock(session_.mutex());
  Operation* operation = nullptr;
  BRAID_RETURN_IF_ERROR(find(ticket, operation));
  if (operation->state != Operation::State::Done) session_.poll_once();
  const bool failed = !session_.failure().is_ok();
  if (operation->state != Operation::State::Done && !failed) {
    return make_status(StatusCode::InvalidArgument,
                       "the {} is still in flight: wait for it before it is released",
                       describe(operation->request, tensors_));
  }
  forget(ticket);
  if (failed) return {};
  // The daemon need not wake up for this: it sees it with the next operation.
  proto::SubmitEntry entry{};
  entry.kind = static_cast<uint8_t>(proto::SubmitKind::Release);
  entry.ticket = ticket;
  session_.push_when_possible(entry);
  lock.unlock();
  arenas_.give_back_idle(now_ns());
  return {};
}

Status Job::take(braid_ticket ticket, uint32_t timeout_ms, void* out, size_t bytes) {
  BRAID_RETURN_IF_ERROR(wait(ticket, timeout_ms));
  BRAID_RETURN_IF_ERROR(copy_result(ticket, out, bytes));
  return release(ticket);
}

}  // namespace braid::client
