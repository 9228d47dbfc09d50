// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include <cuda.h>
#include <unistd.h>

#include "base/log.h"
#include "client_fixture.h"
#include "fake_cuda.h"
#include "own_process.h"

namespace braid {

// A job of one rank, whose sums are its inputs, and a GPU that is the fake driver's. Each test's
// body runs in a process of its own, for the driver reads its settings once.
class DeviceTest : public ClientTest {
 protected:
  using Settings = own_process::Environment;

  static void in_process(const Settings& settings, const std::function<void()>& body) {
    own_process::run(settings, body);
  }

  // From here on: for bodies.

  void open(TestDaemon::Options options = {}, uint64_t arena_bytes = 64 << 20) {
    // A process may end while the daemon's thread runs in it, and its logger goes then.
    EXPECT_TRUE(set_log_level("error").is_ok());
    start_daemon(std::move(options));
    braid_job_options given = job_options();
    given.arena_bytes = arena_bytes;
    job_ = open_job(given);
    tensor_ = register_dynamic(job_, "device");
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  }

  CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuMemAlloc(&memory, bytes), CUDA_SUCCESS);
    return memory;
  }
  // 1, 2, 3 … as int32.
  CUdeviceptr numbers(size_t count) {
    const CUdeviceptr memory = allocate(count * sizeof(int32_t));
    std::vector<int32_t> values(count);
    std::iota(values.begin(), values.end(), 1);
    std::memcpy(fake_cuda_bytes(memory), values.data(), count * sizeof(int32_t));
    return memory;
  }
  static bool are_numbers(CUdeviceptr memory, size_t count) {
    const auto* values = static_cast<const int32_t*>(fake_cuda_bytes(memory));
    for (size_t i = 0; i < count; ++i)
      if (values[i] != static_cast<int32_t>(i + 1)) return false;
    return true;
  }
  static bool are_all(CUdeviceptr memory, size_t count, int32_t value) {
    const auto* values = static_cast<const int32_t*>(fake_cuda_bytes(memory));
    for (size_t i = 0; i < count; ++i)
      if (values[i] != value) return false;
    return true;
  }

  braid_operation sum_of(uint64_t count) const {
    braid_operation operation = all_reduce(tensor_, 0, nullptr);
    operation.dtype = BRAID_INT32;
    operation.count = count;
    return operation;
  }
  braid_device_buffers buffers(CUdeviceptr input, CUdeviceptr result) const {
    braid_device_buffers given{};
    given.struct_size = sizeof(given);
    given.input = input;
    given.result = result;
    given.stream = stream_;
    given.flags = BRAID_DEVICE_STREAM_WAITS;
    return given;
  }
  braid_ticket submit_device(const braid_operation& operation, const braid_device_buffers& given) {
    braid_ticket ticket = 0;
    EXPECT_EQ(braid_submit_device(job_, &operation, &given, &ticket), BRAID_OK)
        << braid_error_message();
    return ticket;
  }
  int refused(const braid_operation& operation, const braid_device_buffers& given) {
    braid_ticket ticket = 0;
    return braid_submit_device(job_, &operation, &given, &ticket);
  }
  bool is_done(braid_ticket ticket) {
    int done = 0;
    EXPECT_EQ(braid_test(job_, ticket, &done), BRAID_OK) << braid_error_message();
    return done != 0;
  }
  void finish_stream(CUstream stream) { EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS); }
  void finish(braid_ticket ticket) {
    EXPECT_EQ(braid_stream_wait(job_, ticket, stream_), BRAID_OK) << braid_error_message();
    finish_stream(stream_);
    EXPECT_EQ(braid_device_release(job_, ticket), BRAID_OK) << braid_error_message();
  }
  void close() { EXPECT_EQ(braid_close(std::exchange(job_, nullptr)), BRAID_OK); }

  // A kernel that lasts until go_on().
  void hold(CUstream stream) {
    EXPECT_EQ(fake_cuda_launch(
                  stream,
                  [](void* held) {
                    while (static_cast<std::atomic<bool>*>(held)->load()) ::usleep(100);
                  },
                  &is_held_),
              CUDA_SUCCESS);
  }
  void go_on() { is_held_ = false; }

  braid_job* job_ = nullptr;
  uint32_t tensor_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;

 private:
  std::atomic<bool> is_held_ = true;
};

}  // namespace braid
