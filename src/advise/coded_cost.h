// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "advise/codec_profile.h"
#include "planner/cost_model.h"

namespace braid {

// The cost of an all-reduce whose parts and sums travel encoded, over a group's plain bytes M. With
// W the wire's transfer of what is left of M, C what the threads that encode do for M, and c a
// chunk of M, at most a node's part:
//
//   T(M) = startup + max(W(M), C(M)) + min(W(c), C(c))
//
// C is the coding, and the sending and receiving of what is left: the same threads do both. Chunks
// are coded while others travel, so the slower of the two counts; and one chunk's worth of the
// other, before the first chunk can go and after the last one has come. Without coding it is the
// wire's own cost. After Agarwal et al. ("On the Utility of Gradient Compression in Distributed
// Training Systems", MLSys 2022), who add coding and transfer up; here they overlap. Immutable; any
// thread.
class CodedCost final : public CostModel {
 public:
  struct Options {
    uint32_t nodes = 2;
    double encode_threads = 1;  // less than 1: nodes share a core
    // What sending and receiving costs these threads together, for each byte of a plain all-reduce.
    // 0: not known.
    double carry_seconds_per_byte = 0;
    uint64_t chunk_bytes = 128 << 10;
    double transfer_factor = 1;  // the wire's transfers take so many times as long as measured
  };

  // `wire` has lines, outlives this cost, and is that of plain all-reduces among `nodes`.
  CodedCost(const CostModel& wire, const CodecProfile& codec, const Options& options);

  Phases phases(uint64_t bytes) const override;
  // One unit's coding leaves nothing to another one's: where it is what takes longest, units side
  // by side gain nothing, whatever the wire can do.
  double slowdown(uint32_t transfers) const override;
  std::vector<Line> lines() const override { return lines_; }

 private:
  const CostModel& wire_;
  bool is_coding_slower_ = false;  // of the largest groups
  std::vector<Line> lines_;
};

}  // namespace braid
