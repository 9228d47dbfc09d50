// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "explain/explanation.h"
#include "explain/job_view.h"

// The parts of explain(): each looks for some causes and adds what it finds. All of them may assume
// that there are ranks and steps.
namespace braid {

struct Evidence {
  const JobFacts& before;
  const JobFacts& after;
  const JobView& view;  // of `after`
  const std::optional<LiveSet>& plan;

  double step_seconds = 0;
  double exposed_seconds = 0;
  // The network is worth to be spoken of.
  bool is_exposed() const { return is_worth(exposed_seconds, step_seconds); }
  // The same node's facts in `before`; nullptr: it did not answer.
  const NodeFacts* earlier(const NodeFacts& node) const;
};

using Findings = std::vector<Finding>;

// operation_findings.cpp: in place of steps and of what follows from them.
struct OperationOrder;
void find_last_submitters(const Evidence& evidence, const OperationOrder& order,
                          Findings& findings);
Finding without_late_ranks(const Evidence& evidence, const OperationOrder& order);
// rank_findings.cpp
void find_stall(const Evidence& evidence, Findings& findings);
void find_not_finite(const Evidence& evidence, Findings& findings);
void find_late_ranks(const Evidence& evidence, Findings& findings);
void find_time_before_backward(const Evidence& evidence, Findings& findings);
// placement_findings.cpp
void find_placement(const Evidence& evidence, Findings& findings);
// gpu_findings.cpp: after late ranks, which they may explain.
void find_gpus(const Evidence& evidence, Findings& findings);
// network_findings.cpp
void find_lost_flows(const Evidence& evidence, Findings& findings);
void find_rails_down(const Evidence& evidence, Findings& findings);
void find_slow_rail(const Evidence& evidence, Findings& findings);
void find_competing_jobs(const Evidence& evidence, Findings& findings);
void find_starved_daemons(const Evidence& evidence, Findings& findings);
void find_slow_flows(const Evidence& evidence, Findings& findings);  // after the one above
// plan_findings.cpp
void find_better_plan(const Evidence& evidence, Findings& findings);
void find_small_messages(const Evidence& evidence, Findings& findings);
// Where nothing else explains what trainers wait for; after all others.
void find_network(const Evidence& evidence, Findings& findings);

// What the node's flows to all nodes deliver, in bytes per second; 0: not known.
double rail_capacity(const NodeFacts& node);

}  // namespace braid
