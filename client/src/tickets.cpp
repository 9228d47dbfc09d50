// SPDX-License-Identifier: Apache-2.0
#include "tickets.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.h"

namespace braid::client {
namespace {

uint64_t deadline_of(uint32_t timeout_ms) { return now_ns() + timeout_ms * 1'000'000ull; }

size_t table_bytes_of(const Request& request) { return request.table.size() * sizeof(uint64_t); }

// The caller's blocks are in the order of ranks, and the daemon reads them in another one.
bool reorders(const Request& request, const RankBlocks& blocks) {
  return request.collective == Collective::ReduceScatter && !blocks.are_in_rank_order();
}

// Beside the input, for the table lies in its arena; nothing is copied if there is no room.
Status copy_table(const Request& request, Arenas& arenas, StagedInput& input) {
  BRAID_RETURN_IF_ERROR(arenas.allocate_in(input.place.arena, table_bytes_of(request), input.copy));
  if (!input.copy) return {};
  std::memcpy(arenas.at(*input.copy), request.table.data(), table_bytes_of(request));
  input.table = input.copy->offset;
  return {};
}

Status copy_all(const Request& request, Registry& registry, const RankBlocks& blocks,
                StagedInput& input) {
  const uint64_t input_bytes = request.input == nullptr ? 0 : request.input_bytes;
  const size_t table_bytes = table_bytes_of(request);
  const uint64_t table_at = round_up(input_bytes, sizeof(uint64_t));
  BRAID_RETURN_IF_ERROR(
      registry.allocate(table_bytes == 0 ? input_bytes : table_at + table_bytes, input.place));
  input.copy = input.place;
  uint8_t* to = registry.arenas().at(input.place);
  const auto* from = static_cast<const uint8_t*>(request.input);
  if (input_bytes != 0 && reorders(request, blocks)) {
    blocks.copy_to_ring_order(from, to, input_bytes / blocks.count());
  } else if (input_bytes != 0) {
    std::memcpy(to, from, input_bytes);
  }
  if (table_bytes != 0) {
    input.table = input.place.offset + table_at;
    std::memcpy(to + table_at, request.table.data(), table_bytes);
  }
  return {};
}

// Puts what the daemon reads for a request where the daemon finds it: the input stays where it is
// if it lies in an arena, else it is copied into one. The table is always copied, so that nobody
// changes it. `lock` is released while this copies, for that may take milliseconds. `input.copy` is
// to be released after an error, too.
Status stage_input(const Request& request, Registry& registry, const RankBlocks& blocks,
                   std::unique_lock<std::mutex>& lock, StagedInput& input) {
  Arenas& arenas = registry.arenas();
  const bool has_input = request.input != nullptr;
  bool fits = true;
  const auto found =
      has_input ? arenas.place_of(request.input, request.input_bytes, fits) : std::nullopt;
  if (!fits) {
    return make_status(StatusCode::InvalidArgument,
                       "input of the {} begins in the arena, but its {} bytes end outside",
                       describe(request, registry.tensors()), request.input_bytes);
  }
  const bool is_in_place =
      found && found->offset % element_bytes(request.dtype) == 0 && !reorders(request, blocks);
  if (is_in_place) input.place = *found;
  if (request.table.empty() && (is_in_place || !has_input)) return {};
  lock.unlock();
  Status copied;
  if (is_in_place) copied = copy_table(request, arenas, input);
  if (copied.is_ok() && !input.copy) copied = copy_all(request, registry, blocks, input);
  lock.lock();
  return copied;
}

proto::SubmitEntry entry_of(const Operation& operation, braid_ticket ticket) {
  const Request& request = operation.request;
  proto::SubmitEntry entry{};
  entry.kind = static_cast<uint8_t>(request.kind);
  entry.collective = static_cast<uint8_t>(request.collective);
  if (!request.is_message()) entry.dtype = static_cast<uint8_t>(request.dtype);
  entry.reduction = static_cast<uint8_t>(request.reduction);
  if (!request.is_message()) entry.tensor = request.tensor;
  entry.ticket = ticket;
  entry.step = request.step;
  entry.count = request.count;
  entry.root = request.root;
  entry.timeout_ms = request.timeout_ms;
  entry.arena = operation.input.place.arena;
  entry.offset = operation.input.place.offset;
  entry.table = operation.input.table;
  return entry;
}

Status check_outputs(const void* data, const void* bytes) {
  if (data != nullptr && bytes != nullptr) return {};
  return make_status(StatusCode::InvalidArgument, "{} is NULL", data == nullptr ? "data" : "bytes");
}

}  // namespace

Tickets::Tickets(Session& session, Timeouts& timeouts, Registry& registry, Rank rank, Opened opened)
    : session_(session),
      timeouts_(timeouts),
      registry_(registry),
      rank_(rank),
      opened_(std::move(opened)) {
  session_.begin([this](const proto::DoneEntry& entry) { return on_done(entry); });
}

Status Tickets::submit(const braid_operation* given, braid_ticket* ticket) {
  Lock lock(session_.mutex());
  TensorTable& tensors = registry_.tensors();
  Request request;
  BRAID_RETURN_IF_ERROR(parse_operation(given, tensors, rank_, timeouts_, request));
  if (ticket == nullptr) return Status(StatusCode::InvalidArgument, "ticket is NULL");
  if (!session_.failure().is_ok()) return session_.failure();
  BRAID_RETURN_IF_ERROR(admit(request));
  const uint32_t tensor = request.tensor;
  const uint64_t step = request.step;
  const std::optional<uint64_t> last_step = std::exchange(tensors.at(tensor).last_step, step);
  Status given_to_daemon = give(lock, std::move(request), ticket);
  // Else the daemon has not seen it: the step may be tried again.
  if (!given_to_daemon && tensors.at(tensor).last_step == step)
    tensors.at(tensor).last_step = last_step;
  return given_to_daemon;
}

Status Tickets::submit_message(const braid_message* given, proto::SubmitKind kind,
                               braid_ticket* ticket) {
  Lock lock(session_.mutex());
  Request request;
  BRAID_RETURN_IF_ERROR(parse_message(given, kind, rank_, timeouts_, request));
  if (ticket == nullptr) return Status(StatusCode::InvalidArgument, "ticket is NULL");
  if (!session_.failure().is_ok()) return session_.failure();
  if (!opened_.takes_messages) {
    return make_status(StatusCode::NotFound,
                       "braidd at '{}' is older than this libbraid ({}) and carries no messages "
                       "between two ranks: upgrade braidd",
                       session_.socket_path(), BRAID_VERSION);
  }
  BRAID_RETURN_IF_ERROR(admit(request));
  return give(lock, std::move(request), ticket);
}

// Admitted.
Status Tickets::give(Lock& lock, Request request, braid_ticket* ticket) {
  const braid_ticket number = next_ticket_++;
  // References into an unordered_map stay valid while others come and go; only this call can remove
  // this one.
  Operation& operation = operations_[number];
  operation.request = std::move(request);
  operation.deadline_ns = deadline_of(operation.request.timeout_ms) + kDaemonGraceNs;
  if (Status status = start(lock, operation, number); !status) {
    // Another thread may have guessed the ticket of a failed job.
    if (operations_.contains(number)) forget(number);
    return status;
  }
  session_.wake_daemon();
  *ticket = number;
  return {};
}

Status Tickets::admit(const Request& request) const {
  if (operations_.size() >= Session::kDoneCapacity) {
    return make_status(StatusCode::ResourceExhausted,
                       "job '{}' has {} tickets that were not released, the limit; call "
                       "braid_release for each one that is done",
                       session_.job_name(), operations_.size());
  }
  if (request.is_message()) return {};
  const Tensor& tensor = *registry_.tensors().find(request.tensor);
  if (!tensor.last_step || request.step > *tensor.last_step) return {};
  return make_status(StatusCode::InvalidArgument,
                     "step {} of tensor '{}' comes after step {}; the steps of a tensor must grow",
                     request.step, tensor.name, *tensor.last_step);
}

Status Tickets::start(Lock& lock, Operation& operation, braid_ticket ticket) {
  const Request& request = operation.request;
  Status staged = stage_input(request, registry_, opened_.blocks, lock, operation.input);
  if (!staged) return staged;
  operation.state = Operation::State::InFlight;
  return session_.push(lock, entry_of(operation, ticket),
                       std::min(deadline_of(request.timeout_ms), session_.end_of_patience()));
}

void Tickets::forget(braid_ticket ticket) {
  const auto found = operations_.find(ticket);
  release_copy(found->second);
  operations_.erase(found);
}

void Tickets::release_copy(Operation& operation) {
  if (operation.input.copy) registry_.arenas().release(*operation.input.copy);
  operation.input.copy.reset();
}

Status Tickets::on_done(const proto::DoneEntry& entry) {
  const auto found = operations_.find(entry.ticket);
  if (found == operations_.end() || found->second.state != Operation::State::InFlight) {
    return make_status(StatusCode::Protocol, "braidd completed ticket {}, which is not in flight",
                       entry.ticket);
  }
  Operation& operation = found->second;
  if (entry.result_bytes != operation.request.result_bytes ||
      !range_fits(entry.result_offset, entry.result_bytes, opened_.results.size())) {
    return make_status(StatusCode::Protocol,
                       "braidd put the result of the {} at offset {} with {} bytes; expected were "
                       "{} within memory of {}",
                       describe(operation), entry.result_offset, entry.result_bytes,
                       operation.request.result_bytes, opened_.results.size());
  }
  operation.state = Operation::State::Done;
  timeouts_.take_back_ms(operation.request.extension_ms);
  operation.result_offset = entry.result_offset;
  operation.source = entry.source;
  release_copy(operation);
  return {};
}

Status Tickets::check_none_of(uint32_t first_tensor, size_t count) const {
  for (const auto& [ticket, operation] : operations_) {
    if (operation.request.tensor - first_tensor >= count) continue;
    return make_status(
        StatusCode::InvalidArgument,
        "the {} still has ticket {}: wait for it and release it before its tensor is "
        "unregistered",
        describe(operation), ticket);
  }
  return {};
}

std::string Tickets::describe(const Operation& operation) const {
  return client::describe(operation.request, registry_.tensors());
}

Status Tickets::find(braid_ticket ticket, Operation*& operation) {
  const auto found = operations_.find(ticket);
  if (found == operations_.end() || found->second.state == Operation::State::Preparing) {
    return make_status(StatusCode::NotFound,
                       "ticket {} is unknown: it was released, or never given out", ticket);
  }
  operation = &found->second;
  return {};
}

Status Tickets::test(braid_ticket ticket, int* done) {
  if (done == nullptr) return Status(StatusCode::InvalidArgument, "done is NULL");
  *done = 0;
  const Lock lock(session_.mutex());
  Operation* operation = nullptr;
  BRAID_RETURN_IF_ERROR(find(ticket, operation));
  if (operation->state != Operation::State::Done) session_.poll_once();
  const bool is_done = operation->state == Operation::State::Done;
  if (!is_done && session_.failure().is_ok() && now_ns() < operation->deadline_ns) return {};
  *done = 1;
  if (is_done) return {};
  return session_.failure().is_ok() ? overdue(*operation, 0) : failure_of(*operation);
}

Status Tickets::wait(braid_ticket ticket, uint32_t timeout_ms) {
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
  return session_.failure().is_ok() ? overdue(*operation, timeout_ms) : failure_of(*operation);
}

Result<bool> Tickets::await(braid_ticket ticket, uint64_t deadline_ns,
                            const std::function<bool()>& is_interrupted) {
  Lock lock(session_.mutex());
  Operation* operation = nullptr;
  BRAID_RETURN_IF_ERROR(find(ticket, operation));
  session_.wait_until(lock, std::min(deadline_ns, operation->deadline_ns), [&] {
    const auto found = operations_.find(ticket);
    return found == operations_.end() || found->second.state == Operation::State::Done ||
           is_interrupted();
  });
  BRAID_RETURN_IF_ERROR(find(ticket, operation));
  if (operation->state == Operation::State::Done) return true;
  BRAID_RETURN_IF_ERROR(failure_of(*operation));
  if (now_ns() >= operation->deadline_ns) return overdue(*operation, 0);
  return false;
}

void Tickets::interrupt() {
  const Lock lock(session_.mutex());
  session_.wake_waiting();
}

Status Tickets::failure_of(const Operation& operation) const {
  const Status& failure = session_.failure();
  if (failure.is_ok() || !operation.request.is_message()) return failure;
  return failure.with_context(describe(operation));
}

Status Tickets::overdue(const Operation& operation, uint32_t timeout_ms) const {
  if (now_ns() >= operation.deadline_ns) {
    return make_status(StatusCode::DeadlineExceeded,
                       "braidd at '{}' does not answer: the {} should have ended after {} ms",
                       session_.socket_path(), describe(operation), operation.request.timeout_ms);
  }
  return make_status(StatusCode::DeadlineExceeded, "the {} is still in flight after {} ms{}",
                     describe(operation), timeout_ms, session_.silence());
}

// An error, too, where it has not ended, or the job has failed before it ended.
Status Tickets::find_ended(braid_ticket ticket, Operation*& operation) {
  BRAID_RETURN_IF_ERROR(find(ticket, operation));
  if (operation->state != Operation::State::Done) session_.poll_once();
  if (operation->state == Operation::State::Done) return {};
  BRAID_RETURN_IF_ERROR(failure_of(*operation));
  return make_status(StatusCode::InvalidArgument, "the {} is still in flight: wait for it first",
                     describe(*operation));
}

Status Tickets::result(braid_ticket ticket, const void** data, size_t* bytes) {
  BRAID_RETURN_IF_ERROR(check_outputs(data, bytes));
  const Lock lock(session_.mutex());
  Operation* operation = nullptr;
  BRAID_RETURN_IF_ERROR(find_ended(ticket, operation));
  if (operation->request.collective == Collective::AllGather) {
    return Status(StatusCode::InvalidArgument,
                  "the blocks of an all-gather are not in the order of ranks: use "
                  "braid_result_of_rank or braid_copy_result");
  }
  *bytes = operation->request.result_bytes;
  *data = *bytes == 0 ? nullptr : opened_.results.data() + operation->result_offset;
  return {};
}

Status Tickets::result_of_rank(braid_ticket ticket, uint32_t rank, const void** data,
                               size_t* bytes) {
  BRAID_RETURN_IF_ERROR(check_outputs(data, bytes));
  const Lock lock(session_.mutex());
  Operation* operation = nullptr;
  BRAID_RETURN_IF_ERROR(find_ended(ticket, operation));
  if (operation->request.collective != Collective::AllGather || rank >= rank_.world_size) {
    return make_status(
        StatusCode::InvalidArgument,
        "the {} has no block of rank {} (only an all-gather has blocks, of ranks 0 to {})",
        describe(*operation), rank, rank_.world_size - 1);
  }
  *bytes = operation->request.input_bytes;
  *data =
      opened_.results.data() + operation->result_offset + opened_.blocks.place_of(rank) * *bytes;
  return {};
}

Status Tickets::source(braid_ticket ticket, uint32_t* rank) {
  if (rank == nullptr) return Status(StatusCode::InvalidArgument, "rank is NULL");
  const Lock lock(session_.mutex());
  Operation* operation = nullptr;
  BRAID_RETURN_IF_ERROR(find_ended(ticket, operation));
  if (operation->request.kind != proto::SubmitKind::Receive) {
    return make_status(StatusCode::InvalidArgument, "the {} has no source; only a receive has one",
                       describe(*operation));
  }
  *rank = operation->source;
  return {};
}

Status Tickets::copy_result(braid_ticket ticket, void* out, size_t bytes) {
  Lock lock(session_.mutex());
  Operation* operation = nullptr;
  BRAID_RETURN_IF_ERROR(find_ended(ticket, operation));
  const Request& request = operation->request;
  if (bytes != request.result_bytes || (out == nullptr && bytes != 0)) {
    return make_status(StatusCode::InvalidArgument, "out has {} bytes; the result of the {} has {}",
                       out == nullptr ? 0 : bytes, describe(*operation), request.result_bytes);
  }
  const uint8_t* from = opened_.results.data() + operation->result_offset;
  const RankBlocks& blocks = opened_.blocks;
  const bool reorders = request.collective == Collective::AllGather && !blocks.are_in_rank_order();
  const uint64_t block_bytes = request.input_bytes;
  lock.unlock();  // the result is the caller's until braid_release
  if (reorders) {
    blocks.copy_to_rank_order(from, static_cast<uint8_t*>(out), block_bytes);
  } else if (bytes != 0) {
    std::memcpy(out, from, bytes);
  }
  return {};
}

Status Tickets::release(braid_ticket ticket) {
  Lock lock(session_.mutex());
  Operation* operation = nullptr;
  Status ended = find_ended(ticket, operation);
  const bool has_failed = !session_.failure().is_ok();
  if (operation == nullptr || (!ended && !has_failed)) return ended;
  forget(ticket);
  if (has_failed) return {};
  // The daemon need not wake up for this: it sees it with the next operation.
  proto::SubmitEntry entry{};
  entry.kind = static_cast<uint8_t>(proto::SubmitKind::Release);
  entry.ticket = ticket;
  session_.push_when_possible(entry);
  lock.unlock();
  registry_.arenas().give_back_idle(now_ns());
  return {};
}

Status Tickets::take(braid_ticket ticket, uint32_t timeout_ms, void* out, size_t bytes) {
  BRAID_RETURN_IF_ERROR(wait(ticket, timeout_ms));
  BRAID_RETURN_IF_ERROR(copy_result(ticket, out, bytes));
  return release(ticket);
}

}  // namespace braid::client
