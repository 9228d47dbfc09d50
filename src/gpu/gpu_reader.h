// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/gpu_facts.h"
#include "gpu/nvml.h"

namespace braid {

struct GpuReaderOptions {
  std::string sys = "/sys";
  std::vector<std::string> rails;  // network devices that the daemon uses
};

// NVML between its beginning and its end: reads this node's GPUs. No context is made on a GPU, and
// none of its memory is used. One thread; each call may take seconds, or hang.
class GpuReader {
 public:
  static constexpr uint32_t kGpusMax = 64;
  static constexpr uint32_t kProcessesMax = 256;  // of one GPU
  static constexpr uint32_t kEventsMax = 64;      // that one reading takes

  // Unavailable: the library does not begin, as without its driver.
  static Result<std::unique_ptr<GpuReader>> create(const nvml::Functions& functions,
                                                   GpuReaderOptions options);
  GpuReader(const GpuReader&) = delete;
  GpuReader& operator=(const GpuReader&) = delete;
  ~GpuReader();

  struct Xid {
    uint32_t gpu = 0;  // index
    uint32_t number = 0;
  };
  struct Reading {
    std::vector<GpuFacts> gpus;  // ascending
    std::vector<Xid> xids;       // since the reading before
  };
  // What a GPU does not tell is left as not known; one that does not answer at all has an `error`.
  Reading read();

 private:
  struct Gpu {
    nvml::Device device = nullptr;  // nullptr: `facts` say why
    GpuFacts facts;                 // what does not change
  };

  GpuReader(const nvml::Functions& functions, GpuReaderOptions options);
  Status find_gpus();
  Gpu find_gpu(uint32_t index);
  void register_events();
  GpuFacts read_gpu(const Gpu& gpu);
  std::vector<Xid> take_xids();

  const nvml::Functions functions_;
  const GpuReaderOptions options_;
  std::vector<Gpu> gpus_;
  nvml::EventSet events_ = nullptr;  // nullptr: there are none to wait for
};

}  // namespace braid
