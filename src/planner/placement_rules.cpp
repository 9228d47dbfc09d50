// SPDX-License-Identifier: Apache-2.0
#include "planner/placement_rules.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "planner/placement.h"

namespace braid {
namespace {

constexpr double kLbpDimensionMin = 1024;  // 1,400 in older code
constexpr std::string_view kKaisa = "kaisa:";

using Load = std::pair<double, uint32_t>;  // of a rank, or of a group
using LeastLoaded = std::priority_queue<Load, std::vector<Load>, std::greater<>>;

LeastLoaded no_loads(uint32_t count) {
  std::vector<Load> loads;
  for (uint32_t i = 0; i < count; ++i) loads.emplace_back(0.0, i);
  return LeastLoaded(std::greater<>(), std::move(loads));
}

uint32_t take_least(LeastLoaded& loads, double weight) {
  const auto [load, index] = loads.top();
  loads.pop();
  loads.emplace(load + weight, index);
  return index;
}

double dimension(const PlacementProblem::Item& item) { return std::max(item.rows, item.columns); }

double muon_cost(const PlacementProblem::Item& item) {
  const double side = std::min(item.rows, item.columns);
  return dimension(item) * side * side;
}

template <typename Weight>
std::vector<double> weights_of(const PlacementProblem& problem, Weight weight) {
  std::vector<double> weights;
  for (const PlacementProblem::Item& item : problem.items) weights.push_back(weight(item));
  return weights;
}

std::vector<uint32_t> descending(const std::vector<double>& weights) {
  std::vector<uint32_t> sequence(weights.size());
  std::iota(sequence.begin(), sequence.end(), 0u);
  std::ranges::stable_sort(sequence, std::greater<>(), [&](uint32_t i) { return weights[i]; });
  return sequence;
}

std::vector<uint32_t> greedy(const PlacementProblem& problem, const std::vector<double>& weights) {
  std::vector<uint32_t> owners(weights.size());
  place_greedily(owners, descending(weights), weights, problem.ranks);
  return owners;
}

// `is_small`: everybody computes the item. `first`: the items' order; `weight`: what a rank adds
// up.
template <typename IsSmall, typename First, typename Weight>
std::vector<uint32_t> lbp(const PlacementProblem& problem, IsSmall is_small, First first,
                          Weight weight) {
  std::vector<uint32_t> owners(problem.items.size(), Placement::kEverybody);
  std::vector<uint32_t> sequence = descending(weights_of(problem, first));
  std::erase_if(sequence, [&](uint32_t i) { return is_small(problem.items[i]); });
  place_greedily(owners, sequence, weights_of(problem, weight), problem.ranks);
  return owners;
}

std::vector<uint32_t> lbp_by_dimension(const PlacementProblem& problem, double exponent) {
  return lbp(
      problem, [](const auto& item) { return dimension(item) < kLbpDimensionMin; }, dimension,
      [exponent](const auto& item) { return std::pow(dimension(item), exponent); });
}

std::vector<uint32_t> lbp_by_time(const PlacementProblem& problem) {
  const auto cost = [](const auto& item) { return item.cost_seconds; };
  return lbp(
      problem, [](const auto& item) { return item.cost_seconds < item.spread_seconds; }, cost,
      cost);
}

std::vector<uint32_t> divisors(uint32_t number) {
  std::vector<uint32_t> found;
  for (uint32_t i = 1; i <= number; ++i) {
    if (number % i == 0) found.push_back(i);
  }
  return found;
}

uint32_t kaisa_group(uint32_t ranks, double fraction) {
  uint32_t nearest = 1;
  const auto distance = [&](uint32_t size) { return std::abs(size - fraction * ranks); };
  for (const uint32_t size : divisors(ranks)) {
    if (distance(size) < distance(nearest)) nearest = size;
  }
  return nearest;
}

std::vector<uint32_t> kaisa(const PlacementProblem& problem, double fraction) {
  const uint32_t size = kaisa_group(problem.ranks, fraction);
  const uint32_t count = problem.ranks / size;
  LeastLoaded groups = no_loads(count);
  std::vector<LeastLoaded> members(count, no_loads(size));
  const auto costs = weights_of(problem, [](const auto& item) { return item.cost_seconds; });
  std::vector<uint32_t> owners(costs.size());
  for (const uint32_t item : descending(costs)) {
    const uint32_t group = take_least(groups, costs[item]);
    owners[item] = take_least(members[group], costs[item]) * count + group;
  }
  return owners;
}

std::vector<uint32_t> blocks(const PlacementProblem& problem) {
  const size_t count = problem.items.size();
  std::vector<uint32_t> owners(count);
  size_t next = 0;
  for (uint32_t rank = 0; rank < problem.ranks; ++rank) {
    const size_t size = count / problem.ranks + (rank < count % problem.ranks ? 1 : 0);
    std::fill_n(owners.begin() + static_cast<std::ptrdiff_t>(next), size, rank);
    next += size;
  }
  return owners;
}

}  // namespace

Result<PlacementRule> PlacementRule::parse(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Kind>, 8> kNames = {{
      {"round-robin", Kind::RoundRobin},
      {"block", Kind::Block},
      {"lpt", Kind::Lpt},
      {"megatron", Kind::Megatron},
      {"lbp", Kind::LbpDimension},
      {"lbp:d", Kind::LbpDimension},
      {"lbp:d2", Kind::LbpSquare},
      {"lbp:t", Kind::LbpTime},
  }};
  for (const auto& [known, kind] : kNames) {
    if (name == known) return PlacementRule(kind);
  }
  if (name.starts_with(kKaisa)) {
    const std::string_view text = name.substr(kKaisa.size());
    double fraction = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), fraction);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    if (is_number && fraction >= 0 && fraction <= 1) return PlacementRule(Kind::Kaisa, fraction);
    return make_status(
        StatusCode::InvalidArgument,
        "'{}' does not fit; right is kaisa: and the fraction of the ranks that are "
        "an item's gradient workers, from 0 (one rank) to 1 (all), such as kaisa:0.5",
        name);
  }
  return make_status(StatusCode::InvalidArgument,
                     "no rule of placement is named '{}'; there are {}", name, names());
}

