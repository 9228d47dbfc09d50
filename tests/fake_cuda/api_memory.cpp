// SPDX-License-Identifier: Apache-2.0
// Device memory, registered host memory, and what a pointer is.
#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>

#include <cuda.h>

#include "calls.h"
#include "capture.h"
#include "context.h"
#include "memory.h"
#include "waits.h"

using namespace fake_cuda;  // NOLINT: this file is only the API

namespace {

template <typename Value>
CUresult put(void* to, Value value) {
  std::memcpy(to, &value, sizeof(value));
  return CUDA_SUCCESS;
}

CUresult put_attribute(void* to, CUpointer_attribute attribute, const Range& range,
                       CUdeviceptr pointer) {
  switch (static_cast<int>(attribute)) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put(to, context_of(range.device));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put<unsigned>(to, range.is_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put(to, pointer);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return range.is_device ? CUDA_ERROR_INVALID_VALUE : put(to, reinterpret_cast<void*>(pointer));
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put<unsigned long long>(to, range.id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put<unsigned>(to, 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put<int>(to, range.device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put<unsigned>(to, 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put<CUdeviceptr>(to, range.begin);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put(to, range.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put<unsigned>(to, 1);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

/// As `put_attribute`, for an address that is no memory of the GPU's.
CUresult put_unknown(void* to, CUpointer_attribute attribute) {
  switch (static_cast<int>(attribute)) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put<CUcontext>(to, nullptr);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put<unsigned>(to, 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put<CUdeviceptr>(to, 0);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return put<void*>(to, nullptr);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put<unsigned long long>(to, 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put<int>(to, -2);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put<std::size_t>(to, 0);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put<unsigned>(to, 0);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  const Call call(Function::kMemAlloc_v2, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = check_unsafe_call(); result != CUDA_SUCCESS) return result;
  return Memory::get().allocate(*current_device(), bytes, *address);
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address) {
  Call call(Function::kMemFree_v2, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  if (address == 0) return CUDA_SUCCESS;
  if (const CUresult result = check_unsafe_call(); result != CUDA_SUCCESS) return result;
  const auto range = Memory::get().find(address, 1);
  if (!range || !range->is_device || range->begin != address) return CUDA_ERROR_INVALID_VALUE;
  wait_before_free(call, range->device);
  return Memory::get().free(address);
}

CUresult CUDAAPI cuMemHostRegister_v2(void* address, std::size_t bytes, unsigned flags) {
  Call call(Function::kMemHostRegister_v2, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  constexpr unsigned kKnown =
      CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
  if ((flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = check_unsafe_call(); result != CUDA_SUCCESS) return result;
  wait_before_registering(call, *current_device());
  return Memory::get().register_host(*current_device(), address, bytes, flags);
}

CUresult CUDAAPI cuMemHostUnregister(void* address) {
  Call call(Function::kMemHostUnregister, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = check_unsafe_call(); result != CUDA_SUCCESS) return result;
  const auto range = Memory::get().find(reinterpret_cast<std::uintptr_t>(address), 1);
  if (range && !range->is_device) {
    wait_before_free(call, range->device);
  }
  return Memory::get().unregister_host(address);
}

CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr* pointer, void* address, unsigned flags) {
  const Call call(Function::kMemHostGetDevicePointer_v2, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  if (pointer == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto range = Memory::get().find(reinterpret_cast<std::uintptr_t>(address), 1);
  if (!range || range->is_device) return CUDA_ERROR_INVALID_VALUE;
  *pointer = reinterpret_cast<CUdeviceptr>(address);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuPointerGetAttribute(void* data, CUpointer_attribute attribute,
                                       CUdeviceptr pointer) {
  const Call call(Function::kPointerGetAttribute, Needs::kInit);
  if (call.is_refused()) return call.refusal();
  const auto range = Memory::get().find(pointer, 1);
  if (data == nullptr || !range) return CUDA_ERROR_INVALID_VALUE;
  return put_attribute(data, attribute, *range, pointer);
}

CUresult CUDAAPI cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes,
                                        void** data, CUdeviceptr pointer) {
  const Call call(Function::kPointerGetAttributes, Needs::kInit);
  if (call.is_refused()) return call.refusal();
  if (count == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto range = Memory::get().find(pointer, 1);
  for (unsigned i = 0; i < count; ++i) {
    const bool is_host_of_device =
        range && range->is_device && attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER;
    const CUresult result = range && !is_host_of_device
                                ? put_attribute(data[i], attributes[i], *range, pointer)
                                : put_unknown(data[i], attributes[i]);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // extern "C"
