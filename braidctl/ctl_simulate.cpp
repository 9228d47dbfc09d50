// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_simulate.h"

#include <algorithm>
#include <limits>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "arguments/complete_words.h"
#include "arguments/format_option.h"
#include "braidctl/algorithm_options.h"

namespace braid {
namespace {

constexpr double kJitterMax = 0.999;  // no tensor takes no time at all
constexpr double kStraggleMax = 1000;

void add_cost_options(CLI::App& sub, SimulateCommand& command) {
  add_algorithm_options(sub, command.sweep.algorithm, command.sweep.link,
                        command.sweep.algorithm_options);
  CLI::Option* alpha = sub.add_option("--inside-alpha", command.inside_alpha,
                                      "hierarchical: --alpha inside racks, if it differs")
                           ->check(is_not_negative());
  CLI::Option* beta = sub.add_option("--inside-beta", command.inside_beta,
                                     "hierarchical: --beta inside racks, if it differs")
                          ->check(is_not_negative())
                          ->needs(alpha);
  alpha->needs(beta);
  add_slowdown_option(sub, command.sweep.slowdown_of_two);
}

void add_noise_options(CLI::App& sub, SimulatorOptions& simulator) {
  sub.add_option("--jitter", simulator.jitter,
                 "each tensor's backward time times a number within [1 - jitter, 1 + jitter]")
      ->capture_default_str()
      ->check(is_number(0, kJitterMax));
  sub.add_option("--straggle", simulator.straggle,
                 "each worker's backward times a number within [1, 1 + straggle]")
      ->capture_default_str()
      ->check(is_number(0, kStraggleMax));
  sub.add_option("--seed", simulator.seed, "of the two")
      ->capture_default_str()
      ->check(is_integer(0, std::numeric_limits<uint64_t>::max()));
}

void add_update_option(CLI::App& sub, std::vector<std::string>& updates) {
  sub.add_option("--update", updates,
                 "how gradients become parameters, separated by commas (default: sync, alone): " +
                     update_method_forms())
      ->allow_extra_args(false)
      ->check(CLI::Validator(
          [](const std::string& text) {
            const auto methods = parse_update_methods(text);
            return methods ? std::string() : methods.status().message();
          },
          "METHODS"));
}

// What only the options together tell.
void finish(SimulateCommand& command, bool has_inside) {
  auto workers = parse_workers(command.workers);
  if (!workers) throw CLI::ValidationError("--workers", workers.status().message());
  command.sweep.workers = std::move(workers).value();
  if (!command.updates.empty()) {
    // Together they are one list, in which each method stands once.
    auto updates = parse_update_methods(fmt::format("{}", fmt::join(command.updates, ",")));
    if (!updates) throw CLI::ValidationError("--update", updates.status().message());
    command.sweep.updates = std::move(updates).value();
  }
  if (has_inside) {
    command.sweep.algorithm_options.inside = {command.inside_alpha, command.inside_beta,
                                              command.sweep.link.reduce_seconds_per_byte};
  }
  for (const uint32_t count : command.sweep.workers) {
    const auto cost = algorithm_cost(command.sweep.algorithm, count, command.sweep.link,
                                     command.sweep.algorithm_options);
    if (!cost) throw CLI::ValidationError("--workers", cost.status().message());
  }
}

}  // namespace

CLI::App* add_simulate_command(CLI::App& app, SimulateCommand& command) {
  CLI::App* sub =
      app.add_subcommand("simulate", "planners and update methods over numbers of workers");
  sub->add_option("--trace", command.trace_path, "the trace, as JSON (docs/planning.md)")
      ->type_name(kFileValue)
      ->required();
  add_cost_options(*sub, command);
  sub->add_option("--workers", command.workers, "such as 4,8,16 or 4,8,...,2048")->required();
  sub->add_option("--planners", command.planners, "separated by commas (default: all)")
      ->delimiter(',')
      ->check(is_planner());
  add_update_option(*sub, command.updates);
  add_streams_option(*sub, command.sweep.simulator.streams);
  sub->add_option("--forward", command.forward_seconds,
                  "seconds of the forward pass, instead of the trace's")
      ->check(is_not_negative());
  add_noise_options(*sub, command.sweep.simulator);
  add_format_options(*sub, command.as_json);
  sub->parse_complete_callback([&command, inside = sub->get_option("--inside-alpha")] {
    finish(command, inside->count() > 0);
  });
  return sub;
}

Result<CommandOutput> run_simulate(const SimulateCommand& command) {
  auto trace = load_trace(command.trace_path);
  if (!trace) return trace.status();
  name_after_file(*trace, command.trace_path);
  if (command.forward_seconds) trace->forward_seconds = *command.forward_seconds;
  SweepOptions options = command.sweep;
  for (const std::string& name : command.planners) {
    const auto planner = find_planner(name);
    if (!planner) return planner.status();
    options.planners.push_back(*planner);
  }
  if (options.planners.empty()) options.planners.assign(planners().begin(), planners().end());
  if (std::ranges::count(options.updates, UpdateKind::CdSgd, &UpdateMethod::kind) > 0) {
    BRAID_RETURN_IF_ERROR(check_codecs_fit(*trace, command.trace_path));
  }
  const auto rows = run_sweep(*trace, options);
  if (!rows) return rows.status().with_context(command.trace_path);
  return CommandOutput{command.as_json ? sweep_json(*rows) : sweep_table(*trace, options, *rows),
                       {}};
}

}  // namespace braid
