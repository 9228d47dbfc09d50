// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "device/device_operation.h"
#include "device/device_streams.h"
#include "device/device_worker.h"
#include "device/staging_ring.h"
#include "tickets.h"

namespace braid::client {

// Results of operations whose streams do not wait, from the daemon's memory to the device. One
// thread at a time, in the context's scope.
class DeviceTaking {
 public:
  DeviceTaking(DeviceStreams& streams, DeviceWorker& worker, Tickets& tickets);

  // All pieces have ended. Queues their copies, and gives the tickets back.
  Status take(const std::shared_ptr<DeviceOperation>& operation);

 private:
  Status give_back(const std::shared_ptr<DeviceOperation>& taken);
  Status take_piece(const DeviceOperation& operation, uint32_t index, braid_ticket ticket);
  Status take_slices(const DeviceOperation& operation, const Rows& rows, braid_ticket ticket);
  Status queue_copy(const DeviceOperation& operation, const Rows& rows,
                    const std::function<Status(uint8_t*)>& fill);

  DeviceStreams& streams_;
  DeviceWorker& worker_;
  Tickets& tickets_;
  const Words words_;
  StagingRing ring_;
  uint32_t last_ = 0;
};

}  // namespace braid::client
