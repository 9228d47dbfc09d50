// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_plan.h"

#include <array>

#include <CLI/CLI.hpp>

#include "arguments/complete_words.h"
#include "arguments/format_option.h"
#include "braidctl/plan_report.h"
#include "planner/planner.h"

namespace braid {
namespace {

constexpr std::array kOptionsOfTraces = {"--trace", "--planner",         "--startup", "--per-byte",
                                         "--cost",  "--slowdown-of-two", "--streams", "--forward"};

void add_trace_options(CLI::App& sub, PlanCommand& command) {
  sub.add_option("--trace", command.trace_path, "the trace, as JSON (docs/planning.md)")
      ->type_name(kFileValue);
  sub.add_option("--planner", command.planner, "what merges the gradients")->check(is_planner());
  add_streams_option(sub, command.streams);
  sub.add_option("--forward", command.forward_seconds,
                 "seconds of the forward pass, instead of the trace's")
      ->check(is_not_negative());
}

void add_cost_options(CLI::App& sub, PlanCommand& command) {
  CLI::Option* startup =
      sub.add_option("--startup", command.startup_seconds,
                     "seconds that each message costs whatever its size: the papers' a")
          ->check(is_not_negative());
  CLI::Option* per_byte = sub.add_option("--per-byte", command.seconds_per_byte,
                                         "seconds that each byte costs: the papers' b")
                              ->check(is_not_negative())
                              ->needs(startup);
  startup->needs(per_byte);
  CLI::Option* cost = sub.add_option("--cost", command.cost_path,
                                     "a model made by braidctl fit --json, instead of the two")
                          ->type_name(kFileValue)
                          ->excludes(startup)
                          ->excludes(per_byte);
  add_slowdown_option(sub, command.slowdown_of_two);
  sub.get_option("--slowdown-of-two")->excludes(cost);
}

// What a plan of a trace needs.
void check_complete(const CLI::App& sub) {
  if (sub.count("--trace") == 0) throw CLI::RequiredError("--trace, or --job,");
  if (sub.count("--planner") == 0) throw CLI::RequiredError("--planner");
  if (sub.count("--startup") == 0 && sub.count("--cost") == 0)
    throw CLI::RequiredError("--startup and --per-byte, or --cost,");
}

}  // namespace

CLI::App* add_plan_command(CLI::App& app, PlanCommand& command) {
  CLI::App* sub = app.add_subcommand(
      "plan", "what a planner makes of a trace, and its step; or the plan of a job that runs here");
  sub->fallthrough();
  add_trace_options(*sub, command);
  add_cost_options(*sub, command);
  CLI::Option* job = add_live_options(*sub, command.live);
  for (const char* name : kOptionsOfTraces) job->excludes(sub->get_option(name));
  add_format_options(*sub, command.as_json);
  sub->parse_complete_callback([sub, job] {
    if (job->count() == 0) check_complete(*sub);
  });
  return sub;
}

Result<CommandOutput> run_plan(const DaemonSource& daemon, const PlanCommand& command) {
  if (!command.live.job.empty()) return run_live_plan(daemon, command.live, command.as_json);
  auto trace = load_trace(command.trace_path);
  if (!trace) return trace.status();
  name_after_file(*trace, command.trace_path);
  if (command.forward_seconds) trace->forward_seconds = *command.forward_seconds;
  const auto planner = find_planner(command.planner);
  if (!planner) return planner.status();
  const LinearCostModel linear({command.startup_seconds, command.seconds_per_byte},
                               command.slowdown_of_two);
  std::optional<FittedCost> fitted;
  if (!command.cost_path.empty()) {
    auto loaded = load_cost(command.cost_path);
    if (!loaded) return loaded.status();
    fitted = std::move(loaded).value();
  }
  const CostModel& cost = fitted ? static_cast<const CostModel&>(*fitted) : linear;
  PlannerOptions options;
  options.streams = command.streams;
  Plan plan = (*planner)->plan(workload_of(*trace), cost, options);
  RenderedPlan report = RenderedPlan::make(std::move(trace).value(), std::move(plan), cost,
                                           command.planner, command.streams);
  if (fitted) {
    const auto warning = extrapolation_warning(*fitted, report.message_bytes(), command.cost_path);
    if (warning) report.warnings.push_back(*warning);
  }
  return CommandOutput{command.as_json ? plan_json(report) : plan_table(report), report.warnings};
}

}  // namespace braid
