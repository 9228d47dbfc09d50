// SPDX-License-Identifier: Apache-2.0
// One rank that adds up device memory until something dies:
//   device_outage SOCKET MASTER_ADDRESS MASTER_NODE RANK WORLD_SIZE SEED TIMEOUT_MS [GPU]
// With the number of its GPU it goes in two levels if it can, and says in how many. Says "adding"
// when the first sum is there. When a call fails it says what the call said, and "released" when no
// stream waits any more. Each result is looked at in stream order, and must be the sum or, when all
// is over, bytes of 0xFF. Ends with 0 if so.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <braid.h>
#include <cuda.h>

#include "fake_cuda/fake_cuda.h"

namespace {

constexpr uint64_t kElementsMax = 3 << 20;
constexpr size_t kMemories = 4;

[[noreturn]] void end(const std::string& fault) {
  std::printf("fault: %s\n", fault.c_str());
  (void)std::fflush(stdout);
  std::_Exit(1);
}

void cuda(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) end(std::string(what) + " gave " + std::to_string(result));
}

void braid(int error, const char* what) {
  if (error != BRAID_OK) end(std::string(what) + ": " + braid_error_message());
}

// A tensor in device memory and its sum, and the kernels that fill the one and look at the other.
struct Tensor {
  CUdeviceptr memory = 0;
  CUdeviceptr result = 0;
  uint64_t count = 0;
  int32_t sum = 0;
  std::atomic<int> right = 0;
  std::atomic<int> failed = 0;
  std::atomic<int> wrong = 0;

  static void fill(void* self) {
    auto& tensor = *static_cast<Tensor*>(self);
    std::fill_n(static_cast<int32_t*>(fake_cuda_bytes(tensor.memory)), tensor.count, 1);
    // No sum of an operation before.
    std::fill_n(static_cast<int32_t*>(fake_cuda_bytes(tensor.result)), tensor.count, 0);
  }
  static void look(void* self) {
    auto& tensor = *static_cast<Tensor*>(self);
    const auto* data = static_cast<const int32_t*>(fake_cuda_bytes(tensor.result));
    uint64_t sums = 0;
    uint64_t failures = 0;
    for (uint64_t i = 0; i < tensor.count; ++i) {
      sums += data[i] == tensor.sum ? 1 : 0;
      failures += data[i] == -1 ? 1 : 0;
    }
    if (sums == tensor.count) {
      ++tensor.right;
    } else if (sums + failures == tensor.count) {
      ++tensor.failed;  // some of its pieces had ended
    } else {
      ++tensor.wrong;
    }
  }
};

void launch(CUstream stream, void (*kernel)(void*), Tensor& tensor) {
  cuda(static_cast<CUresult>(fake_cuda_launch(stream, kernel, &tensor)), "a kernel");
}

