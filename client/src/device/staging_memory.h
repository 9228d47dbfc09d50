// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "device/device_context.h"
#include "registry.h"

namespace braid::client {

// All memory of a lane that CUDA has registered. What is made stays until release(). Any thread, in
// the context's scope.
class StagingMemory {
 public:
  StagingMemory(const CudaDriver& driver, Registry& registry)
      : driver_(driver), registry_(registry) {}

  // In an input arena, where the daemon reads it in place.
  Status make_input(uint64_t bytes, uint8_t*& memory);
  // Memory of this process only, cleared.
  Status make_own(uint64_t bytes, uint8_t*& memory);
  // Where the device sees the last one of them.
  Status device_address(CUdeviceptr& address);

  // No copy is under way any more.
  void release();
  // One may be, and nobody knows when it ends: everything stays as it is.
  void leave_behind();

 private:
  const CudaDriver& driver_;
  Registry& registry_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<RegisteredMemory>> registered_;
  std::vector<void*> arena_memory_;
};

}  // namespace braid::client
