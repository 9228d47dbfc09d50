// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include <braid.h>

#include "base/status.h"
#include "device/device_carrier.h"
#include "device/device_lane.h"
#include "device/device_operation.h"
#include "device/device_request.h"
#include "levels/level_report.h"
#include "levels/two_levels.h"
#include "opening.h"
#include "operation.h"
#include "registry.h"
#include "session.h"
#include "tickets.h"
#include "timeouts.h"

namespace braid::client {

// The operations of one open job on device memory: from braid_submit_device to
// braid_device_release. All of a job's device memory is of one context. Any thread.
class DeviceBuffers {
 public:
  // `on_failure` ends the job.
  DeviceBuffers(Session& session, Timeouts& timeouts, Registry& registry, Rank rank,
                Tickets& tickets, std::function<void(const Status&)> on_failure);
  DeviceBuffers(const DeviceBuffers&) = delete;
  DeviceBuffers& operator=(const DeviceBuffers&) = delete;

  // Whether braid_submit_device gave the ticket.
  static bool is_device_ticket(braid_ticket ticket) { return (ticket & kDeviceBit) != 0; }

  Status submit(const braid_operation* operation, const braid_device_buffers* buffers,
                braid_ticket* ticket);
  Status let_wait(braid_ticket ticket, void* stream);
  Status test(braid_ticket ticket, int* done);
  Status wait(braid_ticket ticket, uint32_t timeout_ms);
  Status release(braid_ticket ticket);

  // All ranks of the job do it at once, and get one answer. Errors are the job's.
  Status open_levels(const JobRequest& request, void* stream, uint32_t timeout_ms,
                     std::function<Status()> job_failure, LevelChoice& choice);

  // An error names a ticket of one of these tensors.
  Status check_none_of(uint32_t first_tensor, size_t count);
  // The job is over: every stream that waits goes on soon. Calls nothing of CUDA.
  void stop(const Status& reason, uint64_t deadline_ns);

 private:
  static constexpr braid_ticket kDeviceBit = braid_ticket{1} << 63;
  static constexpr size_t kTicketsMax = Session::kDoneCapacity;

  struct Taken {
    std::shared_ptr<DeviceOperation> operation;
    DeviceCarrier* carrier = nullptr;
  };

  Status admit();
  Status find_lane(CUstream stream);
  Status carry(DeviceRequest request, Taken& taken);
  Status find(braid_ticket ticket, Taken& taken);

  Session& session_;
  Timeouts& timeouts_;
  Registry& registry_;
  const Rank rank_;
  Tickets& tickets_;
  const std::function<void(const Status&)> on_failure_;

  std::mutex submit_mutex_;  // steps have the order of submission
  NextSteps next_steps_;
  std::optional<LevelChoice> choice_;

  std::mutex mutex_;
  bool is_stopped_ = false;
  std::unique_ptr<DeviceLane> lane_;   // stays, once it is there
  std::unique_ptr<TwoLevels> levels_;  // the same
  braid_ticket next_ticket_ = kDeviceBit | 1;
  std::unordered_map<braid_ticket, Taken> operations_;
};

}  // namespace braid::client
