// SPDX-License-Identifier: Apache-2.0
#include "planner/algorithm_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/ranges.h>

namespace braid {
namespace {

using CostOf = LinearCost (*)(double n, const LinkCost& link, const AlgorithmOptions& options);

LinearCost ring(double n, const LinkCost& link, const AlgorithmOptions& /*options*/) {
  const double share = (n - 1) / n;
  return {2 * (n - 1) * link.latency_seconds,
          2 * share * link.seconds_per_byte + share * link.reduce_seconds_per_byte};
}

LinearCost recursive_doubling(double n, const LinkCost& link, const AlgorithmOptions& /*options*/) {
  const double rounds = std::log2(n);
  return {rounds * link.latency_seconds,
          rounds * (link.seconds_per_byte + link.reduce_seconds_per_byte)};
}

LinearCost halving_doubling(double n, const LinkCost& link, const AlgorithmOptions& /*options*/) {
  const double beta = link.seconds_per_byte;
  const double gamma = link.reduce_seconds_per_byte;
  return {2 * std::log2(n) * link.latency_seconds, 2 * beta - (2 * beta + gamma) / n + gamma};
}

LinearCost binary_tree(double n, const LinkCost& link, const AlgorithmOptions& /*options*/) {
  const double rounds = std::log2(n);
  return {2 * rounds * link.latency_seconds,
          rounds * (2 * link.seconds_per_byte + link.reduce_seconds_per_byte)};
}

LinearCost double_binary_trees(double n, const LinkCost& link,
                               const AlgorithmOptions& /*options*/) {
  return {2 * std::log2(n) * link.latency_seconds,
          link.seconds_per_byte + link.reduce_seconds_per_byte};
}

LinearCost hierarchical(double n, const LinkCost& link, const AlgorithmOptions& options) {
  const double group = std::min<double>(options.group_workers, n);
  const LinearCost inside = ring(group, options.inside.value_or(link), options);
  const LinearCost between = ring(n / group, link, options);
  return {inside.startup_seconds + between.startup_seconds,
          inside.seconds_per_byte + between.seconds_per_byte / group};
}

constexpr std::array<Algorithm, 6> kAlgorithms = {{
    {"ring", "reduce-scatter and all-gather around a ring"},
    {"recursive-doubling", "everything to a partner at twice the distance each round"},
    {"halving-doubling", "reduce-scatter by halving, all-gather by doubling"},
    {"binary-tree", "reduce to a root and broadcast from it"},
    {"double-binary-trees", "two trees at once, each with half of the data"},
    {"hierarchical", "a ring inside each group of workers, rings between the groups"},
}};
constexpr std::array<CostOf, kAlgorithms.size()> kCosts = {
    ring, recursive_doubling, halving_doubling, binary_tree, double_binary_trees, hierarchical};

Status check_link(const LinkCost& link) {
  for (const auto& [name, value] :
       {std::pair{"alpha", link.latency_seconds}, std::pair{"beta", link.seconds_per_byte},
        std::pair{"gamma", link.reduce_seconds_per_byte}}) {
    if (std::isfinite(value) && value >= 0) continue;
    return make_status(StatusCode::InvalidArgument,
                       "{}: {} is no cost; right are seconds (alpha) or seconds per byte (beta, "
                       "gamma), from 0",
                       name, value);
  }
  return Status::ok();
}

Status check_groups(uint32_t workers, uint32_t group_workers) {
  if (group_workers == 0) {
    return {StatusCode::InvalidArgument, "groups of 0 workers; right are 1 or more"};
  }
  if (workers > group_workers && workers % group_workers != 0) {
    return make_status(StatusCode::InvalidArgument,
                       "{} workers do not fill groups of {}; right is a multiple of {}", workers,
                       group_workers, group_workers);
  }
  return Status::ok();
}

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

Result<LinearCost> algorithm_cost(std::string_view algorithm, uint32_t workers,
                                  const LinkCost& link, const AlgorithmOptions& options) {
  const auto found = std::find_if(kAlgorithms.begin(), kAlgorithms.end(),
                                  [&](const Algorithm& one) { return one.name == algorithm; });
  if (found == kAlgorithms.end()) {
    std::vector<std::string_view> names;
    names.reserve(kAlgorithms.size());
    for (const Algorithm& one : kAlgorithms) names.push_back(one.name);
    return make_status(StatusCode::NotFound, "unknown algorithm '{}'; known are {}", algorithm,
                       fmt::join(names, ", "));
  }
  if (workers == 0) return {{StatusCode::InvalidArgument, "0 workers; right are 1 or more"}};
  BRAID_RETURN_IF_ERROR(check_link(link));
  if (options.inside) BRAID_RETURN_IF_ERROR(check_link(*options.inside));
  if (found->name == "hierarchical") {
    BRAID_RETURN_IF_ERROR(check_groups(workers, options.group_workers));
  }
  if (workers == 1) return LinearCost{};
  return kCosts[static_cast<size_t>(found - kAlgorithms.begin())](workers, link, options);
}

}  // namespace braid
