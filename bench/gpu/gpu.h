// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include <cuda.h>

#include "base/status.h"

namespace braid::gpu_probe {

// What the probe calls of CUDA's driver: names without "cu".
#define BRAID_PROBE_FUNCTIONS(X)  \
  X(CtxGetStreamPriorityRange)    \
  X(CtxSetCurrent)                \
  X(CtxSynchronize)               \
  X(DeviceGet)                    \
  X(DeviceGetAttribute)           \
  X(DeviceGetName)                \
  X(DevicePrimaryCtxRelease)      \
  X(DevicePrimaryCtxRetain)       \
  X(DriverGetVersion)             \
  X(EventCreate)                  \
  X(EventDestroy)                 \
  X(EventQuery)                   \
  X(EventRecord)                  \
  X(EventSynchronize)             \
  X(GetErrorName)                 \
  X(Init)                         \
  X(LaunchHostFunc)               \
  X(MemAddressFree)               \
  X(MemAddressReserve)            \
  X(MemAlloc)                     \
  X(MemCreate)                    \
  X(MemExportToShareableHandle)   \
  X(MemFree)                      \
  X(MemGetAllocationGranularity)  \
  X(MemGetHandleForAddressRange)  \
  X(MemGetInfo)                   \
  X(MemHostGetDevicePointer)      \
  X(MemHostRegister)              \
  X(MemHostUnregister)            \
  X(MemImportFromShareableHandle) \
  X(MemMap)                       \
  X(MemRelease)                   \
  X(MemSetAccess)                 \
  X(MemUnmap)                     \
  X(MemcpyDtoHAsync)              \
  X(MemcpyHtoDAsync)              \
  X(MemsetD8)                     \
  X(MemsetD8Async)                \
  X(StreamCreateWithPriority)     \
  X(StreamDestroy)                \
  X(StreamQuery)                  \
  X(StreamSynchronize)            \
  X(StreamWaitEvent)              \
  X(StreamWaitValue32)            \
  X(StreamWriteValue32)

// The first GPU, and the functions of the driver, which is loaded at run time: gpu.MemAlloc(…) is
// cuMemAlloc(…), and its Status has the driver's code as its cause. A function that this driver
// lacks is Unavailable. Any thread, once its context is current there.
class Gpu {
 public:
  // Its primary context becomes current on this thread.
  static Result<std::unique_ptr<Gpu>> open();
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  CUdevice device() const { return device_; }
  Status make_current() const { return CtxSetCurrent(context_); }

#define BRAID_PROBE_CALL(name)                      \
  template <typename... Arguments>                  \
  Status name(Arguments... arguments) const {       \
    return call("cu" #name, name##_, arguments...); \
  }
  BRAID_PROBE_FUNCTIONS(BRAID_PROBE_CALL)
#undef BRAID_PROBE_CALL

 private:
  Gpu() = default;
  Status load();

  template <typename Function, typename... Arguments>
  Status call(const char* name, Function function, Arguments... arguments) const {
    if (function == nullptr) return missing(name);
    const CUresult result = function(arguments...);
    return result == CUDA_SUCCESS ? Status::ok() : failed(name, result);
  }
  static Status missing(const char* name);
  Status failed(const char* name, CUresult result) const;

#define BRAID_PROBE_MEMBER(name) decltype(&::cu##name) name##_ = nullptr;
  BRAID_PROBE_FUNCTIONS(BRAID_PROBE_MEMBER)
#undef BRAID_PROBE_MEMBER
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

}  // namespace braid::gpu_probe
