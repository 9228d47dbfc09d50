// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <cuda.h>
#include <cudaTypedefs.h>

#include "base/status.h"

namespace braid {

// Every function of CUDA's driver that braid calls: its name without "cu", and the version of CUDA
// that gave it the arguments that braid calls it with. The types are the toolkit's own, so a
// function that does not fit its version does not compile.
#define BRAID_CUDA_FUNCTIONS(X)      \
  X(CtxGetCurrent, 4000)             \
  X(CtxGetDevice, 2000)              \
  X(CtxGetStreamPriorityRange, 5050) \
  X(CtxPopCurrent, 4000)             \
  X(CtxPushCurrent, 4000)            \
  X(DeviceGetUuid, 11040)            \
  X(EventCreate, 2000)               \
  X(EventDestroy, 4000)              \
  X(EventRecord, 2000)               \
  X(EventSynchronize, 2000)          \
  X(GetErrorName, 6000)              \
  X(GetErrorString, 6000)            \
  X(MemAlloc, 3020)                  \
  X(MemFree, 3020)                   \
  X(MemHostGetDevicePointer, 3020)   \
  X(MemHostRegister, 6050)           \
  X(MemHostUnregister, 4000)         \
  X(Memcpy2DAsync, 3020)             \
  X(MemcpyDtoHAsync, 3020)           \
  X(MemcpyHtoDAsync, 3020)           \
  X(MemsetD8Async, 3020)             \
  X(PointerGetAttribute, 4000)       \
  X(StreamBatchMemOp, 11070)         \
  X(StreamCreateWithPriority, 5050)  \
  X(StreamDestroy, 4000)             \
  X(StreamGetCaptureInfo, 10010)     \
  X(StreamGetCtx, 9020)              \
  X(StreamQuery, 2000)               \
  X(StreamWaitEvent, 3020)           \
  X(StreamWaitValue32, 11070)        \
  X(StreamWriteValue32, 11070)       \
  X(ThreadExchangeStreamCaptureMode, 10010)

// CUDA's driver, libcuda.so.1: found at run time, so that one build runs with and without it. The
// manual of each function is NVIDIA's "CUDA Driver API". Any thread; it is never unloaded.
struct CudaDriver {
#define BRAID_CUDA_MEMBER(name, version) PFN_cu##name##_v##version name = nullptr;
  BRAID_CUDA_FUNCTIONS(BRAID_CUDA_MEMBER)
#undef BRAID_CUDA_MEMBER

  // The process' driver, or why it has none that braid can use: NotFound, there is none;
  // Unavailable, it is too old or lacks a function. The answer never changes. Nothing is
  // initialized, no context is made.
  static const Result<CudaDriver>& get();

  // Ok for CUDA_SUCCESS; else what `function` says. ResourceExhausted: memory; Unavailable: all
  // others.
  Status check(CUresult result, std::string_view function) const;
};

}  // namespace braid
