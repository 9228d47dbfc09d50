// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "messages/plan_messages.h"
#include "planner/fit_cost.h"

namespace braid {

// By more than `share` of the smaller one. 0: not measured, as an iteration where steps do not
// follow each other by one.
bool differ(double a, double b, double share);

// How much longer all-reduces took than `cost` says (the median); 0 without any.
double slowness(std::span<const CostMeasurement> measurements, const CostModel& cost);

// Joins what the nodes say of the same all-reduces. Each measures one from the moment when its own
// neighbour is ready, and waits for the node that is ready last; what that one measured, the
// quickest, is the all-reduce and nothing else. Control loop only.
class MeasurementJoin {
 public:
  static constexpr size_t kOpenMax = 65'536;  // of which not all nodes have said anything yet

  explicit MeasurementJoin(size_t nodes) : nodes_(nodes) {}

  // Those of which now all nodes have; sizes have two significant digits, so that they repeat.
  std::vector<CostMeasurement> add(std::span<const PlanReport::MeasuredOperation> operations);
  void clear() { open_.clear(); }

 private:
  struct Open {
    size_t nodes = 0;
    PlanReport::MeasuredOperation quickest;
  };
  const size_t nodes_;
  std::unordered_map<uint64_t, Open> open_;
};

// What the all-reduces of a job took, by size: the latest of each size are kept, so that sizes
// which the plan of the day does not have are not forgotten. Control loop only.
class PlanMeasurements {
 public:
  static constexpr size_t kKeptPerSize = 64;
  static constexpr size_t kSizesMax = 1024;

  void add(std::span<const CostMeasurement> measurements);
  // The network has become another: `latest` were measured on it, and the transfers of the others
  // are stretched by as much as these are slower than `cost` says. What startups have become only
  // small sizes could say.
  void rescale(std::span<const CostMeasurement> latest, const CostModel& cost);
  void clear() { seconds_.clear(); }
  // By size.
  std::vector<CostMeasurement> all() const;

 private:
  std::map<uint64_t, std::deque<double>> seconds_;  // by size
};

// The network of one job, as its coordinator sees it: what all-reduces take, and the cost that was
// fitted to that. It is the same for all sets, and a node's report has the all-reduces of all.
// Control loop only.
class NetworkModel {
 public:
  explicit NetworkModel(size_t nodes) : join_(nodes) {}

  // Returns those of which now all nodes have said something.
  std::vector<CostMeasurement> add(std::span<const PlanReport::MeasuredOperation> operations);
  std::vector<CostMeasurement> measurements() const { return measurements_.all(); }
  // The cost that the latest decision was made with.
  void take_cost(const FittedCost& cost);
  // Against the cost of the first decision; 0: not known.
  double slowness(std::span<const CostMeasurement> measured) const;

  // The network has become another, on which `latest` was measured.
  void change(std::span<const CostMeasurement> latest);
  // What was measured says nothing about what comes.
  void forget();
  // It grows when what was asked of the plan thread before is of no use any more.
  uint64_t era() const { return era_; }
  void begin_era() { ++era_; }

 private:
  MeasurementJoin join_;
  PlanMeasurements measurements_;
  std::optional<FittedCost> cost_;
  std::optional<FittedCost> reference_;
  uint64_t era_ = 0;
};

}  // namespace braid
