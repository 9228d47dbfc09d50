// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/unit/planner/instances.h"

namespace braid {
namespace {

// The simulator's rules once more, in the most naive way: every unit has a state and what is left
// of it, and from one event to the next everything is brought forward by hand.
class Oracle {
 public:
  Oracle(const Workload& workload, const Plan& plan, const CostModel& cost, uint32_t streams)
      : cost_(cost), streams_(streams) {
    for (const Plan::Group& group : plan.groups) {
      uint64_t bytes = 0;
      for (uint32_t i = group.begin; i < group.end; ++i) bytes += workload.tensors[i].bytes;
      for (uint32_t piece = 0; piece < group.pieces; ++piece) {
        const uint64_t more = piece < bytes % group.pieces ? 1 : 0;
        const CostModel::Phases phases = cost.phases(bytes / group.pieces + more);
        units_.push_back({State::Waiting, workload.tensors[group.end - 1].ready_seconds,
                          phases.startup_seconds, phases.transfer_seconds});
      }
    }
    while (advance()) {
    }
  }

  struct Unit;
  const std::vector<Unit>& units() const { return units_; }

  enum class State { Waiting, Starting, Transferring, Done };
  struct Unit {
    State state = State::Waiting;
    double ready = 0;
    double startup_left = 0;
    double transfer_left = 0;
    double start = 0;
    double end = 0;
  };

 private:
  uint32_t count(State state) const {
    uint32_t found = 0;
    for (const Unit& unit : units_) found += unit.state == state ? 1 : 0;
    return found;
  }

  // Whatever takes no time.
  bool change_states() {
    for (Unit& unit : units_) {
      if (unit.state == State::Starting && unit.startup_left <= kNothing) {
        unit.state = State::Transferring;
        return true;
      }
      if (unit.state == State::Transferring && unit.transfer_left <= kNothing) {
        unit.state = State::Done;
        unit.end = now_;
        return true;
      }
    }
    for (Unit& unit : units_) {
      if (unit.state != State::Waiting) continue;
      const bool free = count(State::Starting) + count(State::Transferring) < streams_;
      if (!free || unit.ready > now_ + kNothing) return false;
      unit.state = State::Starting;
      unit.start = now_;
      return true;
    }
    return false;
  }

  bool advance() {
    while (change_states()) {
    }
    const uint32_t transfers = count(State::Transferring);
    const double slowdown = transfers == 0 ? 1 : cost_.slowdown(transfers);
    double step = std::numeric_limits<double>::infinity();
    bool waiting = false;
    for (const Unit& unit : units_) {
      if (unit.state == State::Starting) step = std::min(step, unit.startup_left);
      if (unit.state == State::Transferring) step = std::min(step, unit.transfer_left * slowdown);
      if (unit.state == State::Waiting && !waiting) {
        waiting = true;  // those after it wait for it
        if (unit.ready > now_) step = std::min(step, unit.ready - now_);
      }
    }
    if (std::isinf(step)) return false;
    now_ += step;
    for (Unit& unit : units_) {
      if (unit.state == State::Starting) unit.startup_left -= step;
      if (unit.state == State::Transferring) unit.transfer_left -= step / slowdown;
    }
    return true;
  }

  static constexpr double kNothing = 1e-12;

  const CostModel& cost_;
  const uint32_t streams_;
  std::vector<Unit> units_;
  double now_ = 0;
};

TEST(SimulatorOracleTest, EveryUnitStartsAndEndsAsTheRulesSay) {
  Instances instances(12);
  for (int i = 0; i < 3000; ++i) {
    const bool whole = i % 3 == 0;
    const Workload workload = whole ? instances.whole_workload(12) : instances.real_workload(25);
    const LinearCost linear = whole ? instances.whole_cost() : instances.real_cost();
    const LinearCostModel cost(linear, instances.real(1, 2));
    const Plan plan = instances.plan(workload, 4);
    SimulatorOptions options;
    options.streams = static_cast<uint32_t>(1 + instances.below(6));
    const Timeline timeline = simulate(workload, plan, cost, options);
    const Oracle oracle(workload, plan, cost, options.streams);
    ASSERT_EQ(timeline.units.size(), oracle.units().size());
    for (size_t u = 0; u < timeline.units.size(); ++u) {
      ASSERT_NEAR(timeline.units[u].start_seconds, oracle.units()[u].start, 1e-9)
          << "instance " << i << ", unit " << u;
      ASSERT_NEAR(timeline.units[u].end_seconds, oracle.units()[u].end, 1e-9)
          << "instance " << i << ", unit " << u;
    }
  }
}

}  // namespace
}  // namespace braid
