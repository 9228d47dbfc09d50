// SPDX-License-Identifier: Apache-2.0
// braidctl: asks the daemon of this node, and plans without one.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
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
#include "braidctl/ctl_trace.h"
#include "braidctl/ctl_tune.h"
#include "braidctl/personal_sockets.h"
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

void add_socket_option(CLI::App& app, std::string& socket) {
  app.add_option("--socket", socket,
                 "the daemon's socket (default: $BRAID_SOCKET, else /run/braid/braidd.sock, else "
                 "that of your personal daemon)")
      ->type_name(braid::kFileValue);
}

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

braid::Result<braid::CommandOutput> run_status(const std::string& socket,
                                               const StatusCommand& command) {
  if (command.as_ras) return braid::run_ras_status(socket);
  const auto json = braid::query_status(braid::daemon_socket_path(socket), kTimeoutMs);
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

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("braidctl: asks the braidd of this node, and plans what to merge without one");
  app.set_version_flag("--version", std::string("braidctl ") + braid::kBraidVersion);
  app.require_subcommand(1);
  std::string socket;
  add_socket_option(app, socket);
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
      {add_status_command(app, status), [&] { return run_status(socket, status); }},
      {braid::add_advise_command(app, advise), [&] { return braid::run_advise(socket, advise); }},
      {braid::add_check_command(app, check), [&] { return braid::run_check(socket, check); }},
      {braid::add_explain_command(app, explain),
       [&] { return braid::run_explain(socket, explain); }},
      {braid::add_fit_command(app, fit), [&] { return braid::run_fit(socket, fit); }},
      {braid::add_flows_command(app, flows), [&] { return braid::run_flows(socket, flows); }},
      {braid::add_jobs_command(app, jobs), [&] { return braid::run_jobs(socket, jobs); }},
      {braid::add_kfac_command(app, kfac), [&] { return braid::run_kfac(kfac); }},
      {braid::add_pending_command(app, pending),
       [&] { return braid::run_pending(socket, pending); }},
      {braid::add_place_command(app, place), [&] { return braid::run_place(place); }},
      {braid::add_plan_command(app, plan), [&] { return braid::run_plan(socket, plan); }},
      {braid::add_report_command(app, report), [&] { return braid::run_report(socket, report); }},
      {braid::add_simulate_command(app, simulate), [&] { return braid::run_simulate(simulate); }},
      {braid::add_top_command(app, top), [&] { return braid::run_top(socket, top); }},
      {braid::add_trace_command(app, trace), [&] { return braid::run_trace(socket, trace); }},
      {braid::add_tune_command(app, tune), [&] { return braid::run_tune(socket, tune); }},
      {braid::add_completion_command(app, completion),
       [&] { return braid::run_completion(completion); }},
  };
  if (const auto code = braid::parse_arguments(app, argc, argv, braid::braidctl_completers()))
    return *code;
  const std::vector<std::string> personal = braid::personal_sockets(socket);
  if (personal.size() == 1) socket = personal.front();
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
