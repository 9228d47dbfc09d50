// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/gpu_facts.h"
#include "gpu/gpu_reader.h"

namespace braid {

// What the readings of a node's GPUs have told so far, from one to the next: since when a clock is
// low, when errors were seen, and GPUs that the driver lists no more. One thread.
class GpuHistory {
 public:
  // A reason that is away for less than this time was there all the while: a hot GPU slows down and
  // cools down in turns.
  static constexpr uint64_t kBreakSeconds = 60;

  // The reading with what the earlier ones add to it. `now`: seconds since 1970. `news` are lines
  // for the log: what has become worse, or well again, with this reading.
  std::vector<GpuFacts> complete(GpuReader::Reading reading, uint64_t now,
                                 std::vector<std::string>& news);

 private:
  struct SeenReason {
    GpuFacts::Reason reason;
    uint64_t last_at = 0;
  };
  struct Gpu {
    GpuFacts facts;  // as they were told last
    std::vector<SeenReason> reasons;
    int64_t ecc_uncorrected = -1;  // as last read
  };

  Gpu& find(const GpuFacts& facts);
  static void keep_reasons(Gpu& gpu, GpuFacts& facts, uint64_t now, std::vector<std::string>& news);
  static void keep_errors(Gpu& gpu, GpuFacts& facts, uint64_t now, std::vector<std::string>& news);

  std::vector<Gpu> gpus_;
};

// "GPU 3 (GPU-6f7a…)"
std::string describe_gpu(const GpuFacts& gpu);

}  // namespace braid
