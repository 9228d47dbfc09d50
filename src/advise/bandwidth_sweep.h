// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "advise/advice.h"

namespace braid {

// Bits in a second that one node sends and receives, when all-reduces of any size are as fast as
// the largest ones of `wire`: those carry 2(n−1)/n of their bytes each way. Infinite where a byte
// costs nothing.
double wire_bandwidth(const CostModel& wire, uint32_t nodes);

// The step over bandwidths: startups stay what they are, transfers scale.
struct BandwidthSweep {
  std::vector<double> bandwidths;                 // bits in a second, ascending
  std::vector<std::vector<double>> step_seconds;  // [row of the advice][bandwidth]
  // By row: the bandwidth above which this codec pays no more (AdviceOptions::margin), within the
  // sweep. The first bandwidth: it nowhere pays; none: it pays up to the last one.
  std::vector<std::optional<double>> pays_up_to;
};

inline constexpr double kSweepBandwidthMin = 1e9;
inline constexpr double kSweepBandwidthMax = 100e9;

// `wire` has a finite bandwidth.
BandwidthSweep sweep_bandwidths(const Workload& workload, const CostModel& wire,
                                std::span<const CodecProfile> codecs, const Planner& planner,
                                const AdviceOptions& options);

}  // namespace braid
