// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_explain.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "braidctl/find_job.h"
#include "braidctl/status_view.h"
#include "client/status_client.h"
#include "planner/live_plan.h"

namespace braid {
namespace {

// The largest set's plan; nothing where the daemon knows none.
Result<std::optional<LiveSet>> ask_for_plan(const std::string& path, const std::string& job) {
  const auto answer = query_plans(path, job, kFactsTimeoutMs);
  if (!answer) return answer.status();
  auto jobs = parse_live_plans(answer->json);
  if (!jobs) return jobs.status();
  return jobs->empty() ? std::nullopt : largest_set(std::move(jobs->front()));
}

}  // namespace

CLI::App* add_explain_command(CLI::App& app, ExplainCommand& command) {
  CLI::App* explain = app.add_subcommand("explain", "say why a job's steps take what they take");
  explain->fallthrough();
  explain->add_option("--job", command.job, std::string(kJobHelp) + "; all of its nodes are asked");
  explain
      ->add_option("--seconds", command.seconds,
                   "how long to look: rates, other jobs and processors are compared over this "
                   "time; of steps the latest ones count")
      ->check(is_number(kLookSecondsMin, kLookSecondsMax))
      ->capture_default_str();
  explain->add_flag("--json", command.as_json, "print it as JSON");
  return explain;
}

Result<JobFacts> ask_about(const std::string& path, const std::string& job) {
  const auto name = find_job(path, job);
  if (!name) return name.status();
  const auto answer = query_facts(path, *name, kFactsTimeoutMs);
  if (!answer) return answer.status();
  auto jobs = parse_job_facts(answer->json);
  if (!jobs) return jobs.status();
  if (jobs->empty()) return job_has_ended(*name);
  return std::move(jobs->front());
}

Result<CommandOutput> run_explain(const std::string& socket, const ExplainCommand& command) {
  const std::string path = daemon_socket_path(socket);
  const auto before = ask_about(path, command.job);
  if (!before) return before.status();
  std::this_thread::sleep_for(std::chrono::duration<double>(command.seconds));
  const auto after = ask_about(path, before->job);
  if (!after) return after.status();
  const auto plan = ask_for_plan(path, before->job);
  if (!plan) return plan.status();
  const auto explanation = explain(*before, *after, *plan);
  if (!explanation) return explanation.status();
  CommandOutput output{
      command.as_json ? to_json(*explanation) + '\n' : explanation_text(*explanation), {}};
  if (!explanation->missing.empty()) {
    output.warnings.push_back(
        fmt::format("no answer from {}: what follows is about the other nodes",
                    printable(fmt::format("{}", fmt::join(explanation->missing, ", ")))));
  }
  return output;
}

}  // namespace braid
