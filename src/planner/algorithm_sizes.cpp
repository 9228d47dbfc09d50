// SPDX-License-Identifier: Apache-2.0
#include "planner/algorithm_sizes.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace braid {
namespace {

constexpr double kNearHopSeconds = 250e-6;  // wake-ups and system calls on both nodes
constexpr double kAssumedSecondsPerByte = 4e-9;
constexpr uint32_t kDistanceClassMax = 12;  // a round trip of two seconds
constexpr double kCrowding = 0.2;
constexpr double kHalvingSlowness = 1.4;
constexpr double kDirectBytesOfTwo = 1.5;
constexpr double kDirectBytesMin = 3;  // of more
constexpr double kBytesMax = 1 << 30;
// A fit needs sizes that differ so much: startups and bytes then weigh differently.
constexpr double kSizeRatioMin = 4;

// What an algorithm takes, in hops, and in bytes for each byte of the all-reduce.
struct Course {
  double hops = 0;
  double bytes = 0;
};

double ring_bytes(double n) { return 2 * (n - 1) / n; }

Course direct(double n) {
  if (n == 2) return {1, kDirectBytesOfTwo};
  return {1, std::max((n - 1) * (1 + kCrowding * (n - 2)), kDirectBytesMin)};
}
Course two_hops(double n) {
  return {2, ring_bytes(n) * (1 + kCrowding * std::max((n - 2) * (n - 2), 2.0))};
}
Course ring(double n) { return {2 * (n - 1), ring_bytes(n)}; }
Course halving(uint32_t nodes) {
  const uint32_t halved = std::bit_floor(nodes);
  const Course course{2.0 * std::bit_width(halved) - 2, ring_bytes(halved) * kHalvingSlowness};
  return halved == nodes ? course : Course{course.hops + 2, course.bytes + 0.5};
}

// Up to which size `one` takes no longer than `other`, which goes more hops.
double crossover(const Course& one, const Course& other, const HopCost& cost) {
  if (one.bytes <= other.bytes) return kBytesMax;
  return (other.hops - one.hops) * cost.hop_seconds /
         ((one.bytes - other.bytes) * cost.seconds_per_byte);
}

Course course_of(uint64_t bytes, uint32_t nodes, const AlgorithmSizes& sizes) {
  if (bytes <= sizes.direct_bytes) return direct(nodes);
  if (bytes <= sizes.two_hops_bytes) return two_hops(nodes);
  return bytes <= sizes.halving_bytes ? halving(nodes) : ring(nodes);
}

}  // namespace

HopCost assumed_hop_cost(double round_trip_seconds) {
  const double hops = 1 + std::max(round_trip_seconds, 0.0) / 2 / kNearHopSeconds;
  double hop = 1;
  for (uint32_t i = 0; i < kDistanceClassMax && 2 * hop <= hops; ++i) hop *= 2;
  return {hop * kNearHopSeconds, kAssumedSecondsPerByte};
}

AlgorithmSizes algorithm_sizes(uint32_t nodes, const HopCost& cost) {
  if (nodes < 2 || cost.hop_seconds <= 0 || cost.seconds_per_byte <= 0) return {};
  const Course around = ring(nodes);
  double direct_most = crossover(direct(nodes), around, cost);
  double two_hops_most = 0;
  double halving_most = 0;
  if (nodes >= 3) {
    two_hops_most = crossover(two_hops(nodes), around, cost);
    direct_most = std::min(direct_most, crossover(direct(nodes), two_hops(nodes), cost));
  }
  if (nodes >= 4) {
    halving_most = crossover(halving(nodes), around, cost);
    two_hops_most = std::min(two_hops_most, crossover(two_hops(nodes), halving(nodes), cost));
    direct_most = std::min(direct_most, crossover(direct(nodes), halving(nodes), cost));
  }
  const auto bytes = [](double most) { return static_cast<uint64_t>(std::min(most, kBytesMax)); };
  return {bytes(direct_most), bytes(two_hops_most), bytes(halving_most)};
}

// Least squares of the relative errors: small all-reduces say what a hop costs, and large ones,
// whose errors are larger, what a byte does.
std::optional<HopCost> fit_hop_cost(std::span<const CostMeasurement> measured, uint32_t nodes,
                                    const AlgorithmSizes& sizes) {
  double hh = 0;
  double hb = 0;
  double bb = 0;
  double h = 0;
  double b = 0;
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (const CostMeasurement& one : measured) {
    if (one.seconds <= 0 || one.bytes == 0 || one.concurrent != 1 || nodes < 2) continue;
    const Course course = course_of(one.bytes, nodes, sizes);
    const double bytes = course.bytes * static_cast<double>(one.bytes);
    const double hop_share = course.hops / one.seconds;
    const double byte_share = bytes / one.seconds;
    hh += hop_share * hop_share;
    hb += hop_share * byte_share;
    bb += byte_share * byte_share;
    h += hop_share;
    b += byte_share;
    least = std::min(least, bytes / course.hops);
    most = std::max(most, bytes / course.hops);
  }
  if (most < kSizeRatioMin * least) return std::nullopt;
  const double determinant = hh * bb - hb * hb;
  const HopCost cost{(h * bb - b * hb) / determinant, (b * hh - h * hb) / determinant};
  if (!(cost.hop_seconds > 0) || !(cost.seconds_per_byte > 0)) return std::nullopt;
  return cost;
}

}  // namespace braid
