// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_fit.h"

#include <CLI/CLI.hpp>

#include "arguments/complete_words.h"
#include "arguments/format_option.h"
#include "base/amount.h"
#include "braidctl/status_view.h"
#include "braidctl/text_table.h"

namespace braid {
namespace {

constexpr double kStepRatio = 1.1;

}  // namespace

CLI::App* add_fit_command(CLI::App& app, FitCommand& command) {
  CLI::App* sub = app.add_subcommand(
      "fit", "a cost model from timings of all-reduces, or that of a job that runs here");
  sub->fallthrough();
  CLI::Option* logs =
      sub->add_option("logs", command.logs,
                      "files of lines \"[RANKS,]BYTES MICROSECONDS\", or of braid-bench --json")
          ->type_name(kFileValue);
  CLI::Option* from =
      sub->add_option("--from", command.bytes_from, "leave out smaller sizes; 64KiB is understood")
          ->transform(as_size());
  CLI::Option* to =
      sub->add_option("--to", command.bytes_to, "leave out larger sizes")->transform(as_size());
  CLI::Option* job =
      add_live_options(*sub, command.live)->excludes(logs)->excludes(from)->excludes(to);
  add_format_options(*sub, command.as_json, "print the model as JSON, for braidctl plan --cost");
  sub->parse_complete_callback([&command, from, logs, job] {
    if (logs->count() == 0 && job->count() == 0) throw CLI::RequiredError("logs, or --job,");
    if (command.bytes_from > command.bytes_to) {
      throw CLI::ValidationError(
          from->get_name(), fmt::format("{} is more than --to, {}; right is a range with sizes",
                                        command.bytes_from, command.bytes_to));
    }
  });
  return sub;
}

Result<CommandOutput> run_fit(const DaemonSource& daemon, const FitCommand& command) {
  if (!command.live.job.empty()) return run_live_fit(daemon, command.live, command.as_json);
  auto log = load_timing_logs(command.logs);
  if (!log) return log.status();
  const size_t all = log->measurements.size();
  std::erase_if(log->measurements, [&](const CostMeasurement& one) {
    return one.bytes < command.bytes_from || one.bytes > command.bytes_to;
  });
  if (log->measurements.empty()) {
    return make_status(StatusCode::InvalidArgument,
                       "none of {} measurements lies between --from and --to", all);
  }
  const auto cost = fit_cost(log->measurements);
  if (!cost) return cost.status();
  return CommandOutput{command.as_json ? to_json(*cost) + '\n' : fit_table(*cost, *log), {}};
}

std::vector<CostStep> find_steps(const FittedCost& cost) {
  std::vector<CostStep> steps;
  for (size_t i = 1; i < cost.bands().size(); ++i) {
    const uint64_t bytes = cost.bands()[i].bytes_min;
    const double below = cost.seconds(cost.bands()[i - 1].bytes_max);
    const double above = cost.seconds(bytes);
    if (above >= below * kStepRatio) steps.push_back({bytes, below, above});
  }
  return steps;
}

std::string fit_table(const FittedCost& cost, const TimingLog& log) {
  std::string out = fmt::format("{} measurements", log.measurements.size());
  if (log.ranks) out += fmt::format(" with {} ranks", *log.ranks);
  out += ": T(M) = a + b·M\n\n";
  std::vector<std::vector<std::string>> rows = {
      {"BAND", "FROM BYTES", "TO BYTES", "SIZES", "a (s)", "b (s/byte)", "RESIDUAL"}};
  for (const FittedCost::Band& band : cost.bands()) {
    rows.push_back({std::to_string(rows.size()), std::to_string(band.bytes_min),
                    std::to_string(band.bytes_max), std::to_string(band.sizes),
                    fmt::format("{:.3e}", band.cost.startup_seconds),
                    fmt::format("{:.3e}", band.cost.seconds_per_byte),
                    fmt::format("{:.2f} %", band.residual * 100)});
  }
  out += render_table(rows);
  for (const CostStep& step : find_steps(cost)) {
    out +=
        fmt::format("step at {} bytes ({}): from {} to {}\n", step.bytes, format_amount(step.bytes),
                    format_seconds(step.below_seconds), format_seconds(step.above_seconds));
  }
  for (const FittedCost::Slowdown& slowdown : cost.slowdowns()) {
    out += fmt::format("{} transfers at the same time: each takes {:.2f} times as long\n",
                       slowdown.transfers, slowdown.factor);
  }
  return out;
}

}  // namespace braid
