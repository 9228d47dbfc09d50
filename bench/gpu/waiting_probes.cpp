// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/gpu/host_memory.h"
#include "bench/gpu/probes.h"
#include "bench/gpu/stopwatch.h"

namespace braid::gpu_probe {
namespace {

constexpr int kBlockedStreams[] = {1, 4, 8, 16, 32, 64};
constexpr size_t kCopyBytes = 1U << 20;
// A copy of this size takes less than a millisecond.
constexpr double kCopyPatienceSeconds = 0.1;
constexpr auto kFilling = std::chrono::milliseconds(300);
constexpr int kQueuedMax = 20'000;

// Streams wait until it is opened, by a store of the host alone, or by its destructor.
class Gate {
 public:
  explicit Gate(Words& words) : words_(words) {}
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { open(); }

  Status hold(const Gpu& gpu, CUstream stream) const {
    return gpu.StreamWaitValue32(stream, words_.address(0), 1U,
                                 static_cast<unsigned>(CU_STREAM_WAIT_VALUE_EQ));
  }
  void open() { words_.store(0, 1); }
  bool is_open() const { return words_.load(0) == 1; }
  static void close(Words& words) { words.store(0, 0); }

 private:
  Words& words_;
};

// What a copy of each direction took; null: it did not end while the streams waited.
Status add_copies(const Gpu& gpu, const std::string& name, CUstream stream, CUdeviceptr device,
                  char* host, nlohmann::json& row) {
  for (const bool is_to_host : {true, false}) {
    const Stopwatch watch;
    if (is_to_host) {
      BRAID_RETURN_IF_ERROR(
          gpu.MemcpyDtoHAsync(static_cast<void*>(host), device, kCopyBytes, stream));
    } else {
      BRAID_RETURN_IF_ERROR(
          gpu.MemcpyHtoDAsync(device, static_cast<const void*>(host), kCopyBytes, stream));
    }
    const bool ended =
        poll_until([&] { return gpu.StreamQuery(stream).is_ok(); }, kCopyPatienceSeconds);
    row[name + (is_to_host ? "_d2h_ms" : "_h2d_ms")] =
        ended ? nlohmann::json(watch.ms()) : nlohmann::json(nullptr);
  }
  return Status::ok();
}

Status copy_beside(const Gpu& gpu, int count, CUstream early, CUstream urgent, CUdeviceptr device,
                   char* host, Words& words, nlohmann::json& row) {
  std::vector<Stream> blocked;
  Gate::close(words);
  Gate gate(words);  // opens before the streams go
  for (int i = 0; i < count; ++i) {
    Result<Stream> stream = make_stream(gpu);
    if (!stream.is_ok()) return stream.status();
    blocked.push_back(std::move(*stream));
    BRAID_RETURN_IF_ERROR(gate.hold(gpu, blocked.back().get()));
    BRAID_RETURN_IF_ERROR(
        gpu.MemsetD8Async(device, static_cast<unsigned char>(0), size_t{64}, blocked.back().get()));
  }
  Result<Stream> late = make_stream(gpu);
  if (!late.is_ok()) return late.status();
  BRAID_RETURN_IF_ERROR(add_copies(gpu, "early", early, device, host, row));
  BRAID_RETURN_IF_ERROR(add_copies(gpu, "urgent", urgent, device, host, row));
  BRAID_RETURN_IF_ERROR(add_copies(gpu, "late", late->get(), device, host, row));
  gate.open();
  return gpu.CtxSynchronize();
}

}  // namespace

Status probe_blocked_streams(const Gpu& gpu, const Say& say) {
  const char* connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  Result<SharedMemory> host = SharedMemory::make(kCopyBytes, Pages::Small);
  if (!host.is_ok()) return host.status();
  Result<Registration> registration = register_memory(gpu, host->data(), kCopyBytes);
  if (!registration.is_ok()) return registration.status();
  Result<DeviceMemory> device = make_device_memory(gpu, kCopyBytes);
  if (!device.is_ok()) return device.status();
  Result<Words> words = Words::make(gpu);
  if (!words.is_ok()) return words.status();
  int least_urgent = 0;
  int most_urgent = 0;
  BRAID_RETURN_IF_ERROR(gpu.CtxGetStreamPriorityRange(&least_urgent, &most_urgent));
  Result<Stream> early = make_stream(gpu);
  if (!early.is_ok()) return early.status();
  Result<Stream> urgent = make_stream(gpu, most_urgent);
  if (!urgent.is_ok()) return urgent.status();
  for (const int count : kBlockedStreams) {
    nlohmann::json row{{"test", "blocked-streams"},
                       {"connections", connections == nullptr ? "default" : connections},
                       {"blocked", count}};
    BRAID_RETURN_IF_ERROR(copy_beside(gpu, count, early->get(), urgent->get(), device->get(),
                                      host->data(), *words, row));
    say(row);
  }
  return Status::ok();
}

Status probe_queue_depth(const Gpu& gpu, const Say& say) {
  Result<DeviceMemory> device = make_device_memory(gpu, kCopyBytes);
  if (!device.is_ok()) return device.status();
  Result<Words> words = Words::make(gpu);
  if (!words.is_ok()) return words.status();
  Result<Stream> stream = make_stream(gpu);
  if (!stream.is_ok()) return stream.status();
  Gate::close(*words);
  Gate gate(*words);
  BRAID_RETURN_IF_ERROR(gate.hold(gpu, stream->get()));
  std::atomic<int> queued = 0;
  Status filled;
  std::thread filler([&] {
    filled = gpu.make_current();
    while (filled.is_ok() && queued < kQueuedMax && !gate.is_open()) {
      filled = gpu.MemsetD8Async(device->get(), static_cast<unsigned char>(0), size_t{64},
                                 stream->get());
      if (filled.is_ok()) ++queued;
    }
  });
  std::this_thread::sleep_for(kFilling);
  const int depth = queued;
  gate.open();
  filler.join();
  BRAID_RETURN_IF_ERROR(filled);
  BRAID_RETURN_IF_ERROR(gpu.CtxSynchronize());
  say({{"test", "queue-depth"},
       {"calls_until_the_caller_waits",
        depth < kQueuedMax ? nlohmann::json(depth) : nlohmann::json(nullptr)},
       {"calls_most", kQueuedMax}});
  return Status::ok();
}

}  // namespace braid::gpu_probe
