// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_explain.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "arguments/format_option.h"
#include "braidctl/status_view.h"
#include "client/status_client.h"
#include "planner/live_plan.h"

namespace braid {
namespace {

// The largest set's plan; nothing where the daemon knows none.
Result<std::optional<LiveSet>> ask_for_plan(const DaemonSource& daemon, const std::string& job) {
  const auto answer = daemon.plans(job, kFactsTimeoutMs);
  if (!answer) return answer.status();
  auto jobs = parse_live_plans(answer->json);
  if (!jobs) return jobs.status();
  return jobs->empty() ? std::nullopt : largest_set(std::move(jobs->front()));
}

}  // namespace

CLI::App* add_explain_command(CLI::App& app, ExplainCommand& command) {
  CLI::App* explain = app.add_subcommand("explain", "say why a job's steps take what they take");
  explain->fallthrough();
  explain
      ->add_option("--job", command.job,
                   "a job that runs on this node (default: the only one); all of its nodes are "
                   "asked")
      ->type_name(kJobValue);
  explain
      ->add_option("--seconds", command.seconds,
                   "how long to look: rates, other jobs and processors are compared over this "
                   "time; of steps the latest ones count")
      ->check(is_number(kLookSecondsMin, kLookSecondsMax))
      ->capture_default_str();
  add_format_options(*explain, command.as_json);
  return explain;
}

Result<JobFacts> ask_about(const DaemonSource& daemon, const std::string& job) {
  const auto answer = daemon.facts(job, kFactsTimeoutMs);
  if (!answer) return answer.status();
  auto jobs = parse_job_facts(answer->json);
  if (!jobs) return jobs.status();
  auto found = find_job_facts(std::move(jobs).value(), job);
  if (found || answer->jobs_hidden == 0) return found;
  return Status(found.status().code(), found.status().message() + hidden_note(answer->jobs_hidden));
}

Result<JobFacts> find_job_facts(std::vector<JobFacts> jobs, const std::string& name) {
  if (name.empty() && jobs.size() == 1) return std::move(jobs.front());
  std::vector<std::string> names;
  for (JobFacts& job : jobs) {
    if (!name.empty() && job.job == name) return std::move(job);
    names.push_back(fmt::format("'{}'", printable(job.job)));
  }
  std::sort(names.begin(), names.end());
  if (name.empty() && !names.empty()) {
    return make_status(StatusCode::InvalidArgument,
                       "{} jobs run on this node: say which one with "
                       "--job: {}",
                       names.size(), fmt::join(names, ", "));
  }
  if (name.empty()) return Status(StatusCode::NotFound, "no job runs on this node");
  return make_status(StatusCode::NotFound,
                     "no job '{}' runs on this node; braidctl status lists those that do", name);
}

Result<CommandOutput> run_explain(const DaemonSource& daemon, const ExplainCommand& command) {
  const auto before = ask_about(daemon, command.job);
  if (!before) return before.status();
  std::this_thread::sleep_for(std::chrono::duration<double>(command.seconds));
  const auto after = ask_about(daemon, before->job);
  if (!after) return after.status();
  const auto plan = ask_for_plan(daemon, before->job);
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
