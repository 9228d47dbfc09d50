// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "planner/all_planners.h"
#include "planner/stream_search.h"

namespace braid {
namespace {

// How many units the search may play, for all of its starts: less than a hundred nanoseconds each.
constexpr uint64_t kUnitsMax = 400'000;
constexpr size_t kStartsMax = 3;
// An exact plan is quadratic where the cost does not say its lines: beyond, one has to do.
constexpr size_t kTensorsMaxWithoutLines = 2000;

// What a unit costs if its startup and its transfer take another share of the network's time.
class ScaledCost final : public CostModel {
 public:
  ScaledCost(const CostModel& cost, double startup, double transfer)
      : cost_(cost), startup_(startup), transfer_(transfer) {}
  Phases phases(uint64_t bytes) const override {
    const Phases phases = cost_.phases(bytes);
    return {phases.startup_seconds * startup_, phases.transfer_seconds * transfer_};
  }
  double slowdown(uint32_t transfers) const override { return cost_.slowdown(transfers); }
  std::vector<Line> lines() const override {
    std::vector<Line> lines = cost_.lines();
    for (Line& line : lines) {
      line.startup_seconds *= startup_;
      line.transfer_seconds *= transfer_;
      line.seconds_per_byte *= transfer_;
    }
    return lines;
  }

 private:
  const CostModel& cost_;
  const double startup_;
  const double transfer_;
};

class Candidates {
 public:
  Candidates(const Workload& workload, const CostModel& cost, const PlannerOptions& options)
      : workload_(workload),
        cost_(cost),
        options_(options),
        search_(workload, cost, {options.streams, options.piece_bytes_min, options.fewest_groups}) {
  }

  Plan best() {
    add_planners();
    if (!cost_.lines().empty() || workload_.tensors.size() <= kTensorsMaxWithoutLines) {
      add_pieces();
      add_saturated();
    }
    std::stable_sort(found_.begin(), found_.end(), [this](const Found& a, const Found& b) {
      return search_.better(a.score, b.score);
    });
    Found best = found_.front();
    const size_t starts = std::min(found_.size(), kStartsMax);
    for (size_t i = 0; i < starts; ++i) {
      Found found{search_.improve(found_[i].plan, kUnitsMax / starts), {}};
      found.score = search_.score(found.plan);
      if (search_.better(found.score, best.score)) best = std::move(found);
    }
    return best.plan;
  }

 private:
  struct Found {
    Plan plan;
    StreamSearch::Score score;
  };

  void add(Plan plan) {
    for (const Found& found : found_) {
      if (found.plan == plan) return;
    }
    const StreamSearch::Score score = search_.score(plan);
    found_.push_back({std::move(plan), score});
  }

  Plan exact(double startup, double transfer) const {
    PlannerOptions earliest = options_;
    earliest.fewest_groups = false;
    return exact_planner().plan(workload_, ScaledCost(cost_, startup, transfer), earliest);
  }

  // Whatever the others would do: so none of them is ever better.
  void add_planners() {
    for (const Planner* planner :
         {&exact_planner(), &asc_planner(), &wfbp_planner(), &mgwfbp_planner(), &single_planner(),
          &dear_planner(), &ddp_planner(), &horovod_planner()}) {
      add(planner->plan(workload_, cost_, options_));
    }
  }

  // One group after the other, each in p pieces at once: a + b·slowdown(p)/p·M.
  void add_pieces() {
    for (uint64_t pieces = 2; pieces <= options_.streams && pieces <= kPiecesMax; pieces *= 2) {
      const auto streams = static_cast<uint32_t>(pieces);
      Plan plan = exact(1, cost_.slowdown(streams) / static_cast<double>(pieces));
      for (Plan::Group& group : plan.groups) group = search_.cut(group, pieces);
      add(std::move(plan));
    }
  }

  // All channels busy with groups of one piece: a k-th of the startup each, and the rate of all.
  void add_saturated() {
    add(exact(1, 1));
    const double streams = options_.streams;
    const double share = cost_.slowdown(options_.streams) / streams;
    add(exact(1 / streams, share));
    add(exact(1 / streams, 1));
    add(exact(1, share));
  }

  static constexpr uint64_t kPiecesMax = 64;

  const Workload& workload_;
  const CostModel& cost_;
  const PlannerOptions& options_;
  StreamSearch search_;
  std::vector<Found> found_;
};

// There is no known exact algorithm for streams that share a network. What is best for one stream,
// for several that are always busy, and for groups that are sent in pieces side by side (one
// transfer alone may not fill the network: ASC-WFBP, INFOCOM 2021, measured two to cost 1.5 each,
// not 2) is played by the simulator; local search improves the best of them.
//
// On one stream the exact plan is the best one, unless others send units beside it.
//
// What it takes is bounded by counts, never by time: about fifteen plans, each played once, and
// kUnitsMax units of search. The plans are made in a time that grows with the tensors times the
// cost's lines; a search that ends early only leaves the plan as good as the best one before it.
class StreamsPlanner final : public Planner {
 public:
  Plan plan(const Workload& workload, const CostModel& cost,
            const PlannerOptions& options) const override {
    if ((options.streams <= 1 && workload.beside.empty()) || workload.tensors.empty()) {
      return exact_planner().plan(workload, cost, options);
    }
    return Candidates(workload, cost, options).best();
  }
  std::string_view name() const override { return "streams"; }
  std::string_view description() const override {
    return "for several streams at once, splits as well as merges: the best of the other planners' "
           "plans, improved by local search in the simulator";
  }
};

}  // namespace

const Planner& streams_planner() {
  static const StreamsPlanner planner;
  return planner;
}

}  // namespace braid
