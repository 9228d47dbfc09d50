// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "device/device_operation.h"

namespace braid::client {

// What carries operations on device memory: a lane alone, or two levels. Any thread.
class DeviceCarrier {
 public:
  virtual ~DeviceCarrier() = default;

  // `stream` waits until the results are in place. If the operation's streams do not wait, this
  // thread waits first, until they are in host memory.
  virtual Status let_wait(const std::shared_ptr<DeviceOperation>& operation, CUstream stream) = 0;
  // Waits, at most until `deadline_ns`, until the results are in place or, if they are still to be
  // taken, in host memory, and gives the operation's outcome; false: they are not yet.
  virtual Result<bool> await(DeviceOperation& operation, uint64_t deadline_ns) = 0;
  // Nobody asks for the operation any more.
  virtual void release(const std::shared_ptr<DeviceOperation>& operation) = 0;
};

}  // namespace braid::client
