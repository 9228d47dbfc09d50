// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

#include "bench/gpu/gpu.h"

namespace braid::gpu_probe {

// A handle of the driver that is given back with its owner; `gpu` outlives it.
template <typename Handle, Status (*release)(const Gpu&, Handle)>
class Owned {
 public:
  Owned(const Gpu& gpu, Handle handle) : gpu_(&gpu), handle_(handle) {}
  Owned(Owned&& other) noexcept
      : gpu_(std::exchange(other.gpu_, nullptr)), handle_(other.handle_) {}
  Owned& operator=(Owned&&) = delete;
  ~Owned() {
    if (gpu_ != nullptr) (void)release(*gpu_, handle_);
  }

  Handle get() const { return handle_; }
  // Somebody else has given it back.
  void forget() { gpu_ = nullptr; }

 private:
  const Gpu* gpu_;
  Handle handle_;
};

inline Status destroy_stream(const Gpu& gpu, CUstream stream) { return gpu.StreamDestroy(stream); }
inline Status destroy_event(const Gpu& gpu, CUevent event) { return gpu.EventDestroy(event); }
inline Status free_memory(const Gpu& gpu, CUdeviceptr address) { return gpu.MemFree(address); }

using Stream = Owned<CUstream, destroy_stream>;
using Event = Owned<CUevent, destroy_event>;
using DeviceMemory = Owned<CUdeviceptr, free_memory>;

// A lower number is more urgent.
inline Result<Stream> make_stream(const Gpu& gpu, int priority = 0) {
  CUstream stream = nullptr;
  BRAID_RETURN_IF_ERROR(gpu.StreamCreateWithPriority(
      &stream, static_cast<unsigned>(CU_STREAM_NON_BLOCKING), priority));
  return Stream(gpu, stream);
}

inline Result<Event> make_event(const Gpu& gpu, unsigned flags = CU_EVENT_DISABLE_TIMING) {
  CUevent event = nullptr;
  BRAID_RETURN_IF_ERROR(gpu.EventCreate(&event, flags));
  return Event(gpu, event);
}

inline Result<DeviceMemory> make_device_memory(const Gpu& gpu, size_t bytes) {
  CUdeviceptr address = 0;
  BRAID_RETURN_IF_ERROR(gpu.MemAlloc(&address, bytes));
  return DeviceMemory(gpu, address);
}

}  // namespace braid::gpu_probe
