// SPDX-License-Identifier: Apache-2.0
#include "device/device_context.h"

#include <cerrno>
#include <utility>

#include <sys/mman.h>

#include "base/checked.h"

namespace braid::client {
namespace {

bool is_cudas_own(CUstream stream) {
  return stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

}  // namespace

DeviceContext::Scope::Scope(const DeviceContext& device) : driver_(device.driver_) {
  CUcontext current = nullptr;
  status_ = driver_.check(driver_.CtxGetCurrent(&current), "cuCtxGetCurrent");
  if (!status_ || current == device.context_) return;
  status_ = driver_.check(driver_.CtxPushCurrent(device.context_), "cuCtxPushCurrent");
  is_pushed_ = status_.is_ok();
}

DeviceContext::Scope::~Scope() {
  CUcontext popped = nullptr;
  if (is_pushed_) (void)driver_.CtxPopCurrent(&popped);
}

Status DeviceContext::find(const CudaDriver& driver, CUstream stream, CUcontext& context) {
  context = nullptr;
  if (is_cudas_own(stream)) {
    BRAID_RETURN_IF_ERROR(driver.check(driver.CtxGetCurrent(&context), "cuCtxGetCurrent"));
  } else {
    BRAID_RETURN_IF_ERROR(driver.check(driver.StreamGetCtx(stream, &context), "cuStreamGetCtx"));
  }
  if (context != nullptr) return {};
  return Status(StatusCode::InvalidArgument,
                "stream is CUDA's default stream, and this thread has no CUDA context: call "
                "cudaSetDevice, or give a stream of your own");
}

Status DeviceContext::check_is_not_captured(CUstream stream) const {
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  BRAID_RETURN_IF_ERROR(driver_.check(driver_.StreamGetCaptureInfo(stream, &capture, nullptr),
                                      "cuStreamGetCaptureInfo"));
  if (capture == CU_STREAM_CAPTURE_STATUS_NONE) return {};
  return Status(StatusCode::InvalidArgument,
                "stream is being captured into a CUDA graph, and braid's operations cannot be part "
                "of one: capture the computation without its collectives");
}

Status DeviceContext::check_is_here(CUdeviceptr memory, const char* what) const {
  if (memory == 0) return {};
  CUmemorytype type{};
  CUcontext context = nullptr;
  const CUresult asked =
      driver_.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory);
  if (asked == CUDA_ERROR_INVALID_VALUE ||
      (asked == CUDA_SUCCESS && type != CU_MEMORYTYPE_DEVICE)) {
    return make_status(StatusCode::InvalidArgument,
                       "{} {:#x} is no memory of a GPU; memory of the CPU goes to braid_submit",
                       what, memory);
  }
  BRAID_RETURN_IF_ERROR(driver_.check(asked, "cuPointerGetAttribute"));
  BRAID_RETURN_IF_ERROR(
      driver_.check(driver_.PointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, memory),
                    "cuPointerGetAttribute"));
  // Memory of a pool (cudaMallocAsync) or of cuMemMap belongs to no context.
  if (context == nullptr || context == context_) return {};
  return make_status(StatusCode::InvalidArgument,
                     "{} {:#x} is memory of another GPU than the stream's", what, memory);
}

Status RegisteredMemory::register_pages(const CudaDriver& driver, uint8_t* memory, uint64_t bytes,
                                        std::unique_ptr<RegisteredMemory>& registered) {
  return register_with_cuda(
      std::unique_ptr<RegisteredMemory>(new RegisteredMemory(driver, memory, bytes, false)),
      registered);
}

Status RegisteredMemory::make(const CudaDriver& driver, uint64_t bytes,
                              std::unique_ptr<RegisteredMemory>& registered) {
  bytes = round_up(bytes, kMemoryPageBytes);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return Status::from_errno(errno, fmt::format("cannot map {} bytes", bytes));
  std::unique_ptr<RegisteredMemory> made(
      new RegisteredMemory(driver, static_cast<uint8_t*>(memory), bytes, true));
  // After a fork() this process' next write would move the page away from CUDA.
  (void)::madvise(memory, bytes, MADV_DONTFORK);
  return register_with_cuda(std::move(made), registered);
}

Status RegisteredMemory::register_with_cuda(std::unique_ptr<RegisteredMemory> memory,
                                            std::unique_ptr<RegisteredMemory>& registered) {
  constexpr unsigned int kFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
  const CudaDriver& driver = memory->driver_;
  if (const CUresult result = driver.MemHostRegister(memory->memory_, memory->bytes_, kFlags);
      result != CUDA_SUCCESS) {
    return {StatusCode::ResourceExhausted,
            fmt::format("{} bytes cannot be pinned for copies by the GPU: {}", memory->bytes_,
                        driver.check(result, "cuMemHostRegister").message()),
            static_cast<int>(result)};
  }
  memory->is_registered_ = true;
  registered = std::move(memory);
  return {};
}

RegisteredMemory::~RegisteredMemory() {
  if (is_registered_) (void)driver_.MemHostUnregister(memory_);
  if (is_own_) ::munmap(memory_, bytes_);
}

Status RegisteredMemory::device_address(CUdeviceptr& address) const {
  return driver_.check(driver_.MemHostGetDevicePointer(&address, memory_, 0),
                       "cuMemHostGetDevicePointer");
}

}  // namespace braid::client
