// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace braid::bench {

struct CodecsOptions {
  uint64_t bytes = 64'000'000;      // of float32
  std::vector<std::string> codecs;  // specs; empty: all with their defaults
  uint32_t repeats = 7;
  std::string vectors = "widest";  // or avx2, baseline
  bool as_json = false;
};

// Seconds of the thread's own time for one pass over CodecsOptions::bytes, the fastest of all
// repeats.
struct CodecTimes {
  std::string codec;
  uint64_t bytes = 0;
  uint64_t encoded_bytes = 0;
  double encode = 0;              // without error feedback; 0: it has none without
  double encode_with_memory = 0;  // with it
  double decode = 0;
  double decode_and_add = 0;
};

// What memory allows: the same number of bytes copied, and added by the reduction kernel.
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
