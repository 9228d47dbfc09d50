// SPDX-License-Identifier: Apache-2.0
// braidctl: asks the daemon of this node, and plans without one.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "arguments/complete_words.h"
#include "arguments/format_option.h"
#include "arguments/parse_arguments.h"
#include "base/printable.h"
#include "base/version.h"
#include "braidctl/ctl_advise.h"
#include "braidctl/ctl_check.h"
#include "braidctl/ctl_completion.h"
#include "braidctl/ctl_explain.h"
#include "braidctl/ctl_fit.h"
#include "braidctl/ctl_flows.h"
#include "braidctl/ctl_jobs.h"
#include "braidctl/ctl_kfac.h"
#include "braidctl/ctl_pending.h"
#include "braidctl/ctl_place.h"
#include "braidctl/ctl_plan.h"
#include "braidctl/ctl_ras.h"
#include "braidctl/ctl_report.h"
#include "braidctl/ctl_simulate.h"
#include "braidctl/ctl_top.h"
#include "braidctl/ctl_trace.h"
#include "braidctl/ctl_tune.h"
#include "braidctl/daemon_source.h"
#include "braidctl/personal_sockets.h"
#include "braidctl/source_options.h"
#include "braidctl/status_view.h"
#include "client/status_client.h"

namespace {

constexpr uint32_t kTimeoutMs = 5000;
constexpr int kExitFailed = 1;

struct StatusCommand {
  bool as_json = false;
  bool as_ras = false;
};

struct Subcommand {
  const CLI::App* app;
  std::function<braid::Result<braid::CommandOutput>()> run;
};

CLI::App* add_status_command(CLI::App& app, StatusCommand& command) {
  CLI::App* status = app.add_subcommand("status", "print version, rails, links and jobs");
  status->fallthrough();
  const braid::FormatOptions formats = braid::add_format_options(*status, command.as_json);
  status
      ->add_flag("--ras", command.as_ras,
                 "print what all nodes tell of the jobs here as JSON, for tools that read the "
                 "status of NCCL's RAS")
      ->excludes(formats.json)
      ->excludes(formats.format);
  return status;
}

braid::Result<braid::CommandOutput> run_status(const braid::DaemonSource& daemon,
                                               const StatusCommand& command) {
  if (command.as_ras) return braid::run_ras_status(daemon);
  const auto json = daemon.status(kTimeoutMs);
  if (!json) return json.status();
  if (command.as_json) return braid::CommandOutput{*json + '\n', {}};
  const auto status = braid::parse_status(*json);
  if (!status) return status.status();
  return braid::CommandOutput{braid::render_status(*status), {}};
}

int print(const braid::Result<braid::CommandOutput>& output) {
  if (!output) {
    std::fprintf(stderr, "braidctl: %s\n",
                 braid::printable_lines(output.status().message()).c_str());
    return kExitFailed;
  }
  for (const std::string& warning : output->warnings) {
    std::fprintf(stderr, "braidctl: warning: %s\n", braid::printable_lines(warning).c_str());
  }
  // A full disk or a closed pipe must not look like success.
  if (std::fputs(braid::printable_lines(output->text).c_str(), stdout) < 0 ||
      std::fflush(stdout) != 0) {
    std::perror("braidctl: standard output");
    return kExitFailed;
  }
  return output->exit_code;
}

// The command that was given, with the daemon that the options mean, which it then finds there.
int run_chosen(const std::vector<Subcommand>& subcommands, braid::SourceOptions options,
               std::optional<braid::DaemonSource>& daemon) {
  std::vector<std::string> personal;
  if (options.host.empty()) personal = braid::personal_sockets(options.socket);
  if (personal.size() == 1) options.socket = personal.front();
  auto source = braid::make_source(options);
  if (!source) return print(source.status());
  daemon = std::move(*source);
  for (const Subcommand& subcommand : subcommands) {
    if (!subcommand.app->parsed()) continue;
    const auto output = subcommand.run();
    if (!output && personal.size() > 1) {
      std::fprintf(stderr, "braidctl: you have %zu personal daemons; --socket says which: %s\n",
                   personal.size(), fmt::format("{}", fmt::join(personal, ", ")).c_str());
    }
    return print(output);
  }
  return braid::kExitUsage;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("braidctl: asks the braidd of this node, and plans what to merge without one");
  app.set_version_flag("--version", std::string("braidctl ") + braid::kBraidVersion);
  app.require_subcommand(1);
  braid::SourceOptions options;
  add_source_options(app, options);
  std::optional<braid::DaemonSource> daemon;  // once the options are known
  StatusCommand status;
  braid::AdviseCommand advise;
  braid::CheckCommand check;
  braid::CompletionCommand completion;
  braid::ExplainCommand explain;
  braid::FitCommand fit;
  braid::FlowsCommand flows;
  braid::JobsCommand jobs;
  braid::KfacCommand kfac;
  braid::PendingCommand pending;
  braid::PlaceCommand place;
  braid::PlanCommand plan;
  braid::ReportCommand report;
  braid::SimulateCommand simulate;
  braid::TopCommand top;
  braid::TraceCommand trace;
  braid::TuneCommand tune;
  const std::vector<Subcommand> subcommands = {
      {add_status_command(app, status), [&] { return run_status(*daemon, status); }},
      {braid::add_advise_command(app, advise), [&] { return braid::run_advise(*daemon, advise); }},
      {braid::add_check_command(app, check), [&] { return braid::run_check(*daemon, check); }},
      {braid::add_explain_command(app, explain),
       [&] { return braid::run_explain(*daemon, explain); }},
      {braid::add_fit_command(app, fit), [&] { return braid::run_fit(*daemon, fit); }},
      {braid::add_flows_command(app, flows), [&] { return braid::run_flows(*daemon, flows); }},
      {braid::add_jobs_command(app, jobs), [&] { return braid::run_jobs(*daemon, jobs); }},
      {braid::add_kfac_command(app, kfac), [&] { return braid::run_kfac(kfac); }},
      {braid::add_pending_command(app, pending),
       [&] { return braid::run_pending(*daemon, pending); }},
      {braid::add_place_command(app, place), [&] { return braid::run_place(place); }},
      {braid::add_plan_command(app, plan), [&] { return braid::run_plan(*daemon, plan); }},
      {braid::add_report_command(app, report), [&] { return braid::run_report(*daemon, report); }},
      {braid::add_simulate_command(app, simulate), [&] { return braid::run_simulate(simulate); }},
      {braid::add_top_command(app, top), [&] { return braid::run_top(*daemon, top); }},
      {braid::add_trace_command(app, trace), [&] { return braid::run_trace(*daemon, trace); }},
      {braid::add_tune_command(app, tune), [&] { return braid::run_tune(*daemon, tune); }},
      {braid::add_completion_command(app, completion),
       [&] { return braid::run_completion(completion); }},
  };
  if (const auto code = braid::parse_arguments(app, argc, argv, braid::braidctl_completers()))
    return *code;
  return run_chosen(subcommands, std::move(options), daemon);
}
