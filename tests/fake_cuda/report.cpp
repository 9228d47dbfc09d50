// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <cuda.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "calls.h"
#include "capture.h"
#include "context.h"
#include "copies.h"
#include "counts.h"
#include "engine.h"
#include "fake_cuda.h"
#include "memory.h"
#include "settings.h"

namespace fake_cuda {
namespace {

fake_cuda_counts all_counts() {
  const Counters& of = counters();
  const Memory& memory = Memory::get();
  return {
      .calls = all_calls(),
      .host_waits = of.host_waits,
      .unregistered_copies = of.unregistered_copies,
      .missing_pages = memory.missing_pages(),
      .copies = of.copies,
      .copied_bytes = of.copied_bytes,
      .kernels = of.kernels,
      .contexts = active_contexts(),
      .streams = open_streams(),
      .events = open_events(),
      .allocations = memory.allocations(),
      .allocated_bytes = memory.allocated_bytes(),
      .registrations = memory.registrations(),
      .registered_bytes = memory.registered_bytes(),
      .pending_works = Engine::get().pending_works(),
      .waiting_streams = Engine::get().word_waits(),
  };
}

nlohmann::json threads() {
  std::map<int, nlohmann::json> of;
  for_each_call([&](int id, const std::string& name, const char* function, std::uint64_t calls) {
    nlohmann::json& thread = of[id];
    thread["id"] = id;
    thread["name"] = name;
    thread["calls"][function] = calls;
  });
  auto list = nlohmann::json::array();
  for (auto& [id, thread] : of) {
    list.push_back(std::move(thread));
  }
  return list;
}

void write_report(const std::string& folder, const fake_cuda_counts& counts) {
  const nlohmann::json report = {
      {"calls", counts.calls},
      {"host_waits", counts.host_waits},
      {"unregistered_copies", counts.unregistered_copies},
      {"missing_pages", counts.missing_pages},
      {"copies", counts.copies},
      {"copied_bytes", counts.copied_bytes},
      {"kernels", counts.kernels},
      {"waiting_at_exit", counts.waiting_streams},
      {"contexts", counts.contexts},
      {"streams", counts.streams},
      {"events", counts.events},
      {"allocations", counts.allocations},
      {"allocated_bytes", counts.allocated_bytes},
      {"registrations", counts.registrations},
      {"registered_bytes", counts.registered_bytes},
      {"pending_works", counts.pending_works},
      {"threads", threads()},
  };
  const std::string path = folder + "/" + std::to_string(getpid()) + ".json";
  std::ofstream file(path);
  file << report.dump(2, ' ', true, nlohmann::json::error_handler_t::replace) << "\n";
  if (!file.flush()) {
    std::fprintf(stderr, "fake CUDA: FAKE_CUDA_REPORT: '%s' cannot be written\n", path.c_str());
  }
}

void end() {
  if (is_child_of_process()) {
    return;
  }
  const fake_cuda_counts counts = all_counts();  // what then is queued is dropped
  Engine::get().end_process();
  if (!settings().report.empty()) {
    write_report(settings().report, counts);
  }
}

}  // namespace

void report_at_exit() {
  static std::once_flag once;
  std::call_once(once, [] { std::atexit(end); });
}

}  // namespace fake_cuda

using namespace fake_cuda;  // NOLINT: what follows is C

extern "C" {

void fake_cuda_get_counts(fake_cuda_counts* counts) {
  *counts = is_child_of_process() ? fake_cuda_counts{} : all_counts();
}

uint64_t fake_cuda_calls_of(int thread_id) { return calls_of(thread_id); }

void fake_cuda_thread_calls(void (*each)(int, const char*, const char*, uint64_t, void*),
                            void* argument) {
  for_each_call([&](int id, const std::string& name, const char* function, std::uint64_t calls) {
    each(id, name.c_str(), function, calls, argument);
  });
}

int fake_cuda_launch(void* handle, void (*function)(void*), void* argument) {
  if (!is_process_begun() || is_child_of_process()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!current_device()) return CUDA_ERROR_INVALID_CONTEXT;
  const StreamPointer stream = stream_of(static_cast<CUstream>(handle));
  if (const CUresult result = check_stream(stream); result != CUDA_SUCCESS) return result;
  CUresult captured = CUDA_SUCCESS;
  if (is_captured(*stream, captured)) return captured;
  Engine::get().submit(stream, [=] {
    ++counters().kernels;
    function(argument);
    return CUDA_SUCCESS;
  });
  return CUDA_SUCCESS;
}

void fake_cuda_fail_device(int device, int error) {
  Engine::get().fail(device, static_cast<CUresult>(error));
}

void* fake_cuda_bytes(uint64_t address) {
  const auto range = Memory::get().find(address, 1);
  return range && range->is_device ? range->library + (address - range->begin) : nullptr;
}

}  // extern "C"
