// SPDX-License-Identifier: Apache-2.0
#include "engine.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include <pthread.h>
#include <sys/prctl.h>

#include "settings.h"

namespace fake_cuda {
namespace {

thread_local bool is_this_a_queue = false;

/// Pauses of a queue's thread before it sleeps: some 50 microseconds, if nobody wants the
/// processor.
constexpr int kLooks = 100;

/// Stops of a queue that come from a seed.
class Drift {
 public:
  explicit Drift(std::uint64_t seed) : random_(seed) {}

  void stop() {
    if (random_() % 4 == 0) {
      // Mostly short: the square of a number from 0 to 1, times 2 ms.
      const double part = std::uniform_real_distribution<>()(random_);
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(2 * part * part));
    }
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace

Engine& Engine::get() {
  static Engine* const kEngine = new Engine;
  return *kEngine;
}

Engine::Engine() : devices_(static_cast<std::size_t>(settings().devices)) {
  for (Device& device : devices_) {
    device.queues.resize(settings().queues);
  }
}

StreamPointer Engine::create_stream(int device, bool blocks, bool is_legacy) {
  auto stream = std::make_shared<Stream>(Stream{device, blocks, is_legacy, 0, 0, 0, {}});
  const std::scoped_lock lock(mutex_);
  Device& on = devices_[static_cast<std::size_t>(device)];
  stream->queue = on.next_queue++ % on.queues.size();
  std::erase_if(on.streams, [](const auto& one) { return one.expired(); });
  on.streams.push_back(stream);
  return stream;
}

Place Engine::submit(const StreamPointer& stream, Work work, Place after) {
  std::unique_lock lock(mutex_);
  Queue& queue = devices_[static_cast<std::size_t>(stream->device)].queues[stream->queue];
  if (!queue.has_thread) {
    queue.has_thread = true;
    std::thread(&Engine::run, this, stream->device, stream->queue).detach();
  }
  progress_.wait(lock, [&] { return queue.entries.size() < settings().depth || has_ended_; });
  queue.entries.push_back({stream, order(*stream, std::move(after)), std::move(work)});
  ++pending_;
  changes_.fetch_add(1, std::memory_order_relaxed);
  queue.work.notify_one();
  return {stream, ++stream->queued};
}

std::vector<Place> Engine::order(const Stream& stream, Place after) const {
  std::vector<Place> places;
  if (after.stream != nullptr) {
    places.push_back(std::move(after));
  }
  if (!stream.blocks && !stream.is_legacy) {
    return places;
  }
  for (Place& place : ends_locked(stream.device)) {
    const Stream& other = *place.stream;
    if (&other != &stream && (stream.is_legacy ? other.blocks : other.is_legacy)) {
      places.push_back(std::move(place));
    }
  }
  return places;
}

template <typename Condition>
void Engine::look_and_wait(std::unique_lock<std::mutex>& lock, std::condition_variable& signal,
                           Condition condition) {
  for (int looks = 0; looks < kLooks && !condition();) {
    const std::uint64_t seen = changes_.load(std::memory_order_relaxed);
    lock.unlock();
    while (looks++ < kLooks && changes_.load(std::memory_order_relaxed) == seen) {
      std::this_thread::yield();
    }
    lock.lock();
  }
  signal.wait(lock, condition);
}

void Engine::run(int device, std::size_t number) {
  is_this_a_queue = true;
  pthread_setname_np(pthread_self(),
                     ("gpu" + std::to_string(device) + "-queue" + std::to_string(number)).c_str());
  prctl(PR_SET_TIMERSLACK,
        1000UL);  // nanoseconds: rates and polls are to be near what was asked for
  std::optional<Drift> drift;
  if (const auto seed = settings().drift) {
    drift.emplace(*seed * 1000 + static_cast<std::uint64_t>(device) * 64 + number);
  }
  std::unique_lock lock(mutex_);
  Queue& queue = devices_[static_cast<std::size_t>(device)].queues[number];
  while (true) {
    look_and_wait(lock, queue.work, [&] { return !queue.entries.empty(); });
    const Entry& entry = queue.entries.front();
    look_and_wait(lock, progress_, [&] {
      return is_ending_locked(device) || std::ranges::all_of(entry.after, [&](const Place& place) {
               return is_reached_locked(place);
             });
    });
    CUresult result = CUDA_SUCCESS;
    if (!is_ending_locked(device)) {
      lock.unlock();
      if (drift) {
        drift->stop();
      }
      result = entry.work();
      lock.lock();
    }
    Device& on = devices_[static_cast<std::size_t>(device)];
    if (result != CUDA_SUCCESS && on.error == CUDA_SUCCESS && !on.is_dropping) {
      on.error = result;
    }
    ++entry.stream->done;
    --pending_;
    queue.entries.pop_front();
    changes_.fetch_add(1, std::memory_order_relaxed);
    progress_.notify_all();
  }
}

bool Engine::is_reached_locked(const Place& place) const {
  return place.stream == nullptr || place.stream->done >= place.count;
}

bool Engine::is_ending_locked(int device) const {
  const Device& on = devices_[static_cast<std::size_t>(device)];
  return on.error != CUDA_SUCCESS || on.is_dropping || has_ended_;
}

std::vector<Place> Engine::ends_locked(int device) const {
  std::vector<Place> places;
  for (const auto& weak : devices_[static_cast<std::size_t>(device)].streams) {
    if (StreamPointer stream = weak.lock(); stream != nullptr && stream->done < stream->queued) {
      const std::uint64_t count = stream->queued;
      places.push_back({std::move(stream), count});
    }
  }
  return places;
}

Place Engine::end_of(const StreamPointer& stream) const {
  const std::scoped_lock lock(mutex_);
  return {stream, stream->queued};
}

std::vector<Place> Engine::ends_of(int device) const {
  const std::scoped_lock lock(mutex_);
  return ends_locked(device);
}

bool Engine::is_reached(const Place& place) const {
  const std::scoped_lock lock(mutex_);
  return is_reached_locked(place);
}

void Engine::wait(const std::vector<Place>& places) const {
  std::unique_lock lock(mutex_);
  progress_.wait(lock, [&] {
    return has_ended_ || std::ranges::all_of(
                             places, [&](const Place& place) { return is_reached_locked(place); });
  });
}

void Engine::wait_until_idle(int device) const {
  std::unique_lock lock(mutex_);
  progress_.wait(lock, [&] { return has_ended_ || ends_locked(device).empty(); });
}

CUresult Engine::error(int device) const {
  const std::scoped_lock lock(mutex_);
  return devices_[static_cast<std::size_t>(device)].error;
}

void Engine::fail(int device, CUresult error) {
  const std::scoped_lock lock(mutex_);
  devices_[static_cast<std::size_t>(device)].error = error;
  progress_.notify_all();
}

void Engine::drop(int device) {
  std::unique_lock lock(mutex_);
  Device& on = devices_[static_cast<std::size_t>(device)];
  on.is_dropping = true;
  progress_.notify_all();
  progress_.wait(lock, [&] { return has_ended_ || ends_locked(device).empty(); });
  on.is_dropping = false;
  on.error = CUDA_SUCCESS;
}

bool Engine::is_ending(int device) const {
  const std::scoped_lock lock(mutex_);
  return is_ending_locked(device);
}

void Engine::end_process() {
  const std::scoped_lock lock(mutex_);
  has_ended_ = true;
  progress_.notify_all();
}

bool Engine::has_ended() const {
  const std::scoped_lock lock(mutex_);
  return has_ended_;
}

std::uint64_t Engine::pending_works() const {
  const std::scoped_lock lock(mutex_);
  return pending_;
}

void Engine::count_word_wait(int change) {
  const std::scoped_lock lock(mutex_);
  word_waits_ += static_cast<std::uint64_t>(change);
}

std::uint64_t Engine::word_waits() const {
  const std::scoped_lock lock(mutex_);
  return word_waits_;
}

bool Engine::is_queue_thread() { return is_this_a_queue; }

}  // namespace fake_cuda
