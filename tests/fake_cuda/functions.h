// SPDX-License-Identifier: Apache-2.0
// The functions of the driver API that the library has, in one table.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <cuda.h>

// Functions that CUDA 13 gives under names of older ones that take other arguments.
#if CUDA_VERSION >= 13000
#define FAKE_CUDA_FUNCTIONS_13(F) \
  F(StreamGetCtx, _v2, 12050)     \
  F(CtxGetDevice, _v2, 13000)     \
  F(CtxSynchronize, _v2, 13000)
#else
#define FAKE_CUDA_FUNCTIONS_13(F)
#endif

// F(name without cu, suffix of the symbol, CUDA version since which cuGetProcAddress gives this
// variant)
#define FAKE_CUDA_FUNCTIONS(F)                \
  F(Init, , 2000)                             \
  F(DriverGetVersion, , 2020)                 \
  F(GetProcAddress, _v2, 12000)               \
  F(GetErrorName, , 6000)                     \
  F(GetErrorString, , 6000)                   \
  F(DeviceGetCount, , 2000)                   \
  F(DeviceGet, , 2000)                        \
  F(DeviceGetName, , 2000)                    \
  F(DeviceGetUuid, _v2, 11040)                \
  F(DeviceGetPCIBusId, , 4010)                \
  F(DeviceGetAttribute, , 2000)               \
  F(DevicePrimaryCtxRetain, , 7000)           \
  F(DevicePrimaryCtxRelease, _v2, 11000)      \
  F(CtxGetCurrent, , 4000)                    \
  F(CtxSetCurrent, , 4000)                    \
  F(CtxPushCurrent, _v2, 4000)                \
  F(CtxPopCurrent, _v2, 4000)                 \
  F(CtxGetDevice, , 2000)                     \
  F(CtxSynchronize, , 2000)                   \
  F(CtxGetStreamPriorityRange, , 5050)        \
  F(ThreadExchangeStreamCaptureMode, , 10010) \
  F(StreamCreate, , 2000)                     \
  F(StreamCreateWithPriority, , 5050)         \
  F(StreamDestroy, _v2, 4000)                 \
  F(StreamQuery, , 2000)                      \
  F(StreamSynchronize, , 2000)                \
  F(StreamWaitEvent, , 3020)                  \
  F(StreamIsCapturing, , 10000)               \
  F(StreamGetCaptureInfo, _v1, 10010)         \
  F(StreamGetCaptureInfo, _v2, 11030)         \
  F(StreamGetCaptureInfo, _v3, 12030)         \
  F(StreamBeginCapture, _v2, 10010)           \
  F(StreamEndCapture, , 10000)                \
  F(StreamGetCtx, , 9020)                     \
  F(EventCreate, , 2000)                      \
  F(EventRecord, , 2000)                      \
  F(EventQuery, , 2000)                       \
  F(EventSynchronize, , 2000)                 \
  F(EventDestroy, _v2, 4000)                  \
  F(MemHostRegister, _v2, 6050)               \
  F(MemHostUnregister, , 4000)                \
  F(MemHostGetDevicePointer, _v2, 3020)       \
  F(MemAlloc, _v2, 3020)                      \
  F(MemFree, _v2, 3020)                       \
  F(MemcpyDtoH, _v2, 3020)                    \
  F(MemcpyHtoD, _v2, 3020)                    \
  F(MemcpyDtoHAsync, _v2, 3020)               \
  F(MemcpyHtoDAsync, _v2, 3020)               \
  F(MemcpyDtoDAsync, _v2, 3020)               \
  F(Memcpy2DAsync, _v2, 3020)                 \
  F(MemsetD8Async, , 3020)                    \
  F(StreamWriteValue32, _v2, 11070)           \
  F(StreamWaitValue32, _v2, 11070)            \
  F(StreamBatchMemOp, _v2, 11070)             \
  F(PointerGetAttribute, , 4000)              \
  F(PointerGetAttributes, , 7000)             \
  FAKE_CUDA_FUNCTIONS_13(F)

// Their ABI names, where the newest cuda.h declares them under another one or not at all.
extern "C" {
CUresult CUDAAPI cuStreamGetCaptureInfo_v1(CUstream stream, CUstreamCaptureStatus* status,
                                           cuuint64_t* id) __asm__("cuStreamGetCaptureInfo");
CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status,
                                           cuuint64_t* id, CUgraph* graph,
                                           const CUgraphNode** dependencies,
                                           std::size_t* dependency_count);
CUresult CUDAAPI cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status,
                                           cuuint64_t* id, CUgraph* graph,
                                           const CUgraphNode** dependencies,
                                           const CUgraphEdgeData** edges,
                                           std::size_t* dependency_count);
}

namespace fake_cuda {

enum class Function : std::size_t {
#define FAKE_CUDA_ENUMERATOR(name, suffix, version) k##name##suffix,
  FAKE_CUDA_FUNCTIONS(FAKE_CUDA_ENUMERATOR)
#undef FAKE_CUDA_ENUMERATOR
};

struct FunctionRow {
  const char* base;    // cuMemAlloc: what cuGetProcAddress is asked for
  const char* symbol;  // cuMemAlloc_v2: how the library exports it
  int version;

  bool is_called(std::string_view name) const { return name == base || name == symbol; }
};

/// In the order of `Function`.
std::span<const FunctionRow> function_rows();
bool is_function(std::string_view name);

}  // namespace fake_cuda
