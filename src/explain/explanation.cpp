// SPDX-License-Identifier: Apache-2.0
#include "explain/explanation.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "explain/findings.h"
#include "explain/operation_order.h"

namespace braid {
namespace {

// Fewer say nothing: the first ones settle, and one may be an accident.
constexpr size_t kStepsMin = 8;
constexpr size_t kOperationsMin = 16;

constexpr std::array<std::string_view, kCauseCount> kNames = {
    "stalled",   "not_finite",      "gpu_lost",       "gpu_xid",   "gpu_ecc",
    "gpu_heat",  "gpu_power",       "gpu_slowdown",   "gpu_pcie",  "gpu_shared",
    "late_rank", "placement",       "lost_flow",      "rail_down", "slow_flow",
    "slow_rail", "competing_jobs",  "starved_daemon", "plan",      "small_messages",
    "network",   "before_backward", "compute"};

uint64_t steps_known(const JobFacts& facts) {
  uint64_t most = 0;
  for (const NodeFacts& node : facts.nodes) most = std::max<uint64_t>(most, node.steps.size());
  return most;
}

Status why_nothing(const JobFacts& facts) {
  const bool has_set = std::ranges::any_of(
      facts.nodes, [](const NodeFacts& node) { return node.planned_bytes != 0; });
  if (!has_set) {
    return make_status(
        StatusCode::NotFound,
        "job '{}' has no planned tensors (with PyTorch, DDP on a braid process group has), so it "
        "has no steps to look at; all of its nodes report {} operations, and {} are needed",
        facts.job, order_of_operations(facts).operations, kOperationsMin);
  }
  return make_status(StatusCode::NotFound,
                     "job '{}': {} steps have ended so far; {} that all of its nodes know are "
                     "needed",
                     facts.job, steps_known(facts), kStepsMin);
}

void find_links(const Evidence& evidence, Findings& findings) {
  find_lost_flows(evidence, findings);
  find_rails_down(evidence, findings);
  find_slow_rail(evidence, findings);
  find_competing_jobs(evidence, findings);
  find_starved_daemons(evidence, findings);
  find_slow_flows(evidence, findings);
}

void find_all(const Evidence& evidence, Findings& findings) {
  find_stall(evidence, findings);
  find_not_finite(evidence, findings);
  find_late_ranks(evidence, findings);
  find_placement(evidence, findings);
  find_gpus(evidence, findings);
  find_links(evidence, findings);
  find_better_plan(evidence, findings);
  find_small_messages(evidence, findings);
  find_time_before_backward(evidence, findings);
  find_network(evidence, findings);
}

Finding compute_bound(const Evidence& evidence) {
  Finding finding;
  finding.text = fmt::format(
      "Compute bounds the step: communication is hidden, of {} the trainers wait {} for the "
      "network",
      format_time(evidence.step_seconds), format_time(evidence.exposed_seconds));
  return finding;
}

}  // namespace

std::string_view to_string(Cause cause) { return kNames[static_cast<size_t>(cause)]; }

namespace {

Explanation about(const JobFacts& facts) {
  Explanation explanation;
  explanation.job = facts.job;
  explanation.nodes = facts.nodes.size();
  explanation.missing = facts.missing;
  explanation.world_size = facts.nodes.front().world_size;
  return explanation;
}

// What ends training comes before what slows it; of what costs the same, what was looked for first.
void sort_findings(Findings& findings) {
  std::ranges::stable_sort(findings, [](const Finding& one, const Finding& other) {
    const bool is_fatal = one.cause <= Cause::GpuEcc, is_other = other.cause <= Cause::GpuEcc;
    return is_fatal != is_other ? is_fatal : one.seconds_per_step > other.seconds_per_step;
  });
}

bool costs_something(const Findings& findings) {
  return std::ranges::any_of(findings,
                             [](const Finding& finding) { return finding.seconds_per_step > 0; });
}

Explanation explain_operations(const JobFacts& before, const JobFacts& after,
                               const std::optional<LiveSet>& plan, const OperationOrder& order) {
  const JobView view;
  const Evidence evidence{before, after, view, plan, order.seconds, order.network};
  Explanation explanation = about(after);
  explanation.operations = order.operations;
  explanation.step_seconds = order.seconds;
  explanation.exposed_seconds = order.network;
  find_last_submitters(evidence, order, explanation.findings);
  find_gpus(evidence, explanation.findings);
  find_links(evidence, explanation.findings);
  sort_findings(explanation.findings);
  if (!costs_something(explanation.findings))
    explanation.findings.push_back(without_late_ranks(evidence, order));
  return explanation;
}

}  // namespace

Result<Explanation> explain(const JobFacts& before, const JobFacts& after,
                            const std::optional<LiveSet>& plan) {
  const JobView view = view_job(after);
  if (view.steps.empty() && !plan) {
    const OperationOrder order = order_of_operations(after);
    if (order.operations >= kOperationsMin && order.seconds > 0)
      return explain_operations(before, after, plan, order);
  }
  if (view.steps.size() < kStepsMin || view.ranks.empty()) return why_nothing(after);
  const Evidence evidence{before, after, view, plan, view.step(), view.exposed()};
  Explanation explanation = about(after);
  explanation.steps = view.steps.size();
  explanation.step_seconds = evidence.step_seconds;
  explanation.exposed_seconds = evidence.exposed_seconds;
  find_all(evidence, explanation.findings);
  sort_findings(explanation.findings);
  if (!costs_something(explanation.findings))
    explanation.findings.push_back(compute_bound(evidence));
  return explanation;
}

}  // namespace braid
