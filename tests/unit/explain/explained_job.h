// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "explain/explanation.h"

namespace braid::testing {

inline constexpr uint64_t kMs = 1'000'000;  // in nanoseconds

// A job on nodes 'a', 'b', …, whose facts a test changes before it has them explained. As it is
// made, nothing is wrong with it: a step takes 100 ms, of which 60 are backward and 30 pass before
// it, and of the network there is nothing to see.
class ExplainedJob {
 public:
  static constexpr uint64_t kSteps = 20;

  explicit ExplainedJob(size_t nodes = 3, size_t ranks_per_node = 1);

  NodeFacts& node(size_t index) { return after_.nodes[index]; }
  NodeFacts& earlier(size_t index) { return before_.nodes[index]; }
  // The same in both.
  template <typename Change>
  void change_both(size_t index, Change change) {
    change(before_.nodes[index]);
    change(after_.nodes[index]);
  }
  // What all ranks wait for the network, in each step, which takes so much longer.
  void expose_ms(uint64_t ms);
  // Rank `place` of the node gives its last gradient so much later; all others wait for it.
  void delay_ms(size_t node, size_t place, uint64_t ms, bool is_in_backward = true);
  // It has no planned tensors and so no steps, but so many operations, one all 10 ms, in which each
  // rank waits for 1 ms.
  void replace_steps_by_operations(uint64_t count);
  // Rank `place` of the node submits operation `number`, counted from the latest, so much later.
  void delay_operation_ms(size_t node, size_t place, size_t number, uint64_t ms);
  // `count` flows from each node to the next one, each with this rate.
  void add_flows(size_t count, double bytes_per_second, const std::string& rail = "eth0");

  JobFacts& after() { return after_; }
  std::optional<LiveSet>& plan() { return plan_; }
  Result<Explanation> explain() const { return braid::explain(before_, after_, plan_); }
  // In order.
  std::vector<Cause> causes() const;
  // The only finding of this cause; a failure of the test if there is none, or another one.
  Finding find(Cause cause) const;

 private:
  JobFacts before_;
  JobFacts after_;
  std::optional<LiveSet> plan_;
};

}  // namespace braid::testing
