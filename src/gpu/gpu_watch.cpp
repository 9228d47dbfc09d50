// SPDX-License-Identifier: Apache-2.0
#include "gpu/gpu_watch.h"

#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/ranges.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "gpu/gpu_history.h"

namespace braid {
namespace {

std::string describe_place(const GpuFacts& gpu) {
  std::string place = fmt::format("{}, {}", describe_gpu(gpu), gpu.name);
  if (gpu.numa_node >= 0) place += fmt::format(", NUMA node {}", gpu.numa_node);
  if (!gpu.near_rails.empty())
    place += fmt::format(", nearest rail {}", fmt::join(gpu.near_rails, ", "));
  return place;
}

}  // namespace

struct GpuWatch::State {
  explicit State(GpuWatchOptions own) : options(std::move(own)) {}

  void run();
  // Until it should end, or the library has to be begun anew.
  void watch(GpuReader& reader, GpuHistory& history);
  // True: it should end.
  bool pause(uint32_t ms) BRAID_EXCLUDES(mutex);
  void begin_call() BRAID_EXCLUDES(mutex);
  // True: it should end.
  bool end_call() BRAID_EXCLUDES(mutex);
  void publish(std::vector<GpuFacts> gpus) BRAID_EXCLUDES(mutex);

  const GpuWatchOptions options;
  const SystemClock clock;
  Mutex mutex;
  std::condition_variable_any changed;
  bool is_ending BRAID_GUARDED_BY(mutex) = false;
  bool has_ended BRAID_GUARDED_BY(mutex) = false;
  uint64_t call_began_ns BRAID_GUARDED_BY(mutex) = 0;  // 0: none is under way
  std::vector<GpuFacts> gpus BRAID_GUARDED_BY(mutex);
  uint64_t readings BRAID_GUARDED_BY(mutex) = 0;
  std::thread thread;  // of the watch's own thread only
};

void GpuWatch::State::run() {
  const auto functions = load_nvml(options.library);
  if (!functions) {
    if (functions.status().code() == StatusCode::NotFound) {
      BRAID_LOG_DEBUG("no GPUs are watched: {}", functions.status().message());
    } else {
      BRAID_LOG_WARN("no GPUs are watched: {}", functions.status().message());
    }
    return;
  }
  GpuHistory history;
  std::string told;  // why it did not begin
  for (;;) {
    begin_call();
    auto reader = GpuReader::create(*functions, options.reader);
    if (end_call()) return;
    if (reader) {
      told.clear();
      watch(**reader, history);
      begin_call();
      reader->reset();
      if (end_call()) return;
      continue;
    }
    if (reader.status().message() != told) {
      told = reader.status().message();
      BRAID_LOG_WARN("no GPUs are watched: {}", told);
    }
    if (pause(options.again_ms)) return;
  }
}

void GpuWatch::State::watch(GpuReader& reader, GpuHistory& history) {
  uint64_t not_whole_since_ns = 0;  // 0: all GPUs answer
  for (bool is_first = true;; is_first = false) {
    begin_call();
    GpuReader::Reading reading = reader.read();
    if (end_call()) return;
    std::vector<std::string> news;
    std::vector<GpuFacts> facts =
        history.complete(std::move(reading), static_cast<uint64_t>(std::time(nullptr)), news);
    bool is_whole = true;
    for (const GpuFacts& gpu : facts) {
      is_whole = is_whole && gpu.error.empty();
      if (is_first && gpu.error.empty()) BRAID_LOG_INFO("watches {}", describe_place(gpu));
    }
    for (const std::string& line : news) BRAID_LOG_WARN("{}", line);
    const bool has_gpus = !facts.empty();
    publish(std::move(facts));
    const uint64_t now_ns = clock.now_ns();
    if (is_whole && has_gpus)
      not_whole_since_ns = 0;
    else if (not_whole_since_ns == 0)
      not_whole_since_ns = now_ns;
    // A GPU that was reset, or came back, is seen by a library that begins anew.
    else if (now_ns - not_whole_since_ns >= uint64_t{options.again_ms} * 1'000'000)
      return;
    if (pause(has_gpus ? options.every_ms : options.again_ms)) return;
  }
}

bool GpuWatch::State::pause(uint32_t ms) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  const MutexLock lock(mutex);
  while (!is_ending && std::chrono::steady_clock::now() < until) changed.wait_until(mutex, until);
  return is_ending;
}

void GpuWatch::State::begin_call() {
  const MutexLock lock(mutex);
  call_began_ns = clock.now_ns();
}

bool GpuWatch::State::end_call() {
  uint64_t took_ns = 0;
  bool ends = false;
  {
    const MutexLock lock(mutex);
    took_ns = clock.now_ns() - std::exchange(call_began_ns, 0);
    ends = is_ending;
  }
  // At its end the process may have no log any more.
  if (!ends && took_ns >= kSilentNs) {
    BRAID_LOG_WARN("NVIDIA's library did not answer for {:.1f} s",
                   static_cast<double>(took_ns) / 1e9);
  }
  return ends;
}

void GpuWatch::State::publish(std::vector<GpuFacts> facts) {
  const MutexLock lock(mutex);
  gpus = std::move(facts);
  ++readings;
}

GpuWatch::GpuWatch(GpuWatchOptions options) : state_(std::make_shared<State>(std::move(options))) {
  state_->thread = std::thread([state = state_] {
    ::pthread_setname_np(::pthread_self(), "braid-gpus");
    state->run();
    const MutexLock lock(state->mutex);
    state->has_ended = true;
    state->changed.notify_all();
  });
}

GpuWatch::~GpuWatch() {
  std::thread thread = std::move(state_->thread);
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kEndMs);
  bool has_ended = false;
  {
    const MutexLock lock(state_->mutex);
    state_->is_ending = true;
    state_->changed.notify_all();
    while (!state_->has_ended && std::chrono::steady_clock::now() < until)
      state_->changed.wait_until(state_->mutex, until);
    has_ended = state_->has_ended;
  }
  if (has_ended) {
    thread.join();
    return;
  }
  BRAID_LOG_WARN("NVIDIA's library does not answer: its thread is left behind");
  thread.detach();
}

GpuReport GpuWatch::report() const {
  const MutexLock lock(state_->mutex);
  GpuReport report{state_->gpus, state_->readings, 0};
  const uint64_t now_ns = state_->clock.now_ns();
  if (state_->call_began_ns != 0 && now_ns - state_->call_began_ns >= kSilentNs)
    report.silent_seconds = static_cast<double>(now_ns - state_->call_began_ns) / 1e9;
  return report;
}

}  // namespace braid