class Rank {
 public:
  Rank(char** arguments, const char* gpu)
      : size_(static_cast<uint32_t>(std::atoi(arguments[4]))),
        random_(std::strtoull(arguments[5], nullptr, 10)),
        timeout_ms_(static_cast<uint32_t>(std::atoi(arguments[6]))) {
    braid_job_options options{};
    options.struct_size = sizeof(options);
    options.socket_path = arguments[0];
    options.name = "outage";
    options.master_address = arguments[1];
    options.master_node = std::strtoull(arguments[2], nullptr, 10);
    options.token = arguments[5];
    options.rank = static_cast<uint32_t>(std::atoi(arguments[3]));
    options.world_size = size_;
    options.timeout_ms = 60'000;
    braid(braid_open(&options, &job_), "braid_open");
    braid_tensor_options tensor{};
    tensor.struct_size = sizeof(tensor);
    tensor.name = "device";
    tensor.backward_order = BRAID_NO_ORDER;
    tensor.dynamic = 1;
    braid(braid_register(job_, &tensor, 1, &tensor_), "braid_register");
    cuda(cuInit(0), "cuInit");
    CUcontext context = nullptr;
    const int device = gpu == nullptr ? 0 : std::atoi(gpu);
    cuda(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    cuda(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    cuda(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    if (gpu != nullptr) open_levels();
    for (Tensor& memory : memories_) {
      cuda(cuMemAlloc(&memory.memory, kElementsMax * sizeof(int32_t)), "cuMemAlloc");
      cuda(cuMemAlloc(&memory.result, kElementsMax * sizeof(int32_t)), "cuMemAlloc");
      memory.sum = static_cast<int32_t>(size_);
    }
  }

  // Until a call fails.
  void add_up() {
    std::string error;
    for (size_t i = 0; error.empty(); ++i) {
      Tensor& tensor = memories_[i % kMemories];
      while (cuStreamQuery(stream_) == CUDA_ERROR_NOT_READY && i % kMemories == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(100));  // `count` is read
      error = add(tensor);
      if (i == 0 && memories_[0].right == 0) cuda(cuStreamSynchronize(stream_), "the first sum");
      if (i == 0) say("adding");
    }
    say("error: " + error);
  }

  // Streams go on within the deadline and some seconds: the caller's time limit is the test.
  void await_streams() {
    while (cuStreamQuery(stream_) == CUDA_ERROR_NOT_READY)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    int right = 0;
    int failed = 0;
    for (const Tensor& tensor : memories_) {
      if (tensor.wrong != 0) end("a result is neither the sum nor 0xFF");
      right += tensor.right;
      failed += tensor.failed;
    }
    say("released after " + std::to_string(right) + " sums, " + std::to_string(failed) + " failed");
  }

  void close() { braid(braid_close(job_), "braid_close"); }

 private:
  // With the machine's clock, which the trainers share: who stood still, and since when.
  static void say(const std::string& text) {
    const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
    std::printf("%s [%.3f]\n", text.c_str(), now.count());
    (void)std::fflush(stdout);
  }

  void open_levels() {
    uint32_t levels = 0;
    char reason[256] = "";
    braid(braid_open_levels(job_, stream_, 10'000, &levels, reason, sizeof(reason)),
          "braid_open_levels");
    say(std::to_string(levels) + " levels" + (levels == 2 ? "" : std::string(": ") + reason));
  }

  // What failed; empty: nothing.
  std::string add(Tensor& tensor) {
    tensor.count = 1 + random_() % (random_() % 4 == 0 ? kElementsMax : 50'000);
    launch(stream_, Tensor::fill, tensor);
    braid_operation operation{};
    operation.struct_size = sizeof(operation);
    operation.tensor = tensor_;
    operation.reduction = BRAID_SUM;
    operation.dtype = BRAID_INT32;
    operation.count = tensor.count;
    operation.timeout_ms = timeout_ms_;
    braid_device_buffers buffers{};
    buffers.struct_size = sizeof(buffers);
    buffers.input = tensor.memory;
    buffers.result = tensor.result;
    buffers.stream = stream_;
    buffers.flags = BRAID_DEVICE_STREAM_WAITS;
    braid_ticket ticket = 0;
    if (braid_submit_device(job_, &operation, &buffers, &ticket) != BRAID_OK)
      return braid_error_message();
    const int waited = braid_stream_wait(job_, ticket, stream_);
    const std::string error = waited == BRAID_OK ? "" : braid_error_message();
    launch(stream_, Tensor::look, tensor);
    braid(braid_device_release(job_, ticket), "braid_device_release");
    return error;
  }

  const uint32_t size_;
  std::mt19937_64 random_;
  const uint32_t timeout_ms_;
  braid_job* job_ = nullptr;
  uint32_t tensor_ = 0;
  CUstream stream_ = nullptr;
  Tensor memories_[kMemories];
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8 && argc != 9) {
    std::fputs(
        "usage: device_outage SOCKET MASTER_ADDRESS MASTER_NODE RANK WORLD_SIZE SEED "
        "TIMEOUT_MS [GPU]\n",
        stderr);
    return 2;
  }
  Rank rank(argv + 1, argv[8]);
  rank.add_up();
  rank.await_streams();
  rank.close();
}
