// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace braid::bench {

// The sizes of nccl-tests' options -b, -e, -i and -f, with its defaults: from `min_bytes` to
// `max_bytes` at most, each `step_factor` times the one before it, or `step_bytes` more.
struct SizeRange {
  static constexpr size_t kSizesMax = 10'000;

  uint64_t min_bytes = 32 << 20;
  uint64_t max_bytes = 32 << 20;
  uint64_t step_bytes = 1 << 20;  // used where there is no factor
  uint32_t step_factor = 0;       // 0: none; else from 2
};

// An error where the range ends below its beginning, or has more than kSizesMax sizes.
Result<std::vector<uint64_t>> sizes_of(const SizeRange& range);

// "8", "1K", "1.5M", "2G", also with B or iB behind the letter. Powers of two, as nccl-tests has
// them; but kB, MB and GB are powers of ten, as in all of braid. At least 1.
Result<uint64_t> parse_bytes(std::string_view text);

}  // namespace braid::bench
