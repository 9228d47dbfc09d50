// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace braid {

// T(M) = startup + per_byte * M (the papers' a and b).
struct LinearCost {
  double startup_seconds = 0;
  double seconds_per_byte = 0;
  double seconds(double bytes) const { return startup_seconds + seconds_per_byte * bytes; }
  bool operator==(const LinearCost&) const = default;
};

// How long an all-reduce takes, as planners and simulators see it. Monotone: more bytes never take
// less time. Immutable; any thread.
class CostModel {
 public:
  // An all-reduce has two phases: a startup (latency), which several running side by side go
  // through independently, and a transfer, which shares the network with the transfers of the
  // others.
  struct Phases {
    double startup_seconds = 0;
    double transfer_seconds = 0;  // with the network to itself
    double seconds() const { return startup_seconds + transfer_seconds; }
  };
  // The cost of a range of sizes, where it is linear.
  struct Line {
    uint64_t bytes_max = UINT64_MAX;  // it holds from where the line before it ends up to here
    double startup_seconds = 0;
    double transfer_seconds = 0;  // of no bytes: negative where the range begins steeply
    double seconds_per_byte = 0;
    Phases phases(uint64_t bytes) const {
      return {startup_seconds, transfer_seconds + seconds_per_byte * static_cast<double>(bytes)};
    }
  };

  virtual ~CostModel() = default;
  virtual Phases phases(uint64_t bytes) const = 0;
  double seconds(uint64_t bytes) const { return phases(bytes).seconds(); }

  // How many times longer each of `transfers` simultaneous transfers takes than one alone: 1 for
  // one; `transfers` where they share a rate that one alone fills; between the two where one alone
  // cannot (two cost 1.5 each in ASC-WFBP, INFOCOM 2021). Never decreasing, nor less than 1, and
  // never more than `transfers`.
  virtual double slowdown(uint32_t transfers) const { return transfers; }

  // The lines of a model that consists of nothing else, by size, the last one without end: planners
  // have faster algorithms for it. None: it may be anything.
  virtual std::vector<Line> lines() const { return {}; }
};

// T(M) = a + b·M for all M.
class LinearCostModel final : public CostModel {
 public:
  // `slowdown_of_two`: see slowdown(); of k transfers: 1 + (k − 1)·(slowdown_of_two − 1).
  explicit LinearCostModel(LinearCost cost, double slowdown_of_two = 2)
      : cost_(cost), slowdown_of_two_(slowdown_of_two) {}
  Phases phases(uint64_t bytes) const override {
    return {cost_.startup_seconds, cost_.seconds_per_byte * static_cast<double>(bytes)};
  }
  double slowdown(uint32_t transfers) const override {
    return 1 + (transfers - 1) * (slowdown_of_two_ - 1);
  }
  std::vector<Line> lines() const override {
    return {{UINT64_MAX, cost_.startup_seconds, 0, cost_.seconds_per_byte}};
  }

 private:
  LinearCost cost_;
  double slowdown_of_two_;
};

}  // namespace braid
