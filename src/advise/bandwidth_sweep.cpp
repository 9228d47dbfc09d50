// SPDX-License-Identifier: Apache-2.0
#include "advise/bandwidth_sweep.h"

#include <cmath>
#include <limits>

namespace braid {
namespace {

constexpr int kBandwidthsPerDecade = 20;
constexpr int kHalvings = 10;  // of the step between two bandwidths, to find where a codec pays

class Sweeper {
 public:
  Sweeper(const Workload& workload, const CostModel& wire, const Planner& planner,
          const AdviceOptions& options)
      : workload_(workload),
        wire_(wire),
        planner_(planner),
        options_(options),
        measured_(wire_bandwidth(wire, options.cost.nodes)) {}

  double step(const CodecProfile& codec, double bandwidth) const {
    AdviceOptions options = options_;
    options.cost.transfer_factor = measured_ / bandwidth;
    return advise_codec(workload_, wire_, codec, planner_, options).step_seconds;
  }
  bool pays(double plain_seconds, double seconds) const {
    const double saved = plain_seconds - seconds;
    return saved > 0 && saved >= options_.margin * plain_seconds;
  }
  // It pays at `low` and not at `high`.
  double end_of_gain(const CodecProfile& codec, double low, double high) const {
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = std::sqrt(low * high);
      (pays(step(CodecProfile(), middle), step(codec, middle)) ? low : high) = middle;
    }
    return low;
  }

 private:
  const Workload& workload_;
  const CostModel& wire_;
  const Planner& planner_;
  const AdviceOptions& options_;
  const double measured_;
};

}  // namespace

double wire_bandwidth(const CostModel& wire, uint32_t nodes) {
  const double per_byte = wire.lines().back().seconds_per_byte;
  if (per_byte <= 0) return std::numeric_limits<double>::infinity();
  return 8 * 2 * (nodes - 1.0) / nodes / per_byte;
}

BandwidthSweep sweep_bandwidths(const Workload& workload, const CostModel& wire,
                                std::span<const CodecProfile> codecs, const Planner& planner,
                                const AdviceOptions& options) {
  const Sweeper sweeper(workload, wire, planner, options);
  BandwidthSweep sweep;
  const int last =
      std::lround(kBandwidthsPerDecade * std::log10(kSweepBandwidthMax / kSweepBandwidthMin));
  for (int i = 0; i < last; ++i) {
    const double decades = static_cast<double>(i) / kBandwidthsPerDecade;
    sweep.bandwidths.push_back(kSweepBandwidthMin * std::pow(10, decades));
  }
  sweep.bandwidths.push_back(kSweepBandwidthMax);
  const auto add = [&](const CodecProfile& codec) {
    std::vector<double>& steps = sweep.step_seconds.emplace_back();
    for (const double bandwidth : sweep.bandwidths) steps.push_back(sweeper.step(codec, bandwidth));
  };
  add(CodecProfile());
  sweep.pays_up_to.emplace_back(kSweepBandwidthMin);  // no codec saves nothing
  for (const CodecProfile& codec : codecs) {
    add(codec);
    size_t paying = sweep.bandwidths.size();  // how many bandwidths until it pays no more at all
    while (paying > 0 && !sweeper.pays(sweep.step_seconds.front()[paying - 1],
                                       sweep.step_seconds.back()[paying - 1])) {
      --paying;
    }
    std::optional<double> end;
    if (paying == 0) {
      end = kSweepBandwidthMin;
    } else if (paying < sweep.bandwidths.size()) {
      end = sweeper.end_of_gain(codec, sweep.bandwidths[paying - 1], sweep.bandwidths[paying]);
    }
    sweep.pays_up_to.push_back(end);
  }
  return sweep;
}

}  // namespace braid
