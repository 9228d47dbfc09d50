// SPDX-License-Identifier: Apache-2.0
#include "daemon/ctl_trace.h"

#include <cerrno>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>

#include "daemon/status_view.h"

namespace braid {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { (void)std::fclose(file); }
};

Status write_file(const std::string& path, const std::string& text) {
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "we"));
  if (file == nullptr) return Status::from_errno(errno, path);
  if (std::fputs(text.c_str(), file.get()) < 0) return Status::from_errno(errno, path);
  // What a full disk does not take shows here.
  if (std::fclose(file.release()) != 0) return Status::from_errno(errno, path);
  return Status::ok();
}

}  // namespace

CLI::App* add_trace_command(CLI::App& app, TraceCommand& command) {
  CLI::App* trace = app.add_subcommand("trace", "traces of jobs that run here");
  trace->require_subcommand(1);
  trace->fallthrough();
  CLI::App* record = trace->add_subcommand(
      "record", "what a job measured of its backward pass, for plan and simulate");
  record->fallthrough();
  add_live_options(*record, command.live)->required();
  record->add_option("-o,--output", command.output_path, "a file instead of standard output");
  return trace;
}

Result<CommandOutput> run_trace(const std::string& socket, const TraceCommand& command) {
  const auto set = ask_for_set(socket, command.live);
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
