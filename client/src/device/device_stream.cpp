// SPDX-License-Identifier: Apache-2.0
#include "device/device_stream.h"

#include <utility>

namespace braid::client {
namespace {

// CU_DEVICE_ATTRIBUTE_MAX_PITCH of all devices so far.
constexpr uint64_t kPitchMax = 0x7fffffff;

CUstreamBatchMemOpParams waiting(const Word& word, uint32_t number) {
  CUstreamBatchMemOpParams operation{};
  operation.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operation.waitValue.address = word.device();
  operation.waitValue.value = number;
  operation.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  return operation;
}

CUstreamBatchMemOpParams writing(const Word& word, uint32_t number) {
  CUstreamBatchMemOpParams operation{};
  operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operation.writeValue.address = word.device();
  operation.writeValue.value = number;
  operation.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  return operation;
}

}  // namespace

Status DeviceStream::open() {
  int least = 0;
  int greatest = 0;
  BRAID_RETURN_IF_ERROR(driver_.check(driver_.CtxGetStreamPriorityRange(&least, &greatest),
                                      "cuCtxGetStreamPriorityRange"));
  return driver_.check(driver_.StreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, greatest),
                       "cuStreamCreateWithPriority");
}

void DeviceStream::close() {
  if (stream_ != nullptr) (void)driver_.StreamDestroy(std::exchange(stream_, nullptr));
}

Status DeviceStream::wait_for(CUevent event) {
  return driver_.check(driver_.StreamWaitEvent(stream_, event, CU_EVENT_WAIT_DEFAULT),
                       "cuStreamWaitEvent");
}

Status DeviceStream::wait_for(const Word& word, uint32_t number) {
  return driver_.check(
      driver_.StreamWaitValue32(stream_, word.device(), number, CU_STREAM_WAIT_VALUE_GEQ),
      "cuStreamWaitValue32");
}

Status DeviceStream::write(const Word& word, uint32_t number) {
  return driver_.check(
      driver_.StreamWriteValue32(stream_, word.device(), number, CU_STREAM_WRITE_VALUE_DEFAULT),
      "cuStreamWriteValue32");
}

Status DeviceStream::wait_and_write(const Word& awaited, const Word& written, uint32_t number) {
  CUstreamBatchMemOpParams operations[] = {waiting(awaited, number), writing(written, number)};
  return driver_.check(driver_.StreamBatchMemOp(stream_, 2, operations, 0), "cuStreamBatchMemOp");
}

Status DeviceStream::write_and_wait(const Word& written, uint32_t written_number,
                                    const Word& awaited, uint32_t awaited_number) {
  CUstreamBatchMemOpParams operations[] = {writing(written, written_number),
                                           waiting(awaited, awaited_number)};
  return driver_.check(driver_.StreamBatchMemOp(stream_, 2, operations, 0), "cuStreamBatchMemOp");
}

Status DeviceStream::record(CUevent event) {
  return driver_.check(driver_.EventRecord(event, stream_), "cuEventRecord");
}

Status DeviceStream::copy_to_host(CUdeviceptr tensor, const Rows& rows, uint8_t* host) {
  if (rows.bytes() == 0) return {};
  if (rows.rows == 1) {
    return driver_.check(driver_.MemcpyDtoHAsync(host, tensor + rows.offset, rows.width, stream_),
                         "cuMemcpyDtoHAsync");
  }
  if (rows.pitch > kPitchMax) {
    for (uint64_t row = 0; row < rows.rows; ++row) {
      const Rows one = {1, rows.width, rows.width, rows.offset + row * rows.pitch};
      BRAID_RETURN_IF_ERROR(copy_to_host(tensor, one, host + row * rows.width));
    }
    return {};
  }
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = tensor + rows.offset;
  copy.srcPitch = rows.pitch;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = host;
  copy.dstPitch = rows.width;
  copy.WidthInBytes = rows.width;
  copy.Height = rows.rows;
  return driver_.check(driver_.Memcpy2DAsync(&copy, stream_), "cuMemcpy2DAsync");
}

Status DeviceStream::copy_to_device(const uint8_t* host, const Rows& rows, CUdeviceptr tensor) {
  if (rows.bytes() == 0) return {};
  if (rows.rows == 1) {
    return driver_.check(driver_.MemcpyHtoDAsync(tensor + rows.offset, host, rows.width, stream_),
                         "cuMemcpyHtoDAsync");
  }
  if (rows.pitch > kPitchMax) {
    for (uint64_t row = 0; row < rows.rows; ++row) {
      const Rows one = {1, rows.width, rows.width, rows.offset + row * rows.pitch};
      BRAID_RETURN_IF_ERROR(copy_to_device(host + row * rows.width, one, tensor));
    }
    return {};
  }
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host;
  copy.srcPitch = rows.width;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = tensor + rows.offset;
  copy.dstPitch = rows.pitch;
  copy.WidthInBytes = rows.width;
  copy.Height = rows.rows;
  return driver_.check(driver_.Memcpy2DAsync(&copy, stream_), "cuMemcpy2DAsync");
}

Status DeviceStream::copy_to_devices(const uint8_t* host, const Rows& rows,
                                     std::span<const CUdeviceptr> tensors) {
  // What is in one piece is one row.
  const uint64_t width = rows.bytes() / tensors.size();
  for (const CUdeviceptr tensor : tensors) {
    BRAID_RETURN_IF_ERROR(copy_to_device(host, Rows{1, width, width, rows.offset}, tensor));
    host += width;
  }
  return {};
}

Status DeviceStream::fill(CUdeviceptr memory, uint64_t bytes, uint8_t value) {
  if (bytes == 0) return {};
  return driver_.check(driver_.MemsetD8Async(memory, value, bytes, stream_), "cuMemsetD8Async");
}

Result<bool> DeviceStream::is_idle() const {
  const CUresult result = driver_.StreamQuery(stream_);
  if (result == CUDA_ERROR_NOT_READY) return false;
  BRAID_RETURN_IF_ERROR(driver_.check(result, "cuStreamQuery"));
  return true;
}

}  // namespace braid::client
