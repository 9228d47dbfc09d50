// SPDX-License-Identifier: Apache-2.0
// What tests of the fake CUDA driver share: a process per test, and a program's streams and memory.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <cuda.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "fake_cuda.h"
#include "own_process.h"

namespace fake_cuda_testing {

using DriverSettings = own_process::Environment;

/// Runs the body in a process of its own, as the driver reads its settings once. Once per test.
inline void in_process(const DriverSettings& settings, const std::function<void()>& body) {
  DriverSettings environment;
  for (const auto& [name, value] : settings) {
    environment.emplace("FAKE_CUDA_" + name, value);
  }
  own_process::run(environment, body);
}

/// The deadline only keeps a broken test from hanging.
template <typename Condition>
bool wait_until(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Waits until this thread of the process sleeps, and not only for a moment. One that is only not
/// scheduled does not.
inline bool wait_until_held(const std::atomic<int>& thread_id) {
  int samples = 0;
  return wait_until([&] {
    std::string stat;
    std::getline(std::ifstream("/proc/self/task/" + std::to_string(thread_id) + "/stat"), stat);
    const bool sleeps = stat.find(") S ") != std::string::npos;
    samples = sleeps ? samples + 1 : 0;
    return samples == 20;
  });
}

inline fake_cuda_counts counts() {
  fake_cuda_counts result{};
  fake_cuda_get_counts(&result);
  return result;
}

#define EXPECT_OK(call) EXPECT_EQ(call, CUDA_SUCCESS)

/// The driver is initialised, and the primary context of device 0 is current.
struct Program {
  Program() {
    EXPECT_OK(cuInit(0));
    EXPECT_OK(cuDevicePrimaryCtxRetain(&context, 0));
    EXPECT_OK(cuCtxSetCurrent(context));
  }
  CUcontext context = nullptr;
};

inline CUstream make_stream() {
  CUstream stream = nullptr;
  EXPECT_OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -1));
  return stream;
}

inline CUevent make_event() {
  CUevent event = nullptr;
  EXPECT_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  return event;
}

inline CUdeviceptr make_device_memory(std::size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT_OK(cuMemAlloc(&address, bytes));
  return address;
}

/// Host memory that is registered.
struct Pinned {
  explicit Pinned(std::size_t size) : bytes(size) {
    data = static_cast<std::uint8_t*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(static_cast<void*>(data), MAP_FAILED);
    EXPECT_OK(
        cuMemHostRegister(data, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
  }
  CUdeviceptr device() const {
    CUdeviceptr address = 0;
    EXPECT_OK(cuMemHostGetDevicePointer(&address, data, 0));
    return address;
  }
  std::uint8_t* data;
  std::size_t bytes;
};

/// A word that streams write and wait for.
struct Word {
  Word() : page(4096), address(page.device()) {}
  void store(std::uint32_t value) { __atomic_store_n(at(), value, __ATOMIC_RELEASE); }
  std::uint32_t load() const { return __atomic_load_n(at(), __ATOMIC_ACQUIRE); }
  std::uint32_t* at() const { return reinterpret_cast<std::uint32_t*>(page.data); }
  Pinned page;
  CUdeviceptr address;
};

/// A kernel that holds its stream until the gate opens.
class Gate {
 public:
  void hold(CUstream stream) {
    EXPECT_EQ(
        fake_cuda_launch(
            stream,
            [](void* gate) {
              EXPECT_TRUE(wait_until([=] { return static_cast<Gate*>(gate)->is_open_.load(); }));
            },
            this),
        0);
  }
  void open() { is_open_ = true; }

 private:
  std::atomic<bool> is_open_ = false;
};

}  // namespace fake_cuda_testing
