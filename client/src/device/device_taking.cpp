// SPDX-License-Identifier: Apache-2.0
#include "device/device_taking.h"

#include <algorithm>
#include <cstring>

#include "device/device_submissions.h"

namespace braid::client {
namespace {

// One thread copies: while the GPU takes one part, it fills the next.
constexpr uint64_t kTakingBytesMax = 16 << 20;

}  // namespace

DeviceTaking::DeviceTaking(DeviceStreams& streams, DeviceWorker& worker, Tickets& tickets)
    : streams_(streams),
      worker_(worker),
      tickets_(tickets),
      words_(streams.words()),
      ring_(kTakingBytesMax, [this](uint64_t bytes, uint8_t*& memory) {
        return streams_.memory().make_own(bytes, memory);
      }) {}

Status DeviceTaking::take(const std::shared_ptr<DeviceOperation>& taken) {
  DeviceOperation& operation = *taken;
  for (uint32_t i = 0; i < operation.tickets.size(); ++i)
    BRAID_RETURN_IF_ERROR(take_piece(operation, i, worker_.ticket_of(operation, i)));
  BRAID_RETURN_IF_ERROR(give_back(taken));
  operation.last_taken = last_;
  BRAID_RETURN_IF_ERROR(streams_.take_event(operation.results_are_there));
  BRAID_RETURN_IF_ERROR(streams_.taking().record(operation.results_are_there));
  operation.is_taken = true;
  return {};
}

// The worker has no part of operations of planned tensors any more, and need not wake up for them.
Status DeviceTaking::give_back(const std::shared_ptr<DeviceOperation>& taken) {
  if (!taken->request.is_dynamic) return tickets_.release(worker_.ticket_of(*taken, 0));
  worker_.release(taken);
  return {};
}

Status DeviceTaking::take_piece(const DeviceOperation& operation, uint32_t index,
                                braid_ticket ticket) {
  const DeviceRequest& request = operation.request;
  const Rows rows = request.pieces[index].result;
  const bool is_wanted = request.result != 0 || !request.result_of_rank.empty();
  if (rows.bytes() == 0 || !is_wanted) return {};
  if (!request.is_dynamic && rows.bytes() > kDevicePieceBytes)
    return take_slices(operation, rows, ticket);
  return queue_copy(operation, rows, [&](uint8_t* memory) {
    return tickets_.copy_result(ticket, memory, rows.bytes());
  });
}

// A planned tensor of any size: its result is one block.
Status DeviceTaking::take_slices(const DeviceOperation& operation, const Rows& rows,
                                 braid_ticket ticket) {
  const void* data = nullptr;
  size_t bytes = 0;
  BRAID_RETURN_IF_ERROR(tickets_.result(ticket, &data, &bytes));
  for (uint64_t at = 0; at < rows.width; at += kDevicePieceBytes) {
    const uint64_t width = std::min(kDevicePieceBytes, rows.width - at);
    BRAID_RETURN_IF_ERROR(
        queue_copy(operation, Rows{1, width, width, at}, [&](uint8_t* memory) -> Status {
          std::memcpy(memory, static_cast<const uint8_t*>(data) + at, width);
          return {};
        }));
  }
  return {};
}

Status DeviceTaking::queue_copy(const DeviceOperation& operation, const Rows& rows,
                                const std::function<Status(uint8_t*)>& fill) {
  StagingRing::Place place;
  const uint32_t number = last_ + 1;
  BRAID_RETURN_IF_ERROR(ring_.place(rows.bytes(), number, words_.taken_over.load(), place));
  last_ = number;
  if (place.after) {
    BRAID_RETURN_IF_ERROR(await_word(words_.taken_over, *place.after, operation.request, worker_));
  }
  BRAID_RETURN_IF_ERROR(fill(place.memory));
  DeviceStream& stream = streams_.taking();
  BRAID_RETURN_IF_ERROR(copy_result(stream, operation.request, rows, place.memory));
  if (streams_.can_write()) return stream.write(words_.taken_over, number);
  BRAID_RETURN_IF_ERROR(streams_.synchronize(stream));
  words_.taken_over.store(number);
  return {};
}

}  // namespace braid::client
