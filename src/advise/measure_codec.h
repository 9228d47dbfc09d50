// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "codec/codec_spec.h"

namespace braid {

// Seconds of one core for one pass over `bytes` of float32.
struct CodecTimes {
  std::string codec;
  uint64_t bytes = 0;
  uint64_t encoded_bytes = 0;
  double encode = 0;              // without error feedback; 0: it has none without
  double encode_with_memory = 0;  // with it
  double decode = 0;
  double decode_and_add = 0;
  // Encoding of sums (CodedSum), with error memory where sums have it. 0: not measured by
  // themselves, or encoded as parts are.
  double encode_sum = 0;
  double decode_sum = 0;
};

// How often a pass is repeated: the fastest one counts, so what others take of the memory meanwhile
// counts as little as can be. One more before them, which meets new memory, is left out.
struct PassTimer {
  std::function<double()> clock;  // seconds
  uint32_t repeats = 7;
  // No further repetition begins once the measured ones took so long.
  double budget_seconds = std::numeric_limits<double>::infinity();

  double fastest_seconds(const std::function<void()>& pass) const;
};

// Seconds of the calling thread's own time: what others take of the core does not count.
double thread_cpu_clock();

// Like gradients: normal, the sum of what is uniform (Irwin and Hall), around 0.
std::vector<float> make_gradient(uint64_t count);

// `sums` has as many elements as `gradient`, and is written to. `nodes`: whose parts a sum has in
// it, at most kSumPartsMax; 0: sums are not measured by themselves.
inline constexpr uint32_t kSumPartsMax = 16;
Result<CodecTimes> measure_codec(const CodecSpec& spec, std::span<const float> gradient,
                                 std::span<float> sums, const PassTimer& timer, uint32_t nodes = 0);

}  // namespace braid
