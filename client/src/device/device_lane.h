// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "device/device_carrier.h"
#include "device/device_operation.h"
#include "device/device_streams.h"
#include "device/device_submissions.h"
#include "device/device_taking.h"
#include "device/device_worker.h"
#include "device/staging_pool.h"
#include "registry.h"
#include "tickets.h"

namespace braid::client {

// The way of one job's tensors between a device and the daemon: streams, memory that CUDA has
// registered, and a worker.
//
//   caller's stream ── event ──► input stream: copy; write `input_staged`
//                                       worker: give the piece to the daemon, stage its result
//   caller's stream ◄─ event ─── result stream: wait for `result_staged`; copy; write `result_over`
//
// Where streams do not wait (gradients of a backward pass; a GPU or a setting that does not allow
// it) a thread does: let_wait() waits for the daemon, and then queues the copies of the results.
// All functions may be called from any thread.
class DeviceLane : public DeviceCarrier {
 public:
  // `on_failure` ends the job.
  static Status open(const CudaDriver& driver, CUcontext context, Tickets& tickets,
                     Registry& registry, std::function<void(const Status&)> on_failure,
                     std::unique_ptr<DeviceLane>& lane);
  DeviceLane(const DeviceLane&) = delete;
  DeviceLane& operator=(const DeviceLane&) = delete;

  const DeviceContext& device() const { return streams_->device(); }
  DeviceStreams& streams() { return *streams_; }
  // Whether results may come into place by waits that are queued.
  bool streams_can_wait() const { return streams_->can_wait(); }

  // Waits, at most until `deadline_ns`, until the lane has room for one more operation.
  Status await_room(const DeviceRequest& request, uint64_t deadline_ns) const {
    return worker_.await_room(request, deadline_ns);
  }
  // Queues its copies. After an error the lane has failed.
  Status submit(const std::shared_ptr<DeviceOperation>& operation);
  // The same for several operations and what comes between them: `queue` runs in the context's
  // scope, and nothing else of the lane is queued meanwhile. `text` names it in errors.
  Status submit_by(const std::string& text, const std::function<Status(DeviceSubmissions&)>& queue);
  Status let_wait(const std::shared_ptr<DeviceOperation>& operation, CUstream stream) override;
  Result<bool> await(DeviceOperation& operation, uint64_t deadline_ns) override;
  void release(const std::shared_ptr<DeviceOperation>& operation) override;

  // Every stream that waits goes on soon, and nothing can be submitted any more. Calls nothing of
  // CUDA. fail() is for a lane that another thread may be submitting to; after stop() comes the
  // end.
  void fail(Status reason) { worker_.fail(std::move(reason)); }
  void stop(Status reason, uint64_t deadline_ns) { worker_.stop(std::move(reason), deadline_ns); }

 private:
  DeviceLane(std::unique_ptr<DeviceStreams> streams, Tickets& tickets,
             std::function<void(const Status&)> on_failure);
  Result<bool> await_copies(const DeviceOperation& operation, const Word& word, uint32_t number,
                            uint64_t deadline_ns) const;
  bool is_taken(const DeviceOperation& operation);

  const std::unique_ptr<DeviceStreams> streams_;
  StagingPool planned_inputs_;  // the worker, too, has operations that use it
  DeviceWorker worker_;
  std::mutex submit_mutex_;
  DeviceSubmissions submissions_;
  std::mutex take_mutex_;
  DeviceTaking taking_;
};

}  // namespace braid::client
