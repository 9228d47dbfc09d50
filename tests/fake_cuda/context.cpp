// SPDX-License-Identifier: Apache-2.0
#include "context.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "memory.h"
#include "settings.h"

namespace fake_cuda {
namespace {

// Handles are numbers that are no addresses and are never used again, so that a stale one is found.
constexpr std::uintptr_t kFirstContext = 0xC0000;
constexpr std::uintptr_t kFirstStream = 0x5000000000000000;
constexpr std::uintptr_t kFirstEvent = 0x6000000000000000;
constexpr std::uintptr_t kHandleStep = 16;

template <typename Handle, typename Object>
class Handles {
 public:
  explicit Handles(std::uintptr_t first) : next_(first) {}

  Handle add(Object object) {
    const std::scoped_lock lock(mutex_);
    next_ += kHandleStep;
    objects_.emplace(next_, std::move(object));
    return reinterpret_cast<Handle>(next_);
  }
  Object find(Handle handle) const {
    const std::scoped_lock lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
    return found == objects_.end() ? nullptr : found->second;
  }
  bool remove(Handle handle) {
    const std::scoped_lock lock(mutex_);
    return objects_.erase(reinterpret_cast<std::uintptr_t>(handle)) != 0;
  }
  template <typename Condition>
  void remove_if(Condition condition) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(objects_, [&](const auto& one) { return condition(*one.second); });
  }
  std::uint64_t size() const {
    const std::scoped_lock lock(mutex_);
    return objects_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::uintptr_t next_;
  std::map<std::uintptr_t, Object> objects_;
};

Handles<CUstream, StreamPointer>& streams() {
  static auto* const kStreams = new Handles<CUstream, StreamPointer>(kFirstStream);
  return *kStreams;
}

Handles<CUevent, std::shared_ptr<Event>>& events() {
  static auto* const kEvents = new Handles<CUevent, std::shared_ptr<Event>>(kFirstEvent);
  return *kEvents;
}

struct Primary {
  std::uint64_t retained = 0;
  std::uint64_t generation = 1;  // threads' default streams are made anew for each
  StreamPointer legacy;
};

struct Primaries {
  std::mutex mutex;
  std::vector<Primary> of_device{static_cast<std::size_t>(settings().devices)};
};

Primaries& primaries() {
  static Primaries* const kPrimaries = new Primaries;
  return *kPrimaries;
}

thread_local std::vector<std::optional<int>> current_stack;
thread_local std::map<std::pair<int, std::uint64_t>, StreamPointer> thread_streams;

StreamPointer default_stream(bool is_legacy) {
  const auto device = current_device();
  if (!device) {
    return nullptr;
  }
  const std::scoped_lock lock(primaries().mutex);
  Primary& primary = primaries().of_device[static_cast<std::size_t>(*device)];
  StreamPointer& stream =
      is_legacy ? primary.legacy : thread_streams[{*device, primary.generation}];
  if (stream == nullptr) {
    stream = Engine::get().create_stream(*device, !is_legacy, is_legacy);
  }
  return stream;
}

}  // namespace

CUcontext context_of(int device) {
  return reinterpret_cast<CUcontext>(kFirstContext +
                                     static_cast<std::uintptr_t>(device) * kHandleStep);
}

std::optional<int> device_of(CUcontext context) {
  for (int device = 0; device < settings().devices; ++device) {
    if (context_of(device) == context) {
      return device;
    }
  }
  return std::nullopt;
}

CUresult check_context(int device) {
  return is_context_active(device) ? Engine::get().error(device) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

void retain_context(int device) {
  const std::scoped_lock lock(primaries().mutex);
  ++primaries().of_device[static_cast<std::size_t>(device)].retained;
}

bool release_context(int device) {
  {
    const std::scoped_lock lock(primaries().mutex);
    Primary& primary = primaries().of_device[static_cast<std::size_t>(device)];
    if (primary.retained == 0) {
      return false;
    }
    if (--primary.retained > 0) {
      return true;
    }
    primary.legacy = nullptr;
    ++primary.generation;
  }
  Engine::get().drop(device);
  streams().remove_if([&](const Stream& stream) { return stream.device == device; });
  events().remove_if([&](const Event& event) { return event.device() == device; });
  Memory::get().forget(device);
  return true;
}

bool is_context_active(int device) {
  const std::scoped_lock lock(primaries().mutex);
  return primaries().of_device[static_cast<std::size_t>(device)].retained > 0;
}

std::uint64_t active_contexts() {
  const std::scoped_lock lock(primaries().mutex);
  return static_cast<std::uint64_t>(std::ranges::count_if(
      primaries().of_device, [](const Primary& one) { return one.retained > 0; }));
}

std::optional<int> current_device() {
  return current_stack.empty() ? std::nullopt : current_stack.back();
}

void push_current(std::optional<int> device) { current_stack.push_back(device); }

std::optional<int> pop_current() {
  const auto device = current_device();
  current_stack.pop_back();
  return device;
}

void set_current(std::optional<int> device) {
  if (!current_stack.empty()) {
    current_stack.pop_back();
  }
  if (device) {
    current_stack.push_back(device);
  }
}

bool has_current_stack() { return !current_stack.empty(); }

void Event::record(Place place) {
  const std::scoped_lock lock(mutex_);
  place_ = std::move(place);
  captured_ = {};
}

void Event::capture(CaptureState state) {
  const std::scoped_lock lock(mutex_);
  captured_ = std::move(state);
}

Place Event::place() const {
  const std::scoped_lock lock(mutex_);
  return place_;
}

CaptureState Event::captured() const {
  const std::scoped_lock lock(mutex_);
  return captured_;
}

CUstream add_stream(StreamPointer stream) { return streams().add(std::move(stream)); }

bool is_default_stream(CUstream handle) {
  return handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

StreamPointer stream_of(CUstream handle) {
  return is_default_stream(handle) ? default_stream(handle != CU_STREAM_PER_THREAD)
                                   : streams().find(handle);
}

bool remove_stream(CUstream handle) { return streams().remove(handle); }

CUevent add_event(int device) { return events().add(std::make_shared<Event>(device)); }
std::shared_ptr<Event> event_of(CUevent handle) { return events().find(handle); }
bool remove_event(CUevent handle) { return events().remove(handle); }

std::uint64_t open_streams() { return streams().size(); }
std::uint64_t open_events() { return events().size(); }

}  // namespace fake_cuda
