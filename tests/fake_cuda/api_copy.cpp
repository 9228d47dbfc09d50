// SPDX-License-Identifier: Apache-2.0
// Copies and fills.
#include <cstdint>
#include <optional>

#include <cuda.h>

#include "calls.h"
#include "capture.h"
#include "context.h"
#include "copies.h"
#include "engine.h"
#include "memory.h"

using namespace fake_cuda;  // NOLINT: this file is only the API

namespace {

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

/// One side of a copy of rows, at the first byte of the first row.
struct Rows {
  std::uintptr_t address;
  std::size_t pitch;
  bool is_host;
};

std::optional<Rows> rows_of(CUmemorytype type, const void* host, CUdeviceptr device, std::size_t x,
                            std::size_t y, std::size_t pitch, const CUDA_MEMCPY2D& copy) {
  if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED) {
    return std::nullopt;
  }
  if (pitch == 0 && copy.Height == 1) pitch = x + copy.WidthInBytes;
  if (x + copy.WidthInBytes > pitch) return std::nullopt;
  Rows rows{type == CU_MEMORYTYPE_HOST ? number_of(host) : device, pitch,
            type == CU_MEMORYTYPE_HOST};
  if (rows.address == 0) return std::nullopt;
  if (type == CU_MEMORYTYPE_UNIFIED) {
    const auto range = Memory::get().find(rows.address, 1);
    rows.is_host = !range || !range->is_device;
  }
  rows.address += y * pitch + x;
  return rows;
}

CUresult synchronous_copy(Call& call, const Copy& copy) {
  if (const CUresult result = check_unsafe_call(); result != CUDA_SUCCESS) return result;
  return queue_copy(call, copy, stream_of(nullptr), true);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  Call call(Function::kMemcpyDtoH_v2, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  return synchronous_copy(call, {Direction::kToHost, {number_of(to), true}, {from, true}, bytes});
}

CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  Call call(Function::kMemcpyHtoD_v2, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  return synchronous_copy(call, {Direction::kToDevice, {to, true}, {number_of(from), true}, bytes});
}

CUresult CUDAAPI cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes,
                                      CUstream stream) {
  Call call(Function::kMemcpyDtoHAsync_v2, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  return queue_copy(call, {Direction::kToHost, {number_of(to), true}, {from, true}, bytes},
                    stream_of(stream));
}

CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes,
                                      CUstream stream) {
  Call call(Function::kMemcpyHtoDAsync_v2, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  return queue_copy(call, {Direction::kToDevice, {to, true}, {number_of(from), true}, bytes},
                    stream_of(stream));
}

CUresult CUDAAPI cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                      CUstream stream) {
  Call call(Function::kMemcpyDtoDAsync_v2, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  return queue_copy(call, {Direction::kWithin, {to, true}, {from, true}, bytes}, stream_of(stream));
}

CUresult CUDAAPI cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  Call call(Function::kMemcpy2DAsync_v2, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto to = rows_of(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstXInBytes,
                          copy->dstY, copy->dstPitch, *copy);
  const auto from = rows_of(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcXInBytes,
                            copy->srcY, copy->srcPitch, *copy);
  if (!to || !from || (to->is_host && from->is_host)) return CUDA_ERROR_INVALID_VALUE;
  const Direction direction = to->is_host     ? Direction::kToHost
                              : from->is_host ? Direction::kToDevice
                                              : Direction::kWithin;
  return queue_copy(call,
                    {direction,
                     {to->address, true},
                     {from->address, true},
                     copy->WidthInBytes,
                     copy->Height,
                     to->pitch,
                     from->pitch},
                    stream_of(stream));
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr address, unsigned char value, std::size_t bytes,
                                 CUstream handle) {
  const Call call(Function::kMemsetD8Async, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  const StreamPointer stream = stream_of(handle);
  if (const CUresult result = check_stream(stream); result != CUDA_SUCCESS) return result;
  if (bytes == 0) return CUDA_SUCCESS;
  if (!Memory::get().find(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  CUresult captured = CUDA_SUCCESS;
  if (is_captured(*stream, captured)) return captured;
  Engine::get().submit(stream, [=] { return Memory::get().fill(address, value, bytes); });
  return CUDA_SUCCESS;
}

}  // extern "C"