std::vector<PlacementRule> PlacementRule::all(uint32_t ranks) {
  std::vector<PlacementRule> rules;
  for (const Kind kind : {Kind::Lpt, Kind::LbpTime, Kind::LbpDimension, Kind::LbpSquare,
                          Kind::Megatron, Kind::RoundRobin, Kind::Block}) {
    rules.push_back(PlacementRule(kind));
  }
  for (const uint32_t size : divisors(ranks)) {
    rules.push_back(PlacementRule(Kind::Kaisa, static_cast<double>(size) / ranks));
  }
  return rules;
}

std::string_view PlacementRule::names() {
  return "best, exact, lpt, lbp, lbp:d, lbp:d2, lbp:t, round-robin, block, megatron, kaisa:F";
}

std::vector<uint32_t> PlacementRule::owners(const PlacementProblem& problem) const {
  switch (kind_) {
    case Kind::RoundRobin: {
      std::vector<uint32_t> owners(problem.items.size());
      for (size_t i = 0; i < owners.size(); ++i)
        owners[i] = static_cast<uint32_t>(i % problem.ranks);
      return owners;
    }
    case Kind::Block:
      return blocks(problem);
    case Kind::Lpt:
      return greedy(problem,
                    weights_of(problem, [](const auto& item) { return item.cost_seconds; }));
    case Kind::Megatron:
      return greedy(problem, weights_of(problem, muon_cost));
    case Kind::LbpDimension:
      return lbp_by_dimension(problem, 1);
    case Kind::LbpSquare:
      return lbp_by_dimension(problem, 2);
    case Kind::LbpTime:
      return lbp_by_time(problem);
    case Kind::Kaisa:
      return kaisa(problem, fraction_);
  }
  BRAID_ASSERT(false, "every kind of rule has a case");
  return {};
}

void place_greedily(std::vector<uint32_t>& owners, const std::vector<uint32_t>& sequence,
                    const std::vector<double>& weights, uint32_t ranks) {
  LeastLoaded loads = no_loads(ranks);
  for (const uint32_t item : sequence) owners[item] = take_least(loads, weights[item]);
}

}  // namespace braid
