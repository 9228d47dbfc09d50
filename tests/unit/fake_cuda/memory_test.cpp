// SPDX-License-Identifier: Apache-2.0
// Device memory, registered memory, copies, and what frees do.
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <cuda.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver_testing.h"

namespace fake_cuda_testing {
namespace {

/// True if the CPU may read this address.
bool is_readable(CUdeviceptr address) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const bool result = write(ends[1], reinterpret_cast<const void*>(address), 1) == 1;
  EXPECT_TRUE(result || errno == EFAULT);
  close(ends[0]);
  close(ends[1]);
  return result;
}

TEST(FakeCudaMemory, TheCpuCannotTouchDeviceMemory) {
  in_process({}, [] {
    const Program program;
    const CUdeviceptr memory = make_device_memory(10'000);
    EXPECT_FALSE(is_readable(memory));
    EXPECT_FALSE(is_readable(memory + 9'999));
    unsigned type = 0;
    EXPECT_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
    EXPECT_EQ(type, CU_MEMORYTYPE_DEVICE);
  });
}

TEST(FakeCudaMemory, UnifiedMemoryIsDeviceMemoryThatTheCpuMayTouch) {
  in_process({{"UNIFIED", "1"}}, [] {
    const Program program;
    const CUdeviceptr memory = make_device_memory(10'000);
    std::memset(reinterpret_cast<void*>(memory), 5, 10'000);
    std::uint8_t copied = 0;
    EXPECT_OK(cuMemcpyDtoH(&copied, memory + 9'999, 1));
    EXPECT_EQ(copied, 5);
    unsigned type = 0;
    EXPECT_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
    EXPECT_EQ(type, CU_MEMORYTYPE_DEVICE);
    EXPECT_EQ(counts().unregistered_copies, 0U);  // it is not asynchronous
  });
}

TEST(FakeCudaMemory, CopiesStayWithinTheirMemory) {
  in_process({}, [] {
    const Program program;
    const CUstream stream = make_stream();
    const Pinned host(8192);
    const CUdeviceptr device = make_device_memory(8192);
    EXPECT_EQ(cuMemcpyDtoHAsync(host.data, device + 1, 8192, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyHtoDAsync(device - 1, host.data, 8, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyHtoDAsync(device, host.data + 1, 8192, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyDtoHAsync(reinterpret_cast<void*>(device), device, 8, stream),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemsetD8Async(device + 8000, 0, 193, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuMemcpyHtoDAsync(device, host.data, 8192, stream));
    EXPECT_OK(cuStreamSynchronize(stream));
  });
}

TEST(FakeCudaMemory, RowsAreCopiedByTheirPitches) {
  in_process({}, [] {
    const Program program;
    const CUstream stream = make_stream();
    const Pinned host(64);
    const CUdeviceptr device = make_device_memory(64);
    for (std::uint8_t i = 0; i < 64; ++i) host.data[i] = i;
    CUDA_MEMCPY2D copy = {};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = host.data;
    copy.srcPitch = 16;
    copy.srcXInBytes = 2;
    copy.srcY = 1;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = device;
    copy.dstPitch = 8;
    copy.WidthInBytes = 4;
    copy.Height = 3;
    EXPECT_OK(cuMemsetD8Async(device, 0, 64, stream));
    EXPECT_OK(cuMemcpy2DAsync(&copy, stream));
    EXPECT_OK(cuStreamSynchronize(stream));
    const auto* const got = static_cast<std::uint8_t*>(fake_cuda_bytes(device));
    const std::array<std::uint8_t, 20> want = {18, 19, 20, 21, 0, 0, 0,  0,  34, 35,
                                               36, 37, 0,  0,  0, 0, 50, 51, 52, 53};
    EXPECT_EQ(std::memcmp(got, want.data(), want.size()), 0);
    copy.WidthInBytes = 15;  // with x, wider than the pitch
    EXPECT_EQ(cuMemcpy2DAsync(&copy, stream), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(FakeCudaMemory, CopiesOfUnregisteredMemoryHoldTheCallerAndAreCounted) {
  in_process({}, [] {
    const Program program;
    const CUstream stream = make_stream();
    const CUdeviceptr device = make_device_memory(4);
    std::uint32_t to = 0, from = 77;
    EXPECT_OK(cuMemcpyHtoDAsync(device, &from, 4, stream));
    EXPECT_OK(cuMemcpyDtoHAsync(&to, device, 4, stream));
    EXPECT_EQ(to, 77U);
    EXPECT_EQ(counts().unregistered_copies, 2U);
  });
}

TEST(FakeCudaMemory, APageIsRegisteredOnce) {
  in_process({{"REGISTER_MAX_MIB", "1"}}, [] {
    const Program program;
    const Pinned first(8192);
    EXPECT_EQ(cuMemHostRegister(first.data + 8000, 100, 0),
              CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    EXPECT_EQ(cuMemHostUnregister(first.data + 1), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    void* const large =
        mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_EQ(cuMemHostRegister(large, 1 << 20, 0), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(counts().registered_bytes, 8192U);
    EXPECT_OK(cuMemHostUnregister(first.data));
    EXPECT_EQ(cuMemHostUnregister(first.data), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    EXPECT_OK(cuMemHostRegister(large, 1 << 20, 0));
    EXPECT_EQ(counts().registrations, 1U);
  });
}

TEST(FakeCudaMemory, MemoryThatCannotBeWrittenIsRegisteredAsReadOnly) {
  in_process({}, [] {
    const Program program;
    const CUstream stream = make_stream();
    const CUdeviceptr device = make_device_memory(4096);
    void* const memory = mmap(nullptr, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_EQ(cuMemHostRegister(memory, 4096, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuMemHostRegister(memory, 4096, CU_MEMHOSTREGISTER_READ_ONLY));
    EXPECT_OK(cuMemcpyHtoDAsync(device, memory, 4096, stream));
    EXPECT_EQ(cuMemcpyDtoHAsync(memory, device, 4096, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuStreamSynchronize(stream));
  });
}

TEST(FakeCudaMemory, ACopyFindsPagesThatWerePunchedOut) {
  in_process({}, [] {
    const Program program;
    const CUstream stream = make_stream();
    const CUdeviceptr device = make_device_memory(3 * 4096);
    const int file = memfd_create("test", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(file, 3 * 4096), 0);
    void* const memory = mmap(nullptr, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT_OK(cuMemHostRegister(memory, 3 * 4096, 0));
    EXPECT_EQ(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 4096), 0);
    EXPECT_OK(cuMemcpyDtoHAsync(memory, device, 4096, stream));  // the first page is there
    EXPECT_OK(cuStreamSynchronize(stream));
    EXPECT_OK(cuMemcpyDtoHAsync(memory, device, 3 * 4096, stream));
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(counts().missing_pages, 1U);
  });
}

TEST(FakeCudaMemory, AFreeWaitsForWhatWasQueuedBefore) {
  in_process({}, [] {
    const Program program;
    const CUstream stream = make_stream();
    const Pinned host(4096);
    const CUdeviceptr device = make_device_memory(4096);
    Gate gate;
    gate.hold(stream);
    EXPECT_OK(cuMemcpyDtoHAsync(host.data, device, 4096, stream));
    std::atomic<bool> is_free = false;
    std::atomic<int> id = 0;
    std::thread freeing([&] {
      id = gettid();
      EXPECT_OK(cuCtxSetCurrent(program.context));
      EXPECT_OK(cuMemFree(device));
      is_free = true;
    });
    EXPECT_TRUE(wait_until_held(id));
    EXPECT_FALSE(is_free);
    EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);  // others may call meanwhile
    gate.open();
    freeing.join();
    EXPECT_OK(cuStreamSynchronize(stream));
    EXPECT_EQ(counts().allocations, 0U);
  });
}

TEST(FakeCudaMemory, AFreeThatLocksHoldsUpAllCalls) {
  in_process({{"FREE", "locks"}}, [] {
    const Program program;
    const CUstream stream = make_stream();
    const CUdeviceptr device = make_device_memory(4096);
    Word word;
    EXPECT_OK(cuStreamWaitValue32(stream, word.address, 1, 0));
    std::atomic<bool> is_free = false;
    std::atomic<int> id = 0;
    std::thread freeing([&] {
      EXPECT_OK(cuCtxSetCurrent(program.context));
      EXPECT_OK(cuMemFree(device));
      is_free = true;
    });
    std::thread other([&] {
      id = gettid();
      int count = 0;
      while (!is_free) {
        EXPECT_OK(cuDeviceGetCount(&count));
      }
    });
    // This thread does not call the driver now: the call would end with the free.
    EXPECT_TRUE(wait_until_held(id));
    EXPECT_FALSE(is_free);
    word.store(1);
    freeing.join();
    other.join();
  });
}

TEST(FakeCudaMemory, WorkOnFreedMemoryFailsForEver) {
  in_process({{"FREE", "now"}}, [] {
    const Program program;
    const CUstream stream = make_stream(), other = make_stream();
    const Pinned host(4096);
    const CUdeviceptr device = make_device_memory(4096);
    Gate gate;
    Word word;
    gate.hold(stream);
    EXPECT_OK(cuMemcpyDtoHAsync(host.data, device, 4096, stream));
    EXPECT_OK(cuStreamWaitValue32(other, word.address, 1, 0));
    EXPECT_OK(cuMemFree(device));
    gate.open();
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuStreamSynchronize(other),
              CUDA_ERROR_ILLEGAL_ADDRESS);  // and it does not wait any more
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
  });
}

TEST(FakeCudaMemory, CopiesOfADirectionShareItsRate) {
  in_process({{"COPY_GB_S", "0.1"}}, [] {
    const Program program;
    constexpr std::size_t kBytes = 4'000'000;
    const Pinned host(2 * kBytes);
    const CUdeviceptr device = make_device_memory(2 * kBytes);
    const CUstream one = make_stream(), two = make_stream();
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_OK(cuMemcpyDtoHAsync(host.data, device, kBytes, one));
    EXPECT_OK(cuMemcpyDtoHAsync(host.data + kBytes, device + kBytes, kBytes, two));
    EXPECT_OK(cuStreamSynchronize(one));
    EXPECT_OK(cuStreamSynchronize(two));
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(80));
  });
}

TEST(FakeCudaMemory, PointersSayWhatTheyAre) {
  in_process({{"DEVICES", "2"}}, [] {
    const Program program;
    const Pinned host(4096);
    CUcontext second = nullptr;
    EXPECT_OK(cuDevicePrimaryCtxRetain(&second, 1));
    EXPECT_OK(cuCtxPushCurrent(second));
    const CUdeviceptr device = make_device_memory(100);
    EXPECT_OK(cuCtxPopCurrent(nullptr));
    CUcontext context = nullptr;
    int ordinal = -1;
    unsigned type = 9;
    std::size_t size = 0;
    std::array<CUpointer_attribute, 4> attributes = {
        CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    std::array<void*, 4> values = {&context, &ordinal, &type, &size};
    EXPECT_OK(cuPointerGetAttributes(4, attributes.data(), values.data(), device + 50));
    EXPECT_EQ(context, second);
    EXPECT_EQ(ordinal, 1);
    EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
    EXPECT_EQ(size, 100U);
    EXPECT_OK(cuPointerGetAttributes(4, attributes.data(), values.data(),
                                     reinterpret_cast<CUdeviceptr>(host.data)));
    EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_HOST));
    EXPECT_OK(cuPointerGetAttributes(4, attributes.data(), values.data(),
                                     reinterpret_cast<CUdeviceptr>(&size)));
    EXPECT_EQ(type, 0U);
    EXPECT_EQ(context, nullptr);
    EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    reinterpret_cast<CUdeviceptr>(&size)),
              CUDA_ERROR_INVALID_VALUE);
  });
}

}  // namespace
}  // namespace fake_cuda_testing
