// SPDX-License-Identifier: Apache-2.0
#include "device/device_streams.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <unistd.h>

#include "connection.h"

namespace braid::client {
namespace {

// Each word in a cache line of its own: a stream writes one while a thread reads another.
constexpr uint64_t kWordBytes = 64;
constexpr uint64_t kTryNs = 30'000'000'000;  // a GPU that is busy comes to it late
constexpr uint64_t kCloseNs = 2'000'000'000;
constexpr useconds_t kLookAgainUs = 50;
constexpr uint32_t kTried = 1;

bool comes_to(const Word& word, uint32_t number, uint64_t deadline_ns) {
  while (word.load() != number) {
    if (now_ns() >= deadline_ns) return false;
    ::usleep(kLookAgainUs);
  }
  return true;
}

// $BRAID_CUDA_WAIT: who waits for results.
Status read_wait_setting(bool& streams_wait) {
  const char* given = std::getenv("BRAID_CUDA_WAIT");
  const std::string_view setting = given == nullptr ? "" : given;
  streams_wait = setting != "host";
  if (setting.empty() || setting == "host" || setting == "stream") return {};
  return make_status(StatusCode::InvalidArgument,
                     "BRAID_CUDA_WAIT is '{}'; right are 'stream' (the default) and 'host'",
                     setting);
}

bool launches_block() {
  const char* given = std::getenv("CUDA_LAUNCH_BLOCKING");
  return given != nullptr && *given != '\0' && std::string_view(given) != "0";
}

// Once: all jobs of a process have one GPU.
void say_who_waits(const char* reason) {
  static std::atomic<bool> is_said = false;
  if (is_said.exchange(true)) return;
  std::fprintf(stderr,
               "braid: %s, so collectives of CUDA tensors hold the thread that waits for them\n",
               reason);
}

bool is_not_supported(const Status& status) { return status.cause() == CUDA_ERROR_NOT_SUPPORTED; }

}  // namespace

Status DeviceStreams::open(const CudaDriver& driver, CUcontext context, Registry& registry,
                           std::unique_ptr<DeviceStreams>& streams) {
  std::unique_ptr<DeviceStreams> made(new DeviceStreams(driver, context, registry));
  BRAID_RETURN_IF_ERROR(made->make());
  streams = std::move(made);
  return {};
}

DeviceStreams::DeviceStreams(const CudaDriver& driver, CUcontext context, Registry& registry)
    : device_(driver, context),
      memory_(driver, registry),
      inputs_(driver),
      results_(driver),
      taking_(driver) {}

Status DeviceStreams::make() {
  const DeviceContext::Scope scope(device_);
  BRAID_RETURN_IF_ERROR(scope.status());
  for (DeviceStream* stream : {&inputs_, &results_, &taking_})
    BRAID_RETURN_IF_ERROR(stream->open());
  BRAID_RETURN_IF_ERROR(make_words());
  return choose_way();
}

Status DeviceStreams::make_words() {
  const std::array<Word*, 5> words = {&words_.input_staged, &words_.input_over,
                                      &words_.result_staged, &words_.result_over,
                                      &words_.taken_over};
  uint8_t* memory = nullptr;
  CUdeviceptr device = 0;
  BRAID_RETURN_IF_ERROR(memory_.make_own(words.size() * kWordBytes, memory));
  BRAID_RETURN_IF_ERROR(memory_.device_address(device));
  for (size_t i = 0; i < words.size(); ++i) {
    *words[i] = Word(reinterpret_cast<uint32_t*>(memory + i * kWordBytes), device + i * kWordBytes);
  }
  return {};
}

Status DeviceStreams::choose_way() {
  BRAID_RETURN_IF_ERROR(read_wait_setting(can_wait_));
  if (can_wait_ && launches_block()) {
    can_wait_ = false;
    say_who_waits("CUDA_LAUNCH_BLOCKING is set");
  }
  Status tried = try_words();
  if (!is_not_supported(tried)) return tried;
  can_write_ = can_wait_ = false;
  say_who_waits("this GPU's streams cannot wait for memory");
  return {};
}

// In the order in which operations use them: it ends even where all streams share one queue. No
// worker is there yet, so between the wait that is queued and the store that it waits for, nothing
// calls CUDA: another thread's cudaFree may hold up such a call until the wait is over.
Status DeviceStreams::try_words() {
  const uint64_t deadline_ns = now_ns() + kTryNs;
  BRAID_RETURN_IF_ERROR(inputs_.write(words_.input_staged, kTried));
  if (can_wait_) {
    BRAID_RETURN_IF_ERROR(
        results_.wait_and_write(words_.result_staged, words_.result_over, kTried));
  }
  const bool has_written = comes_to(words_.input_staged, kTried, deadline_ns);
  const bool has_waited = words_.result_over.load() == 0;
  words_.result_staged.store(kTried);
  if (!has_written || (can_wait_ && !comes_to(words_.result_over, kTried, deadline_ns))) {
    return Status(StatusCode::Unavailable,
                  "the GPU has not come to writing 4 bytes within 30 s: it stands still, or its "
                  "driver writes no memory of this process");
  }
  if (!has_waited) {
    can_wait_ = false;
    say_who_waits("a stream of this GPU did not wait when it was told to");
  }
  for (const Word* word : {&words_.input_staged, &words_.result_staged, &words_.result_over})
    word->store(0);
  return {};
}

Status DeviceStreams::synchronize(DeviceStream& stream) {
  CUevent event = nullptr;
  BRAID_RETURN_IF_ERROR(take_event(event));
  Status status = stream.record(event);
  if (status) {
    status = device_.driver().check(device_.driver().EventSynchronize(event), "cuEventSynchronize");
  }
  give_back(event);
  return status;
}

Status DeviceStreams::take_event(CUevent& event) {
  const std::lock_guard lock(mutex_);
  if (!free_events_.empty()) {
    event = free_events_.back();
    free_events_.pop_back();
    return {};
  }
  const CudaDriver& driver = device_.driver();
  BRAID_RETURN_IF_ERROR(
      driver.check(driver.EventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate"));
  events_.push_back(event);
  return {};
}

void DeviceStreams::give_back(CUevent event) {
  const std::lock_guard lock(mutex_);
  free_events_.push_back(event);
}

bool DeviceStreams::await_idle() {
  const uint64_t deadline_ns = now_ns() + kCloseNs;
  for (const DeviceStream* stream : {&inputs_, &results_, &taking_}) {
    while (true) {
      const Result<bool> idle = stream->is_idle();
      if (!idle || (!*idle && now_ns() >= deadline_ns)) return false;
      if (*idle) break;
      ::usleep(kLookAgainUs);
    }
  }
  return true;
}

DeviceStreams::~DeviceStreams() {
  const DeviceContext::Scope scope(device_);
  if (!scope.status().is_ok() || !await_idle()) {
    memory_.leave_behind();
    return;
  }
  for (DeviceStream* stream : {&inputs_, &results_, &taking_}) stream->close();
  for (CUevent event : events_) (void)device_.driver().EventDestroy(event);
  memory_.release();
}

}  // namespace braid::client
