// SPDX-License-Identifier: Apache-2.0
#include "explain/operation_order.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "explain/job_view.h"

namespace braid {
namespace {

using OperationKey = std::tuple<std::string, uint64_t, std::string>;  // tensor, step, collective

// In these all ranks wait for all.
bool waits_for_all(const std::string& collective) {
  return collective != "broadcast" && collective != "gather" && collective != "scatter";
}

// By a node's own clock, in seconds before it told of it; `begin` is the larger number.
struct Interval {
  double begin = 0;
  double end = 0;
};

// Where several overlap, once.
double covered(std::vector<Interval> intervals) {
  std::ranges::sort(intervals, std::ranges::greater(), &Interval::begin);
  double sum = 0, reached = HUGE_VAL;
  for (const Interval& one : intervals) {
    sum += std::max(0.0, std::min(one.begin, reached) - one.end);
    reached = std::min(reached, one.end);
  }
  return sum;
}

struct RankWait {
  double wait = 0;
  double ended_ago = 0;
};

// One operation: what each rank of the job has waited.
using Waits = std::vector<RankWait>;

struct Place {
  uint32_t rank = 0;
  size_t node = 0;
};

std::map<OperationKey, Waits> common_operations(const JobFacts& facts, size_t ranks) {
  std::map<OperationKey, Waits> operations;
  for (const NodeFacts& node : facts.nodes) {
    for (const NodeFacts::Operation& one : node.operations) {
      if (!waits_for_all(one.collective)) continue;
      Waits& waits = operations[{one.tensor, one.step, one.collective}];
      for (const uint64_t wait_ns : one.wait_ns)
        waits.push_back({to_seconds(wait_ns), to_seconds(one.ended_ago_ns)});
    }
  }
  std::erase_if(operations, [ranks](const auto& one) { return one.second.size() != ranks; });
  return operations;
}

double median_of_others(const Waits& waits, size_t own) {
  std::vector<double> others;
  for (size_t i = 0; i < waits.size(); ++i) {
    if (i != own) others.push_back(waits[i].wait);
  }
  return median(std::move(others));
}

std::string describe(const OperationKey& key) {
  const auto& [tensor, step, collective] = key;
  return fmt::format("{} {} of '{}'", collective, step, tensor);
}

OperationOrder::Rank look_at(size_t place, const std::map<OperationKey, Waits>& operations) {
  OperationOrder::Rank rank;
  std::vector<double> lates;
  std::vector<Interval> waited_for;
  double latest = 0;
  for (const auto& [key, waits] : operations) {
    const double late = median_of_others(waits, place) - waits[place].wait;
    if (late < kWorthSeconds) continue;
    const double submitted_ago = waits[place].ended_ago + waits[place].wait;
    waited_for.push_back({submitted_ago + late, submitted_ago});
    lates.push_back(late);
    if (late > latest) rank.operation = describe(key);
    latest = std::max(latest, late);
  }
  rank.last_in = lates.size();
  rank.late = median(std::move(lates));
  rank.waited_for = covered(std::move(waited_for));
  return rank;
}

}  // namespace

OperationOrder order_of_operations(const JobFacts& facts) {
  std::vector<Place> places;
  for (size_t node = 0; node < facts.nodes.size(); ++node) {
    for (const uint32_t rank : facts.nodes[node].ranks) places.push_back({rank, node});
  }
  const auto operations = common_operations(facts, places.size());
  OperationOrder order;
  order.operations = operations.size();
  if (operations.empty() || places.empty()) return order;
  std::vector<Interval> on_their_way;  // by the first rank's node
  double first = 0, last = HUGE_VAL;
  for (const auto& [key, waits] : operations) {
    const double network =
        std::ranges::min_element(waits, {}, [](const RankWait& one) { return one.wait; })->wait;
    const double ended = waits.front().ended_ago;
    on_their_way.push_back({ended + network, ended});
    for (const RankWait& one : waits) first = std::max(first, one.ended_ago + one.wait);
    last = std::min(last, ended);
  }
  order.seconds = first - last;
  order.network = covered(std::move(on_their_way));
  for (size_t i = 0; i < places.size() && places.size() > 1; ++i) {
    OperationOrder::Rank rank = look_at(i, operations);
    rank.rank = places[i].rank;
    rank.node = facts.nodes[places[i].node].node;
    order.ranks.push_back(std::move(rank));
  }
  return order;
}

}  // namespace braid
