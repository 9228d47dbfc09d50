// SPDX-License-Identifier: Apache-2.0
#include "device/device_lane.h"

#include <utility>

#include <unistd.h>

#include "connection.h"
#include "session.h"

namespace braid::client {
namespace {

constexpr useconds_t kCopyPauseUs = 50;

}  // namespace

Status DeviceLane::open(const CudaDriver& driver, CUcontext context, Tickets& tickets,
                        Registry& registry, std::function<void(const Status&)> on_failure,
                        std::unique_ptr<DeviceLane>& lane) {
  std::unique_ptr<DeviceStreams> streams;
  BRAID_RETURN_IF_ERROR(DeviceStreams::open(driver, context, registry, streams));
  lane.reset(new DeviceLane(std::move(streams), tickets, std::move(on_failure)));
  return {};
}

DeviceLane::DeviceLane(std::unique_ptr<DeviceStreams> streams, Tickets& tickets,
                       std::function<void(const Status&)> on_failure)
    : streams_(std::move(streams)),
      planned_inputs_([this](uint64_t bytes, uint8_t*& memory) {
        return streams_->memory().make_input(bytes, memory);
      }),
      worker_(tickets, streams_->words(), std::move(on_failure)),
      submissions_(*streams_, planned_inputs_, worker_),
      taking_(*streams_, worker_, tickets) {}

Status DeviceLane::submit(const std::shared_ptr<DeviceOperation>& operation) {
  return submit_by(operation->request.text, [&](DeviceSubmissions& submissions) -> Status {
    BRAID_RETURN_IF_ERROR(submissions.queue_input(operation));
    return submissions.queue_results(*operation);
  });
}

Status DeviceLane::submit_by(const std::string& text,
                             const std::function<Status(DeviceSubmissions&)>& queue) {
  const std::lock_guard lock(submit_mutex_);
  BRAID_RETURN_IF_ERROR(worker_.failure());
  const DeviceContext::Scope scope(device());
  BRAID_RETURN_IF_ERROR(scope.status());
  Status queued = queue(submissions_);
  if (!queued) {
    queued = queued.with_context(text);
    worker_.fail(queued);
  }
  return queued;
}

Status DeviceLane::let_wait(const std::shared_ptr<DeviceOperation>& waited, CUstream stream) {
  DeviceOperation& operation = *waited;
  const DeviceRequest& request = operation.request;
  if (!request.stream_waits && !is_taken(operation)) {
    const Result<bool> has_ended = await(operation, request.deadline_ns + 2 * kDaemonGraceNs);
    BRAID_RETURN_IF_ERROR(has_ended.status());
    if (!*has_ended) {
      return make_status(StatusCode::DeadlineExceeded, "the {} has not ended in its time",
                         request.text);
    }
  }
  const DeviceContext::Scope scope(device());
  BRAID_RETURN_IF_ERROR(scope.status());
  {
    const std::lock_guard lock(take_mutex_);
    if (!request.stream_waits && !operation.is_taken) {
      if (Status taken = taking_.take(waited); !taken) {
        worker_.fail(taken.with_context(request.text));
        return taken;
      }
    }
  }
  const CudaDriver& driver = device().driver();
  BRAID_RETURN_IF_ERROR(driver.check(
      driver.StreamWaitEvent(stream, operation.results_are_there, CU_EVENT_WAIT_DEFAULT),
      "cuStreamWaitEvent"));
  // What has not come by now will not be what was asked for, if the job is over.
  const bool is_here = !request.stream_waits ||
                       has_reached(streams_->words().result_over.load(), operation.last_result);
  return is_here ? worker_.outcome(operation) : worker_.failure();
}

bool DeviceLane::is_taken(const DeviceOperation& operation) {
  const std::lock_guard lock(take_mutex_);
  return operation.is_taken;
}

Result<bool> DeviceLane::await(DeviceOperation& operation, uint64_t deadline_ns) {
  const DeviceRequest& request = operation.request;
  const Words& words = streams_->words();
  if (request.stream_waits)
    return await_copies(operation, words.result_over, operation.last_result, deadline_ns);
  if (is_taken(operation))
    return await_copies(operation, words.taken_over, operation.last_taken, deadline_ns);
  for (uint32_t i = 0; i < operation.tickets.size(); ++i) {
    Result<bool> has_ended = worker_.await_piece(operation, i, deadline_ns);
    if (!has_ended || !*has_ended) return has_ended;
  }
  return true;
}

Result<bool> DeviceLane::await_copies(const DeviceOperation& operation, const Word& word,
                                      uint32_t number, uint64_t deadline_ns) const {
  while (!has_reached(word.load(), number)) {
    if (now_ns() >= deadline_ns) return false;
    ::usleep(kCopyPauseUs);
  }
  BRAID_RETURN_IF_ERROR(worker_.outcome(operation));
  return true;
}

void DeviceLane::release(const std::shared_ptr<DeviceOperation>& operation) {
  if (operation->results_are_there != nullptr) streams_->give_back(operation->results_are_there);
  if (!operation->request.stream_waits && !is_taken(*operation)) worker_.release(operation);
}

}  // namespace braid::client
