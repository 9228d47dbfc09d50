// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "gpu/cuda_driver.h"

namespace braid::client {

// The CUDA context of a trainer's device, in which everything of a lane is made. Any thread.
class DeviceContext {
 public:
  // Makes the context current while it lives. Whatever was current is so again afterwards.
  class Scope {
   public:
    explicit Scope(const DeviceContext& device);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    const Status& status() const { return status_; }

   private:
    const CudaDriver& driver_;
    bool is_pushed_ = false;
    Status status_;
  };

  DeviceContext(const CudaDriver& driver, CUcontext context) : driver_(driver), context_(context) {}

  // That of a stream; of one of CUDA's own streams (NULL) the calling thread's.
  static Status find(const CudaDriver& driver, CUstream stream, CUcontext& context);

  const CudaDriver& driver() const { return driver_; }
  CUcontext context() const { return context_; }
  // Ok unless the stream is being captured into a graph: what is queued then runs later, perhaps
  // more than once, when nobody waits for it.
  Status check_is_not_captured(CUstream stream) const;
  // Ok if the memory is this context's device's.
  Status check_is_here(CUdeviceptr memory, const char* what) const;

 private:
  const CudaDriver& driver_;
  const CUcontext context_;
};

inline constexpr uint64_t kMemoryPageBytes = 4096;

// Memory of this process that CUDA has registered, so that copies take it as it lies there. Made
// and destroyed in its context's scope.
class RegisteredMemory {
 public:
  // Whole pages. The memory outlives the registration.
  static Status register_pages(const CudaDriver& driver, uint8_t* memory, uint64_t bytes,
                               std::unique_ptr<RegisteredMemory>& registered);
  // The same with pages of its own, cleared.
  static Status make(const CudaDriver& driver, uint64_t bytes,
                     std::unique_ptr<RegisteredMemory>& registered);
  ~RegisteredMemory();
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  uint8_t* data() const { return memory_; }
  // Where the device sees it.
  Status device_address(CUdeviceptr& address) const;

 private:
  static Status register_with_cuda(std::unique_ptr<RegisteredMemory> memory,
                                   std::unique_ptr<RegisteredMemory>& registered);
  RegisteredMemory(const CudaDriver& driver, uint8_t* memory, uint64_t bytes, bool is_own)
      : driver_(driver), memory_(memory), bytes_(bytes), is_own_(is_own) {}

  const CudaDriver& driver_;
  uint8_t* const memory_;
  const uint64_t bytes_;
  const bool is_own_;
  bool is_registered_ = false;
};

}  // namespace braid::client
