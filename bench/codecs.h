// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "advise/measure_codec.h"
#include "base/status.h"

namespace braid::bench {

struct CodecsOptions {
  uint64_t bytes = 64'000'000;      // of float32
  std::vector<std::string> codecs;  // specs; empty: all with their defaults
  uint32_t repeats = 7;
  uint32_t nodes = 0;  // whose parts are in sums; 0: sums are not measured
  bool as_json = false;
};

// What memory allows, in seconds: the same number of bytes copied, and added by the reduction
// kernel.
struct MemoryTimes {
  double copy = 0;
  double add = 0;
};

// One line, without a line end.
std::string codecs_heading(uint64_t bytes, const MemoryTimes& memory);
std::string codecs_row(const CodecTimes& times);
std::string codecs_json(const CodecTimes& times, const MemoryTimes& memory);

// Rates of the codecs on one core, beside those of memory.
Status run_codecs(const CodecsOptions& options);

}  // namespace braid::bench
