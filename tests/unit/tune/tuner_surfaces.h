// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "tune/random_generator.h"
#include "tune/search_space.h"

// Made-up jobs for the tuner: what a step takes with which settings, and what disturbs it.
namespace braid {

// flows, streams, unit, chunk, window: as the daemon has them. 5,880 settings, 2,660 of them
// allowed or so.
inline SearchSpace transport_space() {
  constexpr uint64_t kKib = 1 << 10;
  const auto doubling = [](uint64_t first, int count) {
    std::vector<uint64_t> values;
    values.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) values.push_back(first << i);
    return values;
  };
  auto space =
      SearchSpace::create({{"flows_per_link", doubling(1, 5)},
                           {"streams", doubling(1, 4)},
                           {"unit_bytes", doubling(256 * kKib, 7)},
                           {"chunk_bytes", doubling(64 * kKib, 6)},
                           {"window_bytes", doubling(128 * kKib, 7)}},
                          [](std::span<const uint64_t> v) { return v[3] <= v[2] && v[4] >= v[3]; });
  BRAID_ASSERT(space.is_ok(), "a space of the right form");
  return std::move(space).value();
}

inline Setting setting_of(const SearchSpace& space, const NamedValues& values) {
  return space.nearest(values, space.at(0));
}

// Seconds of a step with these values of transport_space().
using Surface = std::function<double(std::span<const uint64_t>)>;

struct ModelNetwork {
  double bytes = 400e6;
  double nic = 12e9;             // bytes/s in all
  double round_trip = 60e-6;     // a flow carries a window in it
  double flow_cap = 2.5e9;       // bytes/s that one flow can have at most
  double cpu_per_chunk = 6e-6;   // seconds
  double cpu_per_flow = 0.4e-3;  // per step
  double startup = 250e-6;       // of each unit, hidden by other streams
  double last_unit_share = 1;    // of the last unit's time, nothing hides
  double compute = 20e-3;
  double overlap = 0.7;  // of compute may hide communication
};

// A network with interactions: flows fill the NIC only with windows that fill the flows; small
// chunks cost the CPU, large ones leave the pipeline empty; streams hide units' startups.
inline Surface network_surface(const ModelNetwork& n) {
  return [n](std::span<const uint64_t> v) {
    const auto flows = static_cast<double>(v[0]);
    const auto streams = static_cast<double>(v[1]);
    const auto unit = static_cast<double>(v[2]);
    const auto chunk = static_cast<double>(v[3]);
    const auto window = static_cast<double>(v[4]);
    const double per_flow = std::min(n.flow_cap, window / (n.round_trip + chunk / n.nic));
    const double rate = std::min(n.nic, flows * per_flow);
    const double cpu = n.bytes / chunk * n.cpu_per_chunk + flows * n.cpu_per_flow;
    const double units = n.bytes / unit;
    const double startups = units * n.startup / streams * (1 + 0.05 * streams * streams / 4);
    const double tail = n.last_unit_share * (unit * streams + flows * chunk) / rate;
    const double communication = std::max(n.bytes / rate, cpu) + startups + tail;
    return n.compute + std::max(0.0, communication - n.overlap * n.compute);
  };
}

inline Surface flat_surface() {
  return [](std::span<const uint64_t>) { return 0.05; };
}

// Each place away from the center takes `factor` times as long.
inline Surface bowl_surface(const SearchSpace& space, const Setting& center, double factor = 1.04) {
  return [&space, center, factor](std::span<const uint64_t> v) {
    NamedValues values;
    for (size_t i = 0; i < v.size(); ++i) values[space.parameters()[i].name] = v[i];
    const Setting here = space.nearest(values, center);
    double places = 0;
    for (size_t i = 0; i < v.size(); ++i) {
      places += std::abs(here.indexes[i] - center.indexes[i]);
    }
    return 0.05 * std::pow(factor, places);
  };
}

// More in flight than the switch's buffer holds: everything is lost and sent again.
inline Surface cliff_surface(Surface below) {
  return [below = std::move(below)](std::span<const uint64_t> v) {
    const double in_flight = static_cast<double>(v[0]) * static_cast<double>(v[4]);
    return below(v) * (in_flight > 12e6 ? 6 : 1);
  };
}

struct Disturbance {
  double noise = 0.05;        // standard deviation of ln(seconds)
  double outlier_chance = 0;  // of a step that takes outlier_factor times as long
  double outlier_factor = 3;
  uint64_t drift_step = std::numeric_limits<uint64_t>::max();  // from it on:
  double drift_factor = 1.3;
  double drift_per_step = 0;  // ln, slowly
};

// Runs steps as a job would.
class FakeJob {
 public:
  FakeJob(const SearchSpace& space, Surface surface, const Disturbance& disturbance, uint64_t seed)
      : space_(space), surface_(std::move(surface)), disturbance_(disturbance), random_(seed) {}

  double true_seconds(const Setting& setting) const {
    std::vector<uint64_t> values;
    for (size_t i = 0; i < setting.indexes.size(); ++i) {
      values.push_back(space_.parameters()[i].values[setting.indexes[i]]);
    }
    return surface_(values);
  }
  double step(const Setting& setting) {
    double seconds = true_seconds(setting) * std::exp(disturbance_.noise * normal());
    if (random_.unit() < disturbance_.outlier_chance) seconds *= disturbance_.outlier_factor;
    if (steps_ >= disturbance_.drift_step) seconds *= disturbance_.drift_factor;
    seconds *= std::exp(disturbance_.drift_per_step * static_cast<double>(steps_));
    ++steps_;
    return seconds;
  }
  double best_seconds() const {
    double best = std::numeric_limits<double>::infinity();
    for (uint64_t i = 0; i < space_.size(); ++i) {
      const Setting setting = space_.at(i);
      if (space_.allows(setting)) best = std::min(best, true_seconds(setting));
    }
    return best;
  }
  uint64_t steps() const { return steps_; }

 private:
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - random_.unit()));
    return radius * std::cos(2 * std::numbers::pi * random_.unit());
  }

  const SearchSpace& space_;
  Surface surface_;
  Disturbance disturbance_;
  RandomGenerator random_;
  uint64_t steps_ = 0;
};

}  // namespace braid
