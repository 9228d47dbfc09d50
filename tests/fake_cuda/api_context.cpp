// SPDX-License-Identifier: Apache-2.0
// Primary contexts and threads' current ones.
#include <cuda.h>

#include "calls.h"
#include "capture.h"
#include "context.h"
#include "counts.h"
#include "settings.h"
#include "waits.h"

using namespace fake_cuda;  // NOLINT: this file is only the API

namespace {

constexpr int kLeastPriority = 0, kGreatestPriority = -5;

bool is_valid_device(CUdevice device) { return device >= 0 && device < settings().devices; }

}  // namespace

extern "C" {

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const Call call(Function::kDevicePrimaryCtxRetain, Needs::kInit);
  if (call.is_refused()) return call.refusal();
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  retain_context(device);
  *context = context_of(device);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  const Call call(Function::kDevicePrimaryCtxRelease_v2, Needs::kInit);
  if (call.is_refused()) return call.refusal();
  if (!is_valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  return release_context(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
  const Call call(Function::kCtxGetCurrent, Needs::kInit);
  if (call.is_refused()) return call.refusal();
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto device = current_device();
  *context = device ? context_of(*device) : nullptr;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  const Call call(Function::kCtxSetCurrent, Needs::kInit);
  if (call.is_refused()) return call.refusal();
  if (context == nullptr) {
    set_current(std::nullopt);
    return CUDA_SUCCESS;
  }
  const auto device = device_of(context);
  if (!device || !is_context_active(*device)) return CUDA_ERROR_INVALID_CONTEXT;
  set_current(device);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context) {
  const Call call(Function::kCtxPushCurrent_v2, Needs::kInit);
  if (call.is_refused()) return call.refusal();
  const auto device = device_of(context);
  if (!device || !is_context_active(*device)) return CUDA_ERROR_INVALID_CONTEXT;
  push_current(device);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext* context) {
  const Call call(Function::kCtxPopCurrent_v2, Needs::kInit);
  if (call.is_refused()) return call.refusal();
  if (!has_current_stack()) return CUDA_ERROR_INVALID_CONTEXT;
  const auto device = pop_current();
  if (context != nullptr) *context = context_of(*device);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  const Call call(Function::kCtxGetDevice, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = *current_device();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSynchronize() {
  Call call(Function::kCtxSynchronize, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  if (const CUresult result = check_unsafe_call(); result != CUDA_SUCCESS) return result;
  ++counters().host_waits;
  return wait_for_gpu(call, *current_device());
}

#if CUDA_VERSION >= 13000
CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  const Call call(Function::kCtxGetDevice_v2, context == nullptr ? Needs::kContext : Needs::kInit);
  if (call.is_refused()) return call.refusal();
  const auto of = context == nullptr ? current_device() : device_of(context);
  if (!of) return CUDA_ERROR_INVALID_CONTEXT;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = *of;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext context) {
  Call call(Function::kCtxSynchronize_v2, context == nullptr ? Needs::kContext : Needs::kInit);
  if (call.is_refused()) return call.refusal();
  const auto of = context == nullptr ? current_device() : device_of(context);
  if (!of) return CUDA_ERROR_INVALID_CONTEXT;
  if (const CUresult result = check_unsafe_call(); result != CUDA_SUCCESS) return result;
  ++counters().host_waits;
  return wait_for_gpu(call, *of);
}
#endif

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  const Call call(Function::kCtxGetStreamPriorityRange, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  if (least != nullptr) *least = kLeastPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  const Call call(Function::kThreadExchangeStreamCaptureMode, Needs::kInit);
  if (call.is_refused()) return call.refusal();
  if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
      *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *mode = exchange_capture_mode(*mode);
  return CUDA_SUCCESS;
}

}  // extern "C"
