// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "planner/cost_model.h"
#include "planner/plan.h"
#include "planner/workload.h"

namespace braid {

// What a greedy planner knows when it decides whether the message that it has collected waits for
// the next tensor: the papers' l is the message's last tensor, l − 1 the next one.
struct MergeQuestion {
  uint64_t bytes = 0;             // of the message so far: p[l]
  double start_seconds = 0;       // when it could be sent: τ_c(l)
  double startup_seconds = 0;     // that it would pay for: a
  double next_ready_seconds = 0;  // when the next tensor is there: ready(l − 1)
};

// The loop that MG-WFBP (arXiv 1912.09268, algorithm 1) and its successors share; they differ in
// when `merges(question)`.
//
// The paper computes all τ_c anew after every merge, which is O(L²). τ_c(l) depends on the tensors
// from L to l alone, and a merge of l changes only t_c(l), which is 0 from then on, and p(l − 1)
// and t_c(l − 1), which are used when it is the turn of l − 1: so one pass does the same additions
// in the same order, and gives the same bits.
//
// `phases_of(group, bytes)` is what a message of these tensors costs.
template <typename PhasesOf, typename Merges>
Plan greedy_merge_by(const Workload& workload, const PhasesOf& phases_of, const Merges& merges) {
  Plan plan;
  const auto& tensors = workload.tensors;
  if (tensors.empty()) return plan;
  uint32_t begin = 0;
  uint64_t bytes = tensors[0].bytes;
  double start = tensors[0].ready_seconds;
  for (uint32_t next = 1; next < tensors.size(); ++next) {
    const CostModel::Phases phases = phases_of(Plan::Group{begin, next}, bytes);
    const double ready = tensors[next].ready_seconds;
    double busy = 0;
    if (merges(MergeQuestion{bytes, start, phases.startup_seconds, ready})) {
      bytes += tensors[next].bytes;
    } else {
      busy = phases.seconds();
      plan.groups.push_back({begin, next});
      begin = next;
      bytes = tensors[next].bytes;
    }
    start = std::max(start + busy, ready);
  }
  plan.groups.push_back({begin, static_cast<uint32_t>(tensors.size())});
  return plan;
}

template <typename Merges>
Plan greedy_merge(const Workload& workload, const CostModel& cost, const Merges& merges) {
  return greedy_merge_by(
      workload, [&](const Plan::Group&, uint64_t bytes) { return cost.phases(bytes); }, merges);
}

}  // namespace braid
