// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "bench/gpu/host_memory.h"
#include "bench/gpu/probes.h"
#include "bench/gpu/stopwatch.h"

namespace braid::gpu_probe {
namespace {

constexpr uint32_t kRounds = 300;
constexpr int kCalls = 500;
constexpr double kPatienceSeconds = 2;
// The GPU waits by then.
constexpr auto kSettle = std::chrono::microseconds(50);

struct Latencies {
  std::vector<double> write, round_trip, blocking_event;
};

Status late(const char* what) { return {StatusCode::DeadlineExceeded, what}; }

Status write_a_word(const Gpu& gpu, CUstream stream, const Words& words, uint32_t round,
                    Latencies& found) {
  const Stopwatch watch;
  BRAID_RETURN_IF_ERROR(gpu.StreamWriteValue32(stream, words.address(0), round, 0U));
  if (!poll_until([&] { return words.load(0) == round; }, kPatienceSeconds)) {
    return late("a word that the GPU wrote did not come");
  }
  found.write.push_back(watch.us());
  return Status::ok();
}

// The host stores a word, the GPU that waits for the word answers with another.
Status answer_a_word(const Gpu& gpu, CUstream stream, Words& words, uint32_t round,
                     Latencies& found) {
  BRAID_RETURN_IF_ERROR(gpu.StreamWaitValue32(stream, words.address(1), round,
                                              static_cast<unsigned>(CU_STREAM_WAIT_VALUE_GEQ)));
  BRAID_RETURN_IF_ERROR(gpu.StreamWriteValue32(stream, words.address(2), round, 0U));
  std::this_thread::sleep_for(kSettle);
  const Stopwatch watch;
  words.store(1, round);
  if (!poll_until([&] { return words.load(2) == round; }, kPatienceSeconds)) {
    return late("a stream did not see a word that the host stored");
  }
  found.round_trip.push_back(watch.us());
  return Status::ok();
}

Result<double> call_the_host(const Gpu& gpu, CUstream stream) {
  std::atomic<bool> ran = false;
  const CUhostFn function = [](void* place) {
    static_cast<std::atomic<bool>*>(place)->store(true);
  };
  const Stopwatch watch;
  BRAID_RETURN_IF_ERROR(gpu.LaunchHostFunc(stream, function, static_cast<void*>(&ran)));
  const bool came = poll_until([&] { return ran.load(); }, kPatienceSeconds);
  const double us = watch.us();
  // `ran` must live until the driver has called.
  BRAID_RETURN_IF_ERROR(gpu.StreamSynchronize(stream));
  if (!came) return late("a host function was not called");
  return us;
}

Status wait_for_an_event(const Gpu& gpu, CUstream stream, CUevent event, Latencies& found) {
  const Stopwatch watch;
  BRAID_RETURN_IF_ERROR(gpu.EventRecord(event, stream));
  BRAID_RETURN_IF_ERROR(gpu.EventSynchronize(event));
  found.blocking_event.push_back(watch.us());
  return Status::ok();
}

Status say_what_calls_cost(const Gpu& gpu, CUstream stream, CUevent event, const Words& words,
                           const Say& say) {
  const auto each = [&](const auto& call) -> Result<double> {
    const Stopwatch watch;
    for (int i = 0; i < kCalls; ++i) BRAID_RETURN_IF_ERROR(call());
    const double us = watch.us() / kCalls;
    BRAID_RETURN_IF_ERROR(gpu.StreamSynchronize(stream));
    return us;
  };
  const Result<double> write =
      each([&] { return gpu.StreamWriteValue32(stream, words.address(4), 0U, 0U); });
  if (!write.is_ok()) return write.status();
  const Result<double> wait = each([&] {
    return gpu.StreamWaitValue32(stream, words.address(4), 0U,
                                 static_cast<unsigned>(CU_STREAM_WAIT_VALUE_GEQ));
  });
  if (!wait.is_ok()) return wait.status();
  const Result<double> record = each([&]() -> Status {
    BRAID_RETURN_IF_ERROR(gpu.EventRecord(event, stream));
    return gpu.StreamWaitEvent(stream, event, 0U);
  });
  if (!record.is_ok()) return record.status();
  say({{"test", "calls"},
       {"write_value_us", *write},
       {"wait_value_us", *wait},
       {"event_record_and_wait_us", *record}});
  return Status::ok();
}

}  // namespace

Status probe_words(const Gpu& gpu, const Say& say) {
  Result<Words> words = Words::make(gpu);
  if (!words.is_ok()) return words.status();
  Result<Stream> stream = make_stream(gpu);
  if (!stream.is_ok()) return stream.status();
  Result<Event> event = make_event(gpu, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC);
  if (!event.is_ok()) return event.status();
  Latencies found;
  for (uint32_t round = 1; round <= kRounds; ++round) {
    BRAID_RETURN_IF_ERROR(write_a_word(gpu, stream->get(), *words, round, found));
    BRAID_RETURN_IF_ERROR(answer_a_word(gpu, stream->get(), *words, round, found));
    BRAID_RETURN_IF_ERROR(wait_for_an_event(gpu, stream->get(), event->get(), found));
  }
  say({{"test", "words"},
       {"write_us", median(found.write)},
       {"host_store_to_gpu_to_host_us", median(found.round_trip)},
       {"blocking_event_us", median(found.blocking_event)}});
  return say_what_calls_cost(gpu, stream->get(), event->get(), *words, say);
}

Status probe_host_functions(const Gpu& gpu, const Say& say) {
  Result<Stream> stream = make_stream(gpu);
  if (!stream.is_ok()) return stream.status();
  std::vector<double> found;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const Result<double> us = call_the_host(gpu, stream->get());
    if (!us.is_ok()) return us.status();
    found.push_back(*us);
  }
  say({{"test", "host-functions"}, {"call_us", median(found)}});
  return Status::ok();
}

}  // namespace braid::gpu_probe
