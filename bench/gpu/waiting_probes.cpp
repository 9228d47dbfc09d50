// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "bench/gpu/host_memory.h"
#include "bench/gpu/probes.h"
#include "bench/gpu/stopwatch.h"

namespace braid::gpu_probe {
namespace {

constexpr int kBlockedStreams[] = {1, 4, 8, 16, 32, 48, 64, 128};
constexpr size_t kCopyBytes = 1U << 20;
// A copy of this size takes less than a millisecond.
constexpr double kCopyPatienceSeconds = 0.1;
// Far more than the calls of one count take if none stands still.
constexpr double kCallsPatienceSeconds = 3;
constexpr double kGoesOnSeconds = 3;
constexpr int kStoodStillExitCode = 3;
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

// What the copies beside streams that wait use. The row is read when the calls are over, or stand
// still.
struct Beside {
  const Gpu& gpu;
  Words& words;
  CUstream early, urgent;
  CUdeviceptr device;
  char* host;
  nlohmann::json row;
  // Which call is being made.
  std::atomic<const char*> call = "";
};

// What a copy of each direction took; null: it did not end while the streams waited.
Status add_copies(Beside& beside, const std::string& name, CUstream stream) {
  const Gpu& gpu = beside.gpu;
  for (const bool is_to_host : {true, false}) {
    const Stopwatch watch;
    if (is_to_host) {
      beside.call = "cuMemcpyDtoHAsync";
      BRAID_RETURN_IF_ERROR(
          gpu.MemcpyDtoHAsync(static_cast<void*>(beside.host), beside.device, kCopyBytes, stream));
    } else {
      beside.call = "cuMemcpyHtoDAsync";
      BRAID_RETURN_IF_ERROR(gpu.MemcpyHtoDAsync(
          beside.device, static_cast<const void*>(beside.host), kCopyBytes, stream));
    }
    beside.call = "cuStreamQuery";
    const bool ended =
        poll_until([&] { return gpu.StreamQuery(stream).is_ok(); }, kCopyPatienceSeconds);
    beside.row[name + (is_to_host ? "_d2h_ms" : "_h2d_ms")] =
        ended ? nlohmann::json(watch.ms()) : nlohmann::json(nullptr);
  }
  return Status::ok();
}

Status copy_beside(Beside& beside, int count) {
  const Gpu& gpu = beside.gpu;
  std::vector<Stream> blocked;
  Gate gate(beside.words);  // opens before the streams go
  for (int i = 0; i < count; ++i) {
    beside.call = "cuStreamCreate";
    Result<Stream> stream = make_stream(gpu);
    if (!stream.is_ok()) return stream.status();
    blocked.push_back(std::move(*stream));
    beside.call = "cuStreamWaitValue32";
    BRAID_RETURN_IF_ERROR(gate.hold(gpu, blocked.back().get()));
    beside.call = "cuMemsetD8Async";
    BRAID_RETURN_IF_ERROR(gpu.MemsetD8Async(beside.device, static_cast<unsigned char>(0),
                                            size_t{64}, blocked.back().get()));
    beside.row["streams_made"] = i + 1;
  }
  beside.call = "cuStreamCreate";
  Result<Stream> late = make_stream(gpu);
  if (!late.is_ok()) return late.status();
  BRAID_RETURN_IF_ERROR(add_copies(beside, "early", beside.early));
  BRAID_RETURN_IF_ERROR(add_copies(beside, "urgent", beside.urgent));
  BRAID_RETURN_IF_ERROR(add_copies(beside, "late", late->get()));
  beside.call = "cuCtxSynchronize";
  gate.open();
  return gpu.CtxSynchronize();
}

// A call that stands still is named, and whether the store of the host let it go on. If not, the
// process ends with the row.
Status copy_beside_watched(Beside& beside, int count, const Say& say) {
  Gate::close(beside.words);
  std::atomic<bool> is_over = false;
  Status status;
  std::thread caller([&] {
    status = beside.gpu.make_current();
    if (status.is_ok()) status = copy_beside(beside, count);
    is_over = true;
  });
  const char* stood_still = nullptr;
  if (!poll_until([&] { return is_over.load(); }, kCallsPatienceSeconds)) {
    stood_still = beside.call;
    Gate(beside.words).open();
    if (!poll_until([&] { return is_over.load(); }, kGoesOnSeconds)) {
      say({{"test", "blocked-streams"},
           {"blocked", count},
           {"stood_still_in", stood_still},
           {"went_on_after_host_store", false}});
      ::_exit(kStoodStillExitCode);
    }
  }
  caller.join();
  beside.row["stood_still_in"] =
      stood_still == nullptr ? nlohmann::json(nullptr) : nlohmann::json(stood_still);
  if (stood_still != nullptr) beside.row["went_on_after_host_store"] = true;
  return status;
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
    Beside beside{gpu,
                  *words,
                  early->get(),
                  urgent->get(),
                  device->get(),
                  host->data(),
                  {{"test", "blocked-streams"},
                   {"connections", connections == nullptr ? "default" : connections},
                   {"blocked", count}}};
    BRAID_RETURN_IF_ERROR(copy_beside_watched(beside, count, say));
    say(beside.row);
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
