// SPDX-License-Identifier: Apache-2.0
#include "tune/transfer_space.h"

#include <algorithm>
#include <array>

namespace braid {
namespace {

constexpr uint64_t kKiB = 1 << 10;
constexpr uint64_t kMiB = 1 << 20;

// In the order of the space's parameters.
enum ParameterPlace : size_t {
  kFlows,
  kStreams,
  kUnit,
  kChunk,
  kWindow,
  kDirect,
  kTwoHops,
  kHalving,
  kHierarchical,
  kPlaces
};
constexpr std::array<std::string_view, kPlaces> kNames = {
    "flows_per_link", "streams",        "unit_bytes",    "chunk_bytes", "window_bytes",
    "direct_bytes",   "two_hops_bytes", "halving_bytes", "hierarchical"};

std::vector<uint64_t> usual_values(size_t place) {
  switch (place) {
    case kFlows:
      return {1, 2, 4, 8, 16};
    case kStreams:
      return {1, 2, 4, 8};
    case kUnit:
      return {1 * kMiB, 2 * kMiB, 4 * kMiB, 8 * kMiB, 16 * kMiB};
    case kChunk:
      return {32 * kKiB, 64 * kKiB, 128 * kKiB, 256 * kKiB, 512 * kKiB};
    case kWindow:
      return {256 * kKiB, 512 * kKiB, 1 * kMiB, 2 * kMiB};
    case kDirect:
      return {1, 32 * kKiB, 128 * kKiB, 256 * kKiB};  // 1: nothing is direct
    case kTwoHops:
      return {1, 256 * kKiB, 1 * kMiB, 4 * kMiB};  // 1: nothing goes by two hops
    case kHalving:
      return {1, 256 * kKiB, 1 * kMiB};  // 1: nothing goes by halves
    default:
      return {1, 2};
  }
}

bool is_possible(std::span<const uint64_t> values) {
  return values[kChunk] <= values[kUnit] && values[kChunk] <= values[kWindow];
}

uint64_t most_of(size_t place, const TransferSpaceOptions& options) {
  if (place == kFlows) return options.flows_max;
  return place == kChunk || place == kDirect ? options.chunk_bytes_max : UINT64_MAX;
}

}  // namespace

std::span<const std::string_view> transfer_parameters() { return kNames; }

bool is_transfer_parameter(std::string_view name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

Result<SearchSpace> make_transfer_space(const TransferSpaceOptions& options) {
  std::vector<SearchSpace::Parameter> parameters;
  for (size_t place = 0; place < kPlaces; ++place) {
    const std::string name(kNames[place]);
    const auto given = options.defaults.find(name);
    if (given == options.defaults.end()) {
      return make_status(StatusCode::InvalidArgument, "parameter '{}': has no default", name);
    }
    const uint64_t usual = std::max<uint64_t>(given->second, 1);
    std::vector<uint64_t> values = {usual};
    const bool is_pinned =
        given->second == 0 ||
        std::find(options.pinned.begin(), options.pinned.end(), name) != options.pinned.end();
    if (!is_pinned) {
      const uint64_t most = most_of(place, options);
      for (const uint64_t value : usual_values(place)) {
        if (value != usual && value <= most) values.push_back(value);
      }
      std::sort(values.begin(), values.end());
    }
    parameters.push_back({name, std::move(values)});
  }
  return SearchSpace::create(std::move(parameters), is_possible);
}

}  // namespace braid
