// SPDX-License-Identifier: Apache-2.0
#include "coordinator/set_traffic.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

namespace braid {
namespace {

// Each kind of steps is planned for by itself; the sets that send most count.
constexpr size_t kBesideSetsMax = 4;

struct BesideSet {
  double share = 0;
  double bytes = 0;
  std::vector<Workload::Unit> units;
};

const PlanReport::Beside* find_beside(const std::vector<PlanReport::Beside>& all, uint64_t set) {
  const auto found = std::ranges::find(all, set, &PlanReport::Beside::set);
  return found == all.end() ? nullptr : &*found;
}

// For how long tensors of both become ready, if the other set begins so much later.
double overlap(const SetMeasured& own, const SetMeasured& other, double later_seconds) {
  return std::min(own.last_ready_seconds, later_seconds + other.last_ready_seconds) -
         std::max(0.0, later_seconds);
}

// How much later than this set's steps those of the other set begin. Nothing: they do not meet.
std::optional<double> later_seconds(uint64_t set, const SetMeasured& own, const SetTraffic& other,
                                    const PlanReport::Beside& before) {
  double later = -static_cast<double>(before.before_ns) / 1e9;
  if (const auto* after = find_beside(other.measured->beside, set)) {
    const double other_later = static_cast<double>(after->before_ns) / 1e9;
    if (overlap(own, *other.measured, other_later) > overlap(own, *other.measured, later))
      later = other_later;
  }
  if (overlap(own, *other.measured, later) < 0) return std::nullopt;
  return later;
}

BesideSet units_of(const SetTraffic& other, double later_seconds, double share) {
  BesideSet result{share, 0, {}};
  const std::vector<SetMeasured::Tensor>& tensors = other.measured->tensors;
  for (const std::vector<uint64_t>& group : other.groups) {
    Workload::Unit unit;
    for (const uint64_t hash : group) {
      const auto tensor = std::ranges::lower_bound(tensors, hash, {}, &SetMeasured::Tensor::hash);
      if (tensor == tensors.end() || tensor->hash != hash) continue;
      unit.ready_seconds = std::max(unit.ready_seconds, tensor->ready_seconds);
      unit.bytes += tensor->bytes;
    }
    unit.ready_seconds += later_seconds;
    result.bytes += static_cast<double>(unit.bytes);
    result.units.push_back(unit);
  }
  return result;
}

// Moves the beginning of the time axis to the first unit, if that is before it.
void move_beginning(std::vector<BesideSet>& sets, Workload& workload) {
  double first = 0;
  for (const BesideSet& set : sets) {
    for (const Workload::Unit& unit : set.units) first = std::min(first, unit.ready_seconds);
  }
  workload.forward_seconds += first;
  for (Workload::Tensor& tensor : workload.tensors) tensor.ready_seconds -= first;
  for (BesideSet& set : sets) {
    for (Workload::Unit& unit : set.units) unit.ready_seconds -= first;
  }
}

}  // namespace

std::vector<PlanReport::Beside> merge_beside(std::span<const PlanReport> reports) {
  struct Sum {
    double share = 0;
    double before_ns = 0;
    uint32_t nodes = 0;
  };
  std::map<uint64_t, Sum> sums;
  for (const PlanReport& report : reports) {
    for (const PlanReport::Beside& one : report.beside) {
      Sum& sum = sums[one.set];
      sum.share += one.share;
      sum.before_ns += static_cast<double>(one.before_ns);
      ++sum.nodes;
    }
  }
  std::vector<PlanReport::Beside> merged;
  merged.reserve(sums.size());
  for (const auto& [set, sum] : sums) {
    merged.push_back({set, static_cast<uint64_t>(sum.before_ns / sum.nodes),
                      sum.share / static_cast<double>(reports.size())});
  }
  return merged;
}

std::vector<BesideSteps> beside_steps(uint64_t set, const SetMeasured& own,
                                      std::span<const SetTraffic> others, Workload& workload) {
  std::vector<BesideSet> sets;
  for (const SetTraffic& other : others) {
    const PlanReport::Beside* const before = find_beside(own.beside, other.set);
    if (before == nullptr) continue;
    const auto later = later_seconds(set, own, other, *before);
    if (later) sets.push_back(units_of(other, *later, before->share));
  }
  const auto by_bytes = [](const BesideSet& one) { return one.bytes * one.share; };
  std::ranges::stable_sort(sets, std::ranges::greater(), by_bytes);
  if (sets.size() > kBesideSetsMax) sets.resize(kBesideSetsMax);
  std::ranges::stable_sort(sets, std::ranges::greater(), &BesideSet::share);
  move_beginning(sets, workload);
  std::vector<BesideSteps> kinds;
  std::vector<Workload::Unit> units;
  for (size_t i = 0; i < sets.size(); ++i) {
    units.insert(units.end(), sets[i].units.begin(), sets[i].units.end());
    const double share = sets[i].share - (i + 1 < sets.size() ? sets[i + 1].share : 0);
    if (share <= 0) continue;
    std::ranges::stable_sort(units, {}, &Workload::Unit::ready_seconds);
    kinds.push_back({share, units});
  }
  return kinds;
}

}  // namespace braid
