// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "bench/gpu/host_memory.h"
#include "bench/gpu/probes.h"
#include "bench/gpu/stopwatch.h"

namespace braid::gpu_probe {
namespace {

constexpr size_t kBytes = 1U << 20;
constexpr uint32_t kReleased = 1;
constexpr auto kHolderSettles = std::chrono::milliseconds(20);
constexpr auto kCallersTry = std::chrono::milliseconds(200);
constexpr double kGoOnSeconds = 3;
constexpr int kStuckExitCode = 3;

enum class Holder : uint8_t { Nothing, Free, Allocate, Synchronize, Unregister };
constexpr std::pair<Holder, const char*> kHolders[] = {{Holder::Nothing, "nothing"},
                                                       {Holder::Free, "cuMemFree"},
                                                       {Holder::Allocate, "cuMemAlloc"},
                                                       {Holder::Synchronize, "cuCtxSynchronize"},
                                                       {Holder::Unregister, "cuMemHostUnregister"}};

// What the holder's call takes away, and what the callers use.
struct Scene {
  Words words;
  SharedMemory page, host;
  Registration page_registration, host_registration;
  DeviceMemory taken, device;
  Event event;
  Stream waiting, early;
};

Result<Scene> make_scene(const Gpu& gpu) {
  Result<Words> words = Words::make(gpu);
  if (!words.is_ok()) return words.status();
  Result<SharedMemory> page = SharedMemory::make(kBytes, Pages::Small);
  if (!page.is_ok()) return page.status();
  Result<SharedMemory> host = SharedMemory::make(kBytes, Pages::Small);
  if (!host.is_ok()) return host.status();
  Result<Registration> page_registration = register_memory(gpu, page->data(), kBytes);
  if (!page_registration.is_ok()) return page_registration.status();
  Result<Registration> host_registration = register_memory(gpu, host->data(), kBytes);
  if (!host_registration.is_ok()) return host_registration.status();
  Result<DeviceMemory> taken = make_device_memory(gpu, 4 * kBytes);
  if (!taken.is_ok()) return taken.status();
  Result<DeviceMemory> device = make_device_memory(gpu, kBytes);
  if (!device.is_ok()) return device.status();
  Result<Event> event = make_event(gpu);
  if (!event.is_ok()) return event.status();
  Result<Stream> waiting = make_stream(gpu);
  if (!waiting.is_ok()) return waiting.status();
  Result<Stream> early = make_stream(gpu);
  if (!early.is_ok()) return early.status();
  return Scene{std::move(*words),
               std::move(*page),
               std::move(*host),
               std::move(*page_registration),
               std::move(*host_registration),
               std::move(*taken),
               std::move(*device),
               std::move(*event),
               std::move(*waiting),
               std::move(*early)};
}

// The status does not matter: the question is whether the call returns.
void hold(const Gpu& gpu, Scene& scene, Holder holder) {
  switch (holder) {
    case Holder::Nothing:
      break;
    case Holder::Free:
      (void)gpu.MemFree(scene.taken.get());
      scene.taken.forget();
      break;
    case Holder::Allocate: {
      const Result<DeviceMemory> more = make_device_memory(gpu, 8 * kBytes);
      break;
    }
    case Holder::Synchronize:
      (void)gpu.CtxSynchronize();
      break;
    case Holder::Unregister:
      (void)gpu.MemHostUnregister(static_cast<void*>(scene.page.data()));
      scene.page_registration.forget();
      break;
  }
}

constexpr std::array kCallNames = {"event_query", "event_record", "memcpy_d2h", "memcpy_h2d",
                                   "write_value"};

void call(const Gpu& gpu, const Scene& scene, size_t number) {
  auto* host = static_cast<void*>(scene.host.data());
  const CUstream early = scene.early.get();
  switch (number) {
    case 0:
      (void)gpu.EventQuery(scene.event.get());
      break;
    case 1:
      (void)gpu.EventRecord(scene.event.get(), early);
      break;
    case 2:
      (void)gpu.MemcpyDtoHAsync(host, scene.device.get(), size_t{4096}, early);
      break;
    case 3:
      (void)gpu.MemcpyHtoDAsync(scene.device.get(), static_cast<const void*>(host), size_t{4096},
                                early);
      break;
    default:
      (void)gpu.StreamWriteValue32(early, scene.words.address(5), kReleased, 0U);
  }
}

// Threads that each make one call, and whether the call has returned.
class Callers {
 public:
  void start(const std::function<void()>& one) {
    returned_.push_back(std::make_unique<std::atomic<bool>>(false));
    threads_.emplace_back([one, returned = returned_.back().get()] {
      one();
      *returned = true;
    });
  }
  bool has_returned(size_t number) const { return *returned_[number]; }
  bool have_all_returned() const {
    return std::all_of(returned_.begin(), returned_.end(),
                       [](const auto& one) { return one->load(); });
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::vector<std::unique_ptr<std::atomic<bool>>> returned_;
  std::vector<std::thread> threads_;
};

Status try_holder(const Gpu& gpu, const Say& say, Holder holder, const char* name) {
  Result<Scene> scene = make_scene(gpu);
  if (!scene.is_ok()) return scene.status();
  BRAID_RETURN_IF_ERROR(gpu.StreamWaitValue32(scene->waiting.get(), scene->words.address(0),
                                              kReleased,
                                              static_cast<unsigned>(CU_STREAM_WAIT_VALUE_GEQ)));
  if (Status recorded = gpu.EventRecord(scene->event.get(), scene->waiting.get());
      !recorded.is_ok()) {
    scene->words.store(0, kReleased);
    return recorded;
  }
  Callers callers;
  callers.start([&] {
    if (gpu.make_current().is_ok()) hold(gpu, *scene, holder);
  });
  std::this_thread::sleep_for(kHolderSettles);
  nlohmann::json row{
      {"test", "holder"}, {"holder", name}, {"holder_waits", !callers.has_returned(0)}};
  for (size_t i = 0; i < kCallNames.size(); ++i) {
    callers.start([&, i] {
      if (gpu.make_current().is_ok()) call(gpu, *scene, i);
    });
  }
  std::this_thread::sleep_for(kCallersTry);
  for (size_t i = 0; i < kCallNames.size(); ++i) row[kCallNames[i]] = callers.has_returned(i + 1);
  row["word_came"] = scene->words.load(5) == kReleased;
  scene->words.store(0, kReleased);  // no call of CUDA: this must let all go on
  const bool go_on = poll_until([&] { return callers.have_all_returned(); }, kGoOnSeconds);
  row["all_go_on_after_host_store"] = go_on;
  say(row);
  if (!go_on) ::_exit(kStuckExitCode);
  callers.join();
  return gpu.CtxSynchronize();
}

}  // namespace

Status probe_holders(const Gpu& gpu, const Say& say) {
  for (const auto& [holder, name] : kHolders) {
    BRAID_RETURN_IF_ERROR(try_holder(gpu, say, holder, name));
  }
  return Status::ok();
}

}  // namespace braid::gpu_probe
