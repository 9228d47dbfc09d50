// SPDX-License-Identifier: Apache-2.0
#include "device/device_submissions.h"

#include <vector>

#include <unistd.h>

#include "connection.h"

namespace braid::client {
namespace {

// How much memory inputs go through, and results: enough for copies and network to overlap, and
// for a daemon to have several pieces under way.
constexpr uint64_t kRingBytesMax = 64 << 20;
constexpr useconds_t kWordPauseUs = 20;

}  // namespace

Status await_word(const Word& word, uint32_t number, const DeviceRequest& request,
                  const DeviceWorker& worker) {
  while (!has_reached(word.load(), number)) {
    BRAID_RETURN_IF_ERROR(worker.failure());
    if (now_ns() >= request.deadline_ns) {
      return make_status(StatusCode::DeadlineExceeded,
                         "the {}: earlier operations have not ended in its time", request.text);
    }
    ::usleep(kWordPauseUs);
  }
  return {};
}

Status copy_result(DeviceStream& stream, const DeviceRequest& request, const Rows& rows,
                   const uint8_t* memory) {
  if (rows.bytes() == 0) return {};
  if (request.result_of_rank.empty()) return stream.copy_to_device(memory, rows, request.result);
  return stream.copy_to_devices(memory, rows, request.result_of_rank);
}

DeviceSubmissions::DeviceSubmissions(DeviceStreams& streams, StagingPool& planned_inputs,
                                     DeviceWorker& worker)
    : streams_(streams),
      planned_inputs_(planned_inputs),
      worker_(worker),
      words_(streams.words()),
      input_ring_(kRingBytesMax,
                  [this](uint64_t bytes, uint8_t*& memory) {
                    return streams_.memory().make_input(bytes, memory);
                  }),
      result_ring_(kRingBytesMax, [this](uint64_t bytes, uint8_t*& memory) {
        return streams_.memory().make_own(bytes, memory);
      }) {}

Status DeviceSubmissions::queue_input(const std::shared_ptr<DeviceOperation>& operation) {
  const DeviceRequest& request = operation->request;
  BRAID_RETURN_IF_ERROR(wait_for_caller(request));
  for (uint32_t i = 0; i < request.pieces.count(); ++i)
    BRAID_RETURN_IF_ERROR(queue_piece(operation, i));
  return {};
}

// The inputs are ready, and the result may be overwritten, from here on in the caller's stream.
Status DeviceSubmissions::wait_for_caller(const DeviceRequest& request) {
  const CudaDriver& driver = streams_.device().driver();
  CUevent event = nullptr;
  BRAID_RETURN_IF_ERROR(streams_.take_event(event));
  Status status = driver.check(driver.EventRecord(event, request.stream), "cuEventRecord");
  if (status) status = streams_.inputs().wait_for(event);
  if (status && request.stream_waits) status = streams_.results().wait_for(event);
  streams_.give_back(event);
  return status;
}

Status DeviceSubmissions::queue_piece(const std::shared_ptr<DeviceOperation>& operation,
                                      uint32_t index) {
  const DeviceRequest& request = operation->request;
  const Piece piece = request.pieces[index];
  QueuedPiece queued;
  queued.operation = operation;
  queued.index = index;
  queued.number = ++last_input_;
  queued.is_in_ring = request.is_dynamic;
  BRAID_RETURN_IF_ERROR(place_input(*operation, piece.input.bytes(), queued.number, queued.input));
  if (request.stream_waits) BRAID_RETURN_IF_ERROR(place_result(piece.result.bytes(), queued));
  BRAID_RETURN_IF_ERROR(streams_.inputs().copy_to_host(request.input, piece.input, queued.input));
  BRAID_RETURN_IF_ERROR(signal_input(queued.number));
  if (request.stream_waits) operation->results.push_back({queued.result, queued.result_number});
  // At once: the next call may have to wait until this piece is over.
  worker_.add(std::move(queued));
  return {};
}

Status DeviceSubmissions::place_input(DeviceOperation& operation, uint64_t bytes, uint32_t number,
                                      uint8_t*& memory) {
  if (bytes == 0) return {};
  if (!operation.request.is_dynamic) {
    BRAID_RETURN_IF_ERROR(planned_inputs_.take(bytes, operation.input));
    memory = operation.input.data();
    return {};
  }
  StagingRing::Place place;
  BRAID_RETURN_IF_ERROR(input_ring_.place(bytes, number, words_.input_over.load(), place));
  memory = place.memory;
  if (!place.after) return {};
  if (streams_.can_write()) return streams_.inputs().wait_for(words_.input_over, *place.after);
  return await_word(words_.input_over, *place.after, operation.request, worker_);
}

Status DeviceSubmissions::place_result(uint64_t bytes, QueuedPiece& queued) {
  queued.result_number = ++last_result_;
  if (bytes == 0) return {};
  StagingRing::Place place;
  BRAID_RETURN_IF_ERROR(
      result_ring_.place(bytes, queued.result_number, words_.result_over.load(), place));
  queued.result = place.memory;
  queued.result_after = place.after;
  return {};
}

// That the copies before it are over.
Status DeviceSubmissions::signal_input(uint32_t number) {
  if (streams_.can_write()) return streams_.inputs().write(words_.input_staged, number);
  BRAID_RETURN_IF_ERROR(streams_.synchronize(streams_.inputs()));
  words_.input_staged.store(number);
  return {};
}

Status DeviceSubmissions::queue_results(DeviceOperation& operation) {
  const DeviceRequest& request = operation.request;
  if (!request.stream_waits) return {};
  const std::vector<StagedResult>& results = operation.results;
  DeviceStream& stream = streams_.results();
  BRAID_RETURN_IF_ERROR(stream.wait_for(words_.result_staged, results.front().number));
  for (uint32_t i = 0; i < results.size(); ++i) {
    if (i != 0) {
      BRAID_RETURN_IF_ERROR(stream.write_and_wait(words_.result_over, results[i - 1].number,
                                                  words_.result_staged, results[i].number));
    }
    BRAID_RETURN_IF_ERROR(
        copy_result(stream, request, request.pieces[i].result, results[i].memory));
  }
  BRAID_RETURN_IF_ERROR(stream.write(words_.result_over, results.back().number));
  operation.last_result = results.back().number;
  BRAID_RETURN_IF_ERROR(streams_.take_event(operation.results_are_there));
  return stream.record(operation.results_are_there);
}

}  // namespace braid::client
