// SPDX-License-Identifier: Apache-2.0
#include "device/device_buffers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "connection.h"
#include "levels/levels_opening.h"

namespace braid::client {
namespace {

// CUDA forbids some of what opening a lane does while another thread of the process captures a
// stream, unless a thread says that it knows what it does.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const CudaDriver& driver) : driver_(driver) { exchange(); }
  ~RelaxedCapture() { exchange(); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  void exchange() { (void)driver_.ThreadExchangeStreamCaptureMode(&mode_); }

  const CudaDriver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

Status check_memory(const DeviceContext& device, const DeviceRequest& request) {
  BRAID_RETURN_IF_ERROR(device.check_is_not_captured(request.stream));
  BRAID_RETURN_IF_ERROR(device.check_is_here(request.input, "input"));
  if (request.result != request.input)
    BRAID_RETURN_IF_ERROR(device.check_is_here(request.result, "result"));
  for (const CUdeviceptr result : request.result_of_rank)
    BRAID_RETURN_IF_ERROR(device.check_is_here(result, "result_of_rank"));
  return {};
}

}  // namespace

DeviceBuffers::DeviceBuffers(Session& session, Timeouts& timeouts, Registry& registry, Rank rank,
                             Tickets& tickets, std::function<void(const Status&)> on_failure)
    : session_(session),
      timeouts_(timeouts),
      registry_(registry),
      rank_(rank),
      tickets_(tickets),
      on_failure_(std::move(on_failure)) {}

Status DeviceBuffers::submit(const braid_operation* operation, const braid_device_buffers* buffers,
                             braid_ticket* ticket) {
  if (ticket == nullptr) return Status(StatusCode::InvalidArgument, "ticket is NULL");
  const std::lock_guard submission(submit_mutex_);
  BRAID_RETURN_IF_ERROR(admit());
  std::optional<DeviceRequest> request;
  {
    const std::lock_guard lock(session_.mutex());
    BRAID_RETURN_IF_ERROR(read_device_request(operation, buffers, registry_.tensors(), rank_,
                                              timeouts_, next_steps_, request));
    BRAID_RETURN_IF_ERROR(session_.failure());
  }
  BRAID_RETURN_IF_ERROR(find_lane(request->stream));
  // The calling thread may have no context of its own.
  const DeviceContext::Scope scope(lane_->device());
  BRAID_RETURN_IF_ERROR(scope.status());
  BRAID_RETURN_IF_ERROR(check_memory(lane_->device(), *request));
  request->stream_waits = request->stream_waits && lane_->streams_can_wait();
  Taken taken;
  BRAID_RETURN_IF_ERROR(carry(std::move(*request), taken));
  const std::lock_guard lock(mutex_);
  *ticket = next_ticket_++;
  operations_.emplace(*ticket, std::move(taken));
  return {};
}

Status DeviceBuffers::admit() {
  const std::lock_guard lock(mutex_);
  if (operations_.size() < kTicketsMax) return {};
  return make_status(StatusCode::ResourceExhausted,
                     "job '{}' has {} tickets of braid_submit_device that were not released, the "
                     "limit; call braid_device_release for each one",
                     session_.job_name(), operations_.size());
}

// In two levels, if there are two and it gains by them.
Status DeviceBuffers::carry(DeviceRequest request, Taken& taken) {
  const bool is_dynamic = request.is_dynamic;
  const braid_operation operation = request.operation;
  const uint64_t until_ns = std::min(request.deadline_ns, session_.end_of_patience());
  uint32_t steps = 1;
  if (levels_ != nullptr && is_dynamic && request.stream_waits && LevelCut::takes(request)) {
    BRAID_RETURN_IF_ERROR(levels_->await_room(request, until_ns));
    taken.carrier = levels_.get();
    BRAID_RETURN_IF_ERROR(levels_->submit(std::move(request), taken.operation));
  } else {
    BRAID_RETURN_IF_ERROR(lane_->await_room(request, until_ns));
    steps = request.pieces.count();
    taken.carrier = lane_.get();
    taken.operation = std::make_shared<DeviceOperation>(std::move(request));
    BRAID_RETURN_IF_ERROR(lane_->submit(taken.operation));
  }
  if (is_dynamic) next_steps_[operation.tensor] = operation.step + steps;
  return {};
}

Status DeviceBuffers::open_levels(const JobRequest& request, void* stream, uint32_t timeout_ms,
                                  std::function<Status()> job_failure, LevelChoice& choice) {
  const std::lock_guard submission(submit_mutex_);
  if (!choice_) {
    uint64_t node = 0;
    uint64_t deadline_ns = 0;
    {
      const std::lock_guard lock(session_.mutex());
      BRAID_RETURN_IF_ERROR(session_.failure());
      node = session_.connection().daemon_node();
      deadline_ns = now_ns() + timeouts_.of_operation_ms(timeout_ms) * 1'000'000ull;
    }
    const Status found = find_lane(static_cast<CUstream>(stream));
    const Result<DeviceLane*> lane =
        found ? Result<DeviceLane*>(lane_.get()) : Result<DeviceLane*>(found);
    LevelsOpening opening(request, registry_, tickets_, {on_failure_, std::move(job_failure)},
                          deadline_ns);
    std::unique_ptr<TwoLevels> levels;
    LevelChoice chosen;
    BRAID_RETURN_IF_ERROR(opening.run(lane, node, chosen, levels));
    const std::lock_guard lock(mutex_);
    if (is_stopped_) return Status(StatusCode::Cancelled, "the job was closed");
    choice_ = std::move(chosen);
    levels_ = std::move(levels);
  }
  choice = *choice_;
  return {};
}

Status DeviceBuffers::find_lane(CUstream stream) {
  const Result<CudaDriver>& driver = CudaDriver::get();
  BRAID_RETURN_IF_ERROR(driver.status());
  const RelaxedCapture relaxed(*driver);
  CUcontext context = nullptr;
  BRAID_RETURN_IF_ERROR(DeviceContext::find(*driver, stream, context));
  if (lane_ == nullptr) {
    std::unique_ptr<DeviceLane> lane;
    BRAID_RETURN_IF_ERROR(
        DeviceLane::open(*driver, context, tickets_, registry_, on_failure_, lane));
    const std::lock_guard lock(mutex_);
    if (is_stopped_) return Status(StatusCode::Cancelled, "the job was closed");
    lane_ = std::move(lane);
  }
  if (lane_->device().context() == context) return {};
  return make_status(StatusCode::InvalidArgument,
                     "stream is of another GPU, or another context, than the first one of job "
                     "'{}': a rank has one GPU",
                     session_.job_name());
}

Status DeviceBuffers::find(braid_ticket ticket, Taken& taken) {
  const std::lock_guard lock(mutex_);
  const auto found = operations_.find(ticket);
  if (found == operations_.end()) {
    return make_status(StatusCode::NotFound,
                       "ticket {} is unknown: it was released, or braid_submit_device did not "
                       "give it",
                       ticket);
  }
  taken = found->second;
  return {};
}

Status DeviceBuffers::let_wait(braid_ticket ticket, void* stream) {
  Taken taken;
  BRAID_RETURN_IF_ERROR(find(ticket, taken));
  return taken.carrier->let_wait(taken.operation, static_cast<CUstream>(stream));
}

Status DeviceBuffers::test(braid_ticket ticket, int* done) {
  if (done == nullptr) return Status(StatusCode::InvalidArgument, "done is NULL");
  *done = 0;
  Taken taken;
  BRAID_RETURN_IF_ERROR(find(ticket, taken));
  const Result<bool> has_ended = taken.carrier->await(*taken.operation, 0);
  *done = !has_ended || *has_ended ? 1 : 0;
  return has_ended.status();
}

Status DeviceBuffers::wait(braid_ticket ticket, uint32_t timeout_ms) {
  Taken taken;
  BRAID_RETURN_IF_ERROR(find(ticket, taken));
  uint64_t deadline_ns = taken.operation->request.deadline_ns + 2 * kDaemonGraceNs;
  if (timeout_ms != 0)
    deadline_ns = std::min(deadline_ns, now_ns() + uint64_t{timeout_ms} * 1'000'000);
  const Result<bool> has_ended = taken.carrier->await(*taken.operation, deadline_ns);
  BRAID_RETURN_IF_ERROR(has_ended.status());
  if (*has_ended) return {};
  return make_status(StatusCode::DeadlineExceeded, "the {} is still in flight after {} ms",
                     taken.operation->request.text, timeout_ms);
}

Status DeviceBuffers::release(braid_ticket ticket) {
  Taken taken;
  BRAID_RETURN_IF_ERROR(find(ticket, taken));
  {
    const std::lock_guard lock(mutex_);
    if (operations_.erase(ticket) == 0) return {};
  }
  taken.carrier->release(taken.operation);
  return {};
}

Status DeviceBuffers::check_none_of(uint32_t first_tensor, size_t count) {
  const std::lock_guard lock(mutex_);
  for (const auto& [ticket, taken] : operations_) {
    if (taken.operation->request.operation.tensor - first_tensor >= count) continue;
    return make_status(StatusCode::InvalidArgument,
                       "the {} still has ticket {}: release it (braid_device_release) before its "
                       "tensor is unregistered",
                       taken.operation->request.text, ticket);
  }
  return {};
}

void DeviceBuffers::stop(const Status& reason, uint64_t deadline_ns) {
  DeviceLane* lane = nullptr;
  TwoLevels* levels = nullptr;
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    lane = lane_.get();
    levels = levels_.get();
  }
  if (levels != nullptr) levels->stop(reason, deadline_ns);
  if (lane != nullptr) lane->stop(reason, deadline_ns);
}

}  // namespace braid::client
