// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/cost_model.h"
#include "planner/plan.h"
#include "planner/workload.h"

namespace braid {

// All joint plans of a few streams, by dynamic programming over what has been sent of each:
//   f(i, j, …) = min over the streams, and over the tensors that its last group has, of
//                max(f before that group, ready of its last tensor) + T(its bytes)
// f never decreases, as more tensors are never through earlier. So among the groups that begin
// only when their last tensor is ready, the smallest one is the best.
//
// Streams with too many tensors are cut into atoms first, which no group divides: neighbours, so
// that each atom has a like share of its stream's ready times and sending times.
class JointTable {
 public:
  static constexpr size_t kStatesMax = size_t{1} << 16;

  JointTable(std::span<const Workload> streams, const CostModel& cost);

  // Whether each tensor is an atom, so no plan is better.
  bool is_exact() const { return is_exact_; }
  std::vector<Plan> plans();

 private:
  struct Stream {
    std::vector<uint32_t> ends;  // [i]: tensors in the first i atoms
    std::vector<uint64_t> bytes;
    std::vector<double> ready_seconds;  // [i]: of the atom i − 1
    size_t stride = 1;                  // of the states
    size_t atoms() const { return ends.size() - 1; }
  };
  // What has been sent when all of some atoms are through, and the last group of it.
  struct State {
    double end_seconds = 0;
    uint32_t groups = 0;
    uint32_t stream = 0;
    uint32_t begin = 0;  // atom
  };

  static size_t atoms_max(std::span<const Workload> streams);
  Stream cut(const Workload& workload, size_t atoms) const;
  void fill();
  void continue_with(size_t index, uint32_t stream, uint32_t atoms);

  const CostModel& cost_;
  std::vector<Stream> streams_;
  std::vector<State> states_;
  bool is_exact_ = true;
};

}  // namespace braid
