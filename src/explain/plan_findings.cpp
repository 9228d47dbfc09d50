// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "base/amount.h"
#include "explain/findings.h"
#include "planner/all_planners.h"
#include "planner/simulator.h"
#include "planner/workload.h"

namespace braid {
namespace {

// Operations whose startup takes this share of their time are small.
constexpr double kStartupShare = 0.5;
// Where no cost is known yet: smaller ones than this are.
constexpr double kSmallBytes = 64 << 10;
constexpr std::string_view kDefaultPlanner = "streams";
constexpr std::string_view kNoPlanner = "first";
constexpr double kGuessedStartup = 0.001;  // seconds

struct Startup {
  double startup_seconds = 0;
  double seconds = 0;
  double share() const { return seconds == 0 ? 0 : startup_seconds / seconds; }
};

Startup startup_of(const LiveSet& set, const Plan& plan, const Workload& workload) {
  Startup sum;
  for (const Plan::Group& group : plan.groups) {
    uint64_t bytes = 0;
    for (uint32_t i = group.begin; i < group.end; ++i) bytes += workload.tensors[i].bytes;
    const CostModel::Phases phases = set.cost->phases(bytes);
    sum.startup_seconds += phases.startup_seconds;
    sum.seconds += phases.seconds();
  }
  return sum;
}

// The planner of the node that coordinates the job; empty: it did not tell.
std::string configured_planner(const Evidence& evidence) {
  for (const NodeFacts& node : evidence.after.nodes) {
    if (!node.planner.empty()) return node.planner;
  }
  return {};
}

// The cost that the plan was made with. Where plans are not made at all there is none: then what
// the slowest node's flows deliver, and a guess at the startup.
std::shared_ptr<const CostModel> cost_of(const Evidence& evidence, const LiveSet& set) {
  if (set.cost) return std::make_shared<FittedCost>(*set.cost);
  if (configured_planner(evidence) != kNoPlanner || set.nodes < 2) return nullptr;
  double slowest = 0;
  for (const NodeFacts& node : evidence.after.nodes) {
    const double capacity = rail_capacity(node);
    if (capacity == 0) return nullptr;
    slowest = slowest == 0 ? capacity : std::min(slowest, capacity);
  }
  if (slowest == 0) return nullptr;
  const double bytes_sent_per_byte = 2.0 * (set.nodes - 1) / set.nodes;
  return std::make_shared<LinearCostModel>(
      LinearCost{kGuessedStartup, bytes_sent_per_byte / slowest});
}

double fill_seconds(const Evidence& evidence, const NodeFacts& node, double& bytes_per_step) {
  const NodeFacts* earlier = evidence.earlier(node);
  if (earlier == nullptr || node.at_ns <= earlier->at_ns) return 0;
  uint64_t now = 0, then = 0;
  for (const NodeFacts::Flow& flow : node.flows) now += flow.bytes_sent;
  for (const NodeFacts::Flow& flow : earlier->flows) then += flow.bytes_sent;
  const double steps = to_seconds(node.at_ns - earlier->at_ns) / evidence.step_seconds;
  bytes_per_step = now <= then || steps == 0 ? 0 : static_cast<double>(now - then) / steps;
  const double capacity = rail_capacity(node);
  return capacity == 0 ? 0 : bytes_per_step / capacity;
}

}  // namespace

void find_better_plan(const Evidence& evidence, Findings& findings) {
  if (!evidence.plan || !evidence.plan->is_measured()) return;
  const LiveSet& set = *evidence.plan;
  const auto cost = cost_of(evidence, set);
  const auto held = plan_of_groups(set.groups, set.trace);
  if (cost == nullptr || !held) return;
  const Workload workload = workload_of(set.trace);
  PlannerOptions options;
  options.streams = set.streams;
  const SimulatorOptions simulation{.streams = set.streams};
  const Timeline now = simulate(workload, *held, *cost, simulation);
  const Plan best = streams_planner().plan(workload, *cost, options);
  const Timeline then = simulate(workload, best, *cost, simulation);
  // What nobody waits for now cannot be gained.
  const double gain =
      std::min(now.iteration_seconds - then.iteration_seconds, evidence.exposed_seconds);
  if (!is_worth(gain, evidence.step_seconds)) return;
  Finding finding{Cause::Plan, {}, {}, gain, {}, {}};
  finding.text = fmt::format(
      "Plan {} (planner {}, {} groups) leaves {} of communication exposed by prediction; one with "
      "{} groups would leave {}",
      set.plan, set.planner, held->groups.size(), format_time(now.exposed_seconds),
      best.groups.size(), format_time(then.exposed_seconds));
  finding.advice =
      configured_planner(evidence) == kDefaultPlanner
          ? "the job's coordinator proposes a better one when it has measured enough"
          : "set plan.planner to streams, its default, in the coordinator's configuration";
  findings.push_back(std::move(finding));
}

void find_small_messages(const Evidence& evidence, Findings& findings) {
  if (!evidence.is_exposed() || !evidence.plan) return;
  const LiveSet& set = *evidence.plan;
  const size_t groups = set.groups.size();
  const Workload workload = workload_of(set.trace);
  const auto bytes = static_cast<double>(workload.bytes());
  if (groups == 0 || bytes == 0) return;
  const auto plan = plan_of_groups(set.groups, set.trace);
  std::string share;
  if (set.cost && plan) {
    const Startup startup = startup_of(set, *plan, workload);
    if (startup.share() < kStartupShare) return;
    share = fmt::format("{:.0f} % of their time is startup", startup.share() * 100);
  } else {
    if (bytes / static_cast<double>(groups) >= kSmallBytes) return;
    share = "most of their time is startup";
  }
  Finding finding{Cause::SmallMessages, {}, {}, evidence.exposed_seconds, {}, {}};
  finding.text =
      fmt::format("A step's gradients are {} in {} operations, so {}: round trips, not bytes",
                  format_amount(bytes), groups, share);
  finding.advice =
      "larger batches or accumulated micro-batches give each round trip more work; more flows or "
      "a codec would bring nothing";
  findings.push_back(std::move(finding));
}

void find_network(const Evidence& evidence, Findings& findings) {
  if (!evidence.is_exposed()) return;
  const bool is_explained = std::ranges::any_of(findings, [](const Finding& finding) {
    return finding.cause == Cause::SlowRail || finding.cause == Cause::CompetingJobs ||
           finding.cause == Cause::StarvedDaemon || finding.cause == Cause::SmallMessages;
  });
  if (is_explained) return;
  Finding finding{Cause::Network, {}, {}, evidence.exposed_seconds, {}, {}};
  // What a better plan would hide is said already.
  for (const Finding& other : findings)
    if (other.cause == Cause::Plan) finding.seconds_per_step -= other.seconds_per_step;
  if (!is_worth(finding.seconds_per_step, evidence.step_seconds)) return;
  finding.text =
      fmt::format("The network bounds the step: of {} the trainers wait {} for it",
                  format_time(evidence.step_seconds), format_time(evidence.exposed_seconds));
  double longest = 0;
  for (const NodeFacts& node : evidence.after.nodes) {
    double bytes_per_step = 0;
    const double fill = fill_seconds(evidence, node, bytes_per_step);
    if (fill <= longest) continue;
    longest = fill;
    finding.node = node.node;
    finding.text = fmt::format(
        "The network bounds the step: of {} the trainers wait {} for it; {} sends {} a step, which "
        "fills the {} that its flows deliver for {}",
        format_time(evidence.step_seconds), format_time(evidence.exposed_seconds), node.node,
        format_amount(bytes_per_step), format_rate(rail_capacity(node)), format_time(fill));
  }
  finding.advice = fmt::format(
      "fewer bytes (braidctl advise --job {} says which codec would pay), larger batches, or "
      "faster rails",
      evidence.after.job);
  findings.push_back(std::move(finding));
}

}  // namespace braid
