// SPDX-License-Identifier: Apache-2.0
#include "planner/placement_order.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>

#include "base/assert.h"
#include "planner/placement.h"

namespace braid {

void PlacementOrder::set_owners(std::span<const uint32_t> owners) {
  items_.clear();
  for (uint32_t i = 0; i < owners.size(); ++i) {
    if (owners[i] == Placement::kEverybody) continue;
    const PlacementProblem::Item& item = problem_.items[i];
    items_.push_back({owners[i], i, item.cost_seconds, item.spread_seconds});
  }
  std::ranges::sort(items_, {}, [](const OwnedItem& one) {
    return std::tuple(one.owner, one.cost_seconds, one.item);
  });
}

double PlacementOrder::bound_seconds() const {
  return std::max({ready_bound(), owner_bound(), last_bound()});
}

double PlacementOrder::ready_bound() const {
  std::vector<double> ready;
  std::vector<double> spreads;
  for (size_t i = 0; i < items_.size(); ++i) {
    const bool continues = i > 0 && items_[i - 1].owner == items_[i].owner;
    ready.push_back((continues ? ready.back() : 0) + items_[i].cost_seconds);
    spreads.push_back(items_[i].spread_seconds);
  }
  std::ranges::sort(ready, std::greater<>());
  std::ranges::sort(spreads);
  double bound = 0;
  double rest = 0;
  for (size_t i = 0; i < ready.size(); ++i) {
    rest += spreads[i];
    bound = std::max(bound, ready[i] + rest);
  }
  return bound;
}

double PlacementOrder::owner_bound() const {
  std::vector<OwnedItem> items = items_;
  std::ranges::sort(items, {}, [](const OwnedItem& one) {
    const bool is_first = one.cost_seconds < one.spread_seconds;
    return std::tuple(one.owner, is_first ? 0 : 1,
                      is_first ? one.cost_seconds : -one.spread_seconds);
  });
  double bound = 0;
  double computed = 0;
  double end = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i == 0 || items[i - 1].owner != items[i].owner) computed = end = 0;
    computed += items[i].cost_seconds;
    end = std::max(end, computed) + items[i].spread_seconds;
    bound = std::max(bound, end);
  }
  return bound;
}

double PlacementOrder::last_bound() const {
  struct Owner {
    double load = 0;
    double spread = std::numeric_limits<double>::infinity();
  };
  std::vector<Owner> owners;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (i == 0 || items_[i - 1].owner != items_[i].owner) owners.emplace_back();
    owners.back().load += items_[i].cost_seconds;
    owners.back().spread = std::min(owners.back().spread, items_[i].spread_seconds);
  }
  std::ranges::sort(owners, std::greater<>(), &Owner::load);
  double bound = 0;
  double spreads = 0;
  for (const Owner& owner : owners) {
    spreads += owner.spread;
    bound = std::max(bound, owner.load + spreads);
  }
  return bound;
}

std::vector<uint32_t> PlacementOrder::search(double& end_seconds) {
  const size_t count = items_.size();
  BRAID_ASSERT(count <= kItemsMax, "the caller has counted the items");
  const size_t sets = size_t{1} << count;
  ends_.assign(sets, 0);
  last_.assign(sets, 0);
  for (size_t set = 1; set < sets; ++set) {
    double best = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < count;) {  // an owner's items are neighbours
      size_t next = i;
      double computed = 0;
      for (; next < count && items_[next].owner == items_[i].owner; ++next) {
        if ((set >> next & 1) != 0) computed += items_[next].cost_seconds;
      }
      for (; i < next; ++i) {
        if ((set >> i & 1) == 0) continue;
        const double end =
            std::max(ends_[set ^ size_t{1} << i], computed) + items_[i].spread_seconds;
        if (end >= best) continue;
        best = end;
        last_[set] = static_cast<uint8_t>(i);
      }
    }
    ends_[set] = best;
  }
  end_seconds = ends_[sets - 1];
  std::vector<uint32_t> order;
  for (size_t set = sets - 1; set != 0; set ^= size_t{1} << last_[set]) {
    order.push_back(items_[last_[set]].item);
  }
  std::ranges::reverse(order);
  return order;
}

}  // namespace braid
