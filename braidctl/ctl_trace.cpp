// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_trace.h"

#include <CLI/CLI.hpp>

#include "arguments/complete_words.h"
#include "base/write_file.h"

namespace braid {
CLI::App* add_trace_command(CLI::App& app, TraceCommand& command) {
  CLI::App* trace = app.add_subcommand(
      "trace", "when a job's nodes did what, as JSON for Perfetto; or record a trace for planning");
  trace->require_subcommand(0, 1);
  trace->fallthrough();
  add_timeline_options(*trace, command.timeline);
  CLI::App* record = trace->add_subcommand(
      "record", "what a job measured of its backward pass, for plan and simulate");
  record->fallthrough();
  add_live_options(*record, command.live)->required();
  record->add_option("-o,--output", command.output_path, "a file instead of standard output")
      ->type_name(kFileValue);
  record->final_callback([&command] { command.is_recorded = true; });
  return trace;
}

Result<CommandOutput> run_trace(const DaemonSource& daemon, const TraceCommand& command) {
  if (!command.is_recorded) return run_timeline(daemon, command.timeline);
  const auto set = ask_for_set(daemon, command.live);
  if (!set) return set.status();
  BRAID_RETURN_IF_ERROR(check_measured(*set, command.live.job));
  const std::string text = to_json(set->trace) + '\n';
  if (command.output_path.empty()) return CommandOutput{text, {}};
  BRAID_RETURN_IF_ERROR(write_file(command.output_path, text));
  return CommandOutput{
      fmt::format("{}: {} tensors, as the last of {} steps were\n", command.output_path,
                  set->trace.tensors.size(), set->steps_measured),
      {}};
}

}  // namespace braid
