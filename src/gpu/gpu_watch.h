// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/gpu_facts.h"
#include "gpu/gpu_reader.h"
#include "gpu/nvml.h"

namespace braid {

struct GpuWatchOptions {
  std::string library = kNvmlLibrary;
  uint32_t every_ms = 5000;    // between two readings
  uint32_t again_ms = 60'000;  // between two tries with a library that does not begin
  GpuReaderOptions reader{};
};

// What is known of a node's GPUs.
struct GpuReport {
  std::vector<GpuFacts> gpus;  // ascending; empty: there are none, or they are not known yet
  uint64_t readings = 0;       // that have ended
  // That the library has taken for the call it is in, if it should have come back; else 0. What
  // stands above is so old then.
  double silent_seconds = 0;
};

// Reads this node's GPUs every few seconds, on a thread of its own, because NVIDIA's library may
// take seconds or hang. Where there is no such library the thread ends at once.
class GpuWatch {
 public:
  // A call that takes longer is spoken of.
  static constexpr uint64_t kSilentNs = 10'000'000'000;
  // The end waits so long for a call; then the thread is left behind in it.
  static constexpr uint32_t kEndMs = 1000;

  explicit GpuWatch(GpuWatchOptions options);
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;
  ~GpuWatch();

  // Any thread; never waits for the library.
  GpuReport report() const;

 private:
  struct State;  // outlives the watch while the thread hangs
  const std::shared_ptr<State> state_;
};

}  // namespace braid
