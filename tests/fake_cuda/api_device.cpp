// SPDX-License-Identifier: Apache-2.0
// cuInit, versions, entry points, devices.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include <cuda.h>
#include <cudaTypedefs.h>

#include "calls.h"
#include "functions.h"
#include "report.h"
#include "settings.h"

namespace fake_cuda {
namespace {

// Each function has the type that cuda.h gives to this version of it.
#define FAKE_CUDA_TYPE(name, suffix, version) \
  static_assert(std::is_same_v<decltype(&cu##name##suffix), PFN_cu##name##_v##version>);
FAKE_CUDA_FUNCTIONS(FAKE_CUDA_TYPE)
#undef FAKE_CUDA_TYPE

const std::array kAddresses = {
#define FAKE_CUDA_ADDRESS(name, suffix, version) reinterpret_cast<void*>(&cu##name##suffix),
    FAKE_CUDA_FUNCTIONS(FAKE_CUDA_ADDRESS)
#undef FAKE_CUDA_ADDRESS
};

bool is_device(CUdevice device) { return device >= 0 && device < settings().devices; }

int attribute_of(CUdevice_attribute attribute, CUdevice device) {
  switch (static_cast<int>(attribute)) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return 9;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return 0;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 2;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return device + 1;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
      return -1;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1:
      return settings().words ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
      return 1;
    default:
      return 0;
  }
}

bool is_missing(const FunctionRow& row) {
  return std::ranges::any_of(settings().missing,
                             [&](const auto& name) { return row.is_called(name); });
}

}  // namespace
}  // namespace fake_cuda

using namespace fake_cuda;  // NOLINT: this file is only the API

extern "C" {

CUresult CUDAAPI cuInit(unsigned flags) {
  const Call call(Function::kInit, Needs::kNothing);
  if (call.is_refused()) return call.refusal();
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (settings().devices == 0) return CUDA_ERROR_NO_DEVICE;
  begin_process();
  report_at_exit();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDriverGetVersion(int* version) {
  const Call call(Function::kDriverGetVersion, Needs::kNothing);
  if (call.is_refused()) return call.refusal();
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = settings().version;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetProcAddress_v2(const char* symbol, void** address, int version,
                                     cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  const Call call(Function::kGetProcAddress_v2, Needs::kNothing);
  if (call.is_refused()) return call.refusal();
  if (symbol == nullptr || address == nullptr || version > settings().version)
    return CUDA_ERROR_INVALID_VALUE;
  if (flags > CU_GET_PROC_ADDRESS_LEGACY_STREAM) return CUDA_ERROR_NOT_SUPPORTED;
  auto found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  *address = nullptr;
  for (std::size_t row = 0; row < kAddresses.size();
       ++row) {  // later variants of a function come later
    const FunctionRow& one = function_rows()[row];
    if (std::strcmp(one.base, symbol) != 0 || is_missing(one)) continue;
    if (one.version <= version) {
      found = CU_GET_PROC_ADDRESS_SUCCESS;
      *address = kAddresses[row];
    } else if (*address == nullptr) {
      found = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    }
  }
  if (status != nullptr) *status = found;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetCount(int* count) {
  const Call call(Function::kDeviceGetCount, Needs::kInit);
  if (call.is_refused()) return call.refusal();
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = settings().devices;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  const Call call(Function::kDeviceGet, Needs::kInit);
  if (call.is_refused()) return call.refusal();
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice device) {
  const Call call(Function::kDeviceGetName, Needs::kInit);
  if (call.is_refused()) return call.refusal();
  if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<std::size_t>(length), "Fake GPU");
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  const Call call(Function::kDeviceGetUuid_v2, Needs::kInit);
  if (call.is_refused()) return call.refusal();
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::memset(uuid->bytes, 0xFA, sizeof(uuid->bytes));
  uuid->bytes[15] = static_cast<char>(device);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  const Call call(Function::kDeviceGetPCIBusId, Needs::kInit);
  if (call.is_refused()) return call.refusal();
  if (id == nullptr || length < 13) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(id, static_cast<std::size_t>(length), "0000:%02X:00.0",
                static_cast<unsigned>(device) + 1);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  const Call call(Function::kDeviceGetAttribute, Needs::kInit);
  if (call.is_refused()) return call.refusal();
  if (value == nullptr || attribute < 1) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = attribute_of(attribute, device);
  return CUDA_SUCCESS;
}

}  // extern "C"
