// SPDX-License-Identifier: Apache-2.0
#include "planner/placement.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/checked.h"
#include "planner/placement_bound.h"
#include "planner/placement_branches.h"
#include "planner/placement_player.h"
#include "planner/placement_problem.h"
#include "planner/placement_rules.h"
#include "planner/placement_search.h"
#include "planner/placement_table.h"

namespace braid {
namespace {

constexpr uint64_t kSizeMax = INT64_MAX;
constexpr uint64_t kBestSteps = 2'000'000;
constexpr uint64_t kExactSteps = 200'000'000;

bool is_time(double seconds) { return std::isfinite(seconds) && seconds >= 0; }

Status check_item(const PlacedItem& item, size_t index) {
  const auto wrong = [&](std::string_view what) {
    return make_status(StatusCode::InvalidArgument, "item {} '{}': {}", index, item.id, what);
  };
  if (item.id.empty()) return wrong("its id is empty; right is a name that no other item has");
  if (item.shape.empty() || item.shape.size() > PlacedItem::kDimensionsMax) {
    return wrong(fmt::format("its shape has {} dimensions; right are 1 to {}", item.shape.size(),
                             PlacedItem::kDimensionsMax));
  }
  CheckedNumber elements = 1;
  for (const uint64_t size : item.shape) {
    if (size == 0) return wrong("its shape has a dimension of 0; right are integers from 1");
    elements *= size;
  }
  if (!elements.is_at_most(kSizeMax)) return wrong("its shape has 2^63 elements or more");
  if (!is_time(item.cost_seconds)) {
    return wrong(fmt::format("its cost is {}; right is a time in seconds, from 0, such as 0.0015",
                             item.cost_seconds));
  }
  if (item.bytes > kSizeMax) return wrong("its bytes are 2^63 or more");
  return Status::ok();
}

PlacementProblem problem_of(std::span<const PlacedItem> items, uint32_t ranks,
                            const LinearCost& link) {
  PlacementProblem problem;
  problem.ranks = ranks;
  for (const PlacedItem& item : items) {
    PlacementProblem::Item one;
    one.cost_seconds = item.cost_seconds;
    if (ranks > 1) one.spread_seconds = link.seconds(static_cast<double>(item.bytes));
    one.rows = static_cast<double>(item.shape.front());
    for (size_t i = 1; i < item.shape.size(); ++i) {
      one.columns *= static_cast<double>(item.shape[i]);
    }
    problem.items.push_back(one);
  }
  return problem;
}

// `is_exact`: searches longer. `is_optimal`: nothing better is possible.
PlayedPlacement best_placement(const PlacementProblem& problem, double bound_seconds, bool is_exact,
                               bool& is_optimal) {
  PlayedPlacement best = PlacementSearch(problem, bound_seconds).run();
  is_optimal = false;
  if (problem.items.size() > PlacementBranches::kItemsMax) return best;
  PlacementBranches first(problem, std::move(best), bound_seconds, kBestSteps);
  is_optimal = first.run();
  if (is_optimal) return first.best();
  if (PlacementTable::fits(problem)) {
    is_optimal = true;
    PlayedPlacement optimal = PlacementTable::optimal(problem);
    // They may differ by rounding alone.
    return optimal.makespan_seconds < first.best().makespan_seconds ? optimal : first.best();
  }
  if (!is_exact) return first.best();
  PlacementBranches longer(problem, first.best(), bound_seconds, kExactSteps);
  is_optimal = longer.run();
  return longer.best();
}

Placement placement_of(const PlacementProblem& problem, PlayedPlacement played) {
  Placement placement;
  placement.loads.resize(problem.ranks);
  double everybody_seconds = 0;
  for (size_t i = 0; i < problem.items.size(); ++i) {
    const uint32_t owner = played.owners[i];
    double& seconds = owner == Placement::kEverybody ? everybody_seconds : placement.loads[owner];
    seconds += problem.items[i].cost_seconds;
  }
  for (double& load : placement.loads) load += everybody_seconds;
  placement.owners = std::move(played.owners);
  placement.order = std::move(played.order);
  placement.makespan_seconds = played.makespan_seconds;
  return placement;
}

}  // namespace

Status check_placed_items(std::span<const PlacedItem> items, const LinearCost& link) {
  if (items.empty() || items.size() > PlacedItem::kItemsMax) {
    return make_status(StatusCode::InvalidArgument,
                       "there are {} items to place; right are 1 to {}", items.size(),
                       PlacedItem::kItemsMax);
  }
  for (const double seconds : {link.startup_seconds, link.seconds_per_byte}) {
    if (is_time(seconds)) continue;
    return make_status(StatusCode::InvalidArgument,
                       "the link takes {} + {} * bytes seconds; right are numbers from 0",
                       link.startup_seconds, link.seconds_per_byte);
  }
  std::unordered_set<std::string_view> ids;
  double sum = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    BRAID_RETURN_IF_ERROR(check_item(items[i], i));
    if (!ids.insert(items[i].id).second) {
      return make_status(
          StatusCode::InvalidArgument,
          "item {} '{}': its id stands twice; right is a name that no other item has", i,
          items[i].id);
    }
    sum += items[i].cost_seconds + link.seconds(static_cast<double>(items[i].bytes));
    if (!std::isfinite(sum)) {
      return make_status(StatusCode::InvalidArgument,
                         "item {} '{}': with it the sum of all times is infinite; right are times "
                         "in seconds",
                         i, items[i].id);
    }
  }
  return Status::ok();
}

Result<Placement> place(std::span<const PlacedItem> items, uint32_t ranks, std::string_view rule,
                        const LinearCost& link) {
  BRAID_RETURN_IF_ERROR(check_placed_items(items, link));
  if (ranks == 0 || ranks > Placement::kRanksMax) {
    return make_status(StatusCode::InvalidArgument, "there are {} ranks; right are 1 to {}", ranks,
                       Placement::kRanksMax);
  }
  const bool is_exact = rule == "exact";
  const bool is_searched = is_exact || rule == "best";
  std::optional<PlacementRule> named;
  if (!is_searched) {
    auto parsed = PlacementRule::parse(rule);
    if (!parsed) return parsed.status();
    named = *parsed;
  }
  const PlacementProblem problem = problem_of(items, ranks, link);
  const double bound_seconds = placement_bound(problem);
  bool is_optimal = false;
  Placement placement = placement_of(
      problem, is_searched ? best_placement(problem, bound_seconds, is_exact, is_optimal)
                           : PlacementPlayer(problem).played(named->owners(problem)));
  placement.bound_seconds =
      is_optimal ? placement.makespan_seconds : std::min(bound_seconds, placement.makespan_seconds);
  placement.is_optimal = is_optimal || placement.makespan_seconds <=
                                           placement.bound_seconds * (1 + kPlacementTolerance);
  return placement;
}

}  // namespace braid
