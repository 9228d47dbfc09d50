// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_live.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/amount.h"
#include "braidctl/plan_report.h"
#include "braidctl/status_view.h"
#include "client/status_client.h"

namespace braid {
namespace {

constexpr uint32_t kTimeoutMs = 5000;
constexpr uint32_t kSetNumberMax = 1024;

std::string list_sets(const LiveJob& job) {
  std::string list;
  for (size_t i = 0; i < job.sets.size(); ++i) {
    const Trace& trace = job.sets[i].trace;
    uint64_t bytes = 0;
    for (const Trace::Tensor& tensor : trace.tensors) bytes += tensor.bytes();
    list += fmt::format("{}{} ({} tensors, {}, from '{}' on)", i == 0 ? "" : ", ", i + 1,
                        trace.tensors.size(), format_amount(bytes),
                        printable(trace.tensors.front().name));
  }
  return list;
}

// The step of the plan that holds, as `braidctl plan` has it of a trace; null: nothing is
// predicted.
Result<nlohmann::ordered_json> json_of_step(const LiveSet& set) {
  if (!set.is_measured() || !set.cost) return nlohmann::ordered_json(nullptr);
  auto plan = plan_of_groups(set.groups, set.trace);
  if (!plan) return plan.status();
  return json_of_plan(
      RenderedPlan::make(set.trace, std::move(plan).value(), *set.cost, set.planner, set.streams));
}

// What was parsed and found to be as it should be, of one job and the set that is meant.
Result<std::string> live_json(const std::string& answer, const LiveJob& job,
                              const LiveOptions& live) {
  nlohmann::ordered_json found;
  for (auto& one : nlohmann::ordered_json::parse(answer)) {
    if (one["job"] != live.job) continue;
    found = std::move(one);
    break;
  }
  if (live.set) found["sets"] = nlohmann::ordered_json::array({found["sets"].at(*live.set - 1)});
  for (size_t i = 0; i < job.sets.size(); ++i) {
    auto step = json_of_step(job.sets[i]);
    if (!step) return step.status();
    found["sets"].at(i)["step"] = std::move(step).value();
  }
  return found.dump() + '\n';
}

// All jobs where this one does not run.
Result<JobsReply> ask_daemon(const DaemonSource& daemon, const std::string& name) {
  auto answer = daemon.plans(name, kTimeoutMs);
  return answer && answer->json == "[]" ? daemon.plans("", kTimeoutMs) : answer;
}

Result<LiveJob> find_in(const JobsReply& answer, const std::string& name) {
  auto jobs = parse_live_plans(answer.json);
  if (!jobs) return jobs.status();
  auto job = find_live_job(std::move(jobs).value(), name);
  if (job || answer.jobs_hidden == 0) return job;
  return Status(job.status().code(), job.status().message() + hidden_note(answer.jobs_hidden));
}

}  // namespace

CLI::Option* add_live_options(CLI::App& command, LiveOptions& live) {
  CLI::Option* job =
      command.add_option("--job", live.job, "a job that runs on this node; its daemon is asked")
          ->type_name(kJobValue)
          ->check(CLI::Validator(
              [](const std::string& name) {
                return std::string(name.empty() ? "is empty; right is the name of a job" : "");
              },
              "NAME"));
  command
      .add_option("--set", live.set,
                  "which of the job's sets of planned tensors, as they are listed, from 1")
      ->check(is_integer(1, kSetNumberMax))
      ->needs(job);
  return job;
}

Result<LiveJob> find_live_job(std::vector<LiveJob> jobs, const std::string& name) {
  std::vector<std::string> names;
  for (LiveJob& job : jobs) {
    if (job.name == name) return std::move(job);
    names.push_back(fmt::format("'{}'", printable(job.name)));
  }
  std::sort(names.begin(), names.end());
  if (names.empty()) {
    return make_status(StatusCode::NotFound, "no job '{}' runs on this node, nor any other one",
                       name);
  }
  return make_status(StatusCode::NotFound, "no job '{}' runs on this node; there are {}", name,
                     fmt::join(names, ", "));
}

Result<LiveSet> find_live_set(LiveJob job, const LiveOptions& live) {
  if (job.sets.empty()) {
    return make_status(StatusCode::NotFound,
                       "job '{}' has no planned tensors; with PyTorch, DDP on a braid group has",
                       job.name);
  }
  if (!live.set && job.sets.size() > 1) {
    return make_status(StatusCode::InvalidArgument,
                       "job '{}' has {} sets of planned tensors: {}; say which one with --set",
                       job.name, job.sets.size(), list_sets(job));
  }
  const uint32_t number = live.set.value_or(1);
  if (number > job.sets.size()) {
    return make_status(StatusCode::InvalidArgument, "--set: job '{}' has no set {}; there are {}",
                       job.name, number, list_sets(job));
  }
  return std::move(job.sets[number - 1]);
}

Status check_measured(const LiveSet& set, const std::string& job) {
  if (set.is_measured()) return Status::ok();
  return make_status(StatusCode::NotFound,
                     "job '{}': nothing is measured yet: {} steps are complete, and there is "
                     "something after {}",
                     job, set.steps_measured, set.steps_ignored + 1);
}

Result<LiveSet> ask_for_set(const DaemonSource& daemon, const LiveOptions& live) {
  const auto answer = ask_daemon(daemon, live.job);
  if (!answer) return answer.status();
  auto job = find_in(*answer, live.job);
  if (!job) return job.status();
  return find_live_set(std::move(job).value(), live);
}

Result<CommandOutput> run_live_plan(const DaemonSource& daemon, const LiveOptions& live,
                                    bool as_json) {
  const auto answer = ask_daemon(daemon, live.job);
  if (!answer) return answer.status();
  auto job = find_in(*answer, live.job);
  if (!job) return job.status();
  if (live.set || job->sets.empty()) {
    auto set = find_live_set(*job, live);
    if (!set) return set.status();
    job->sets.assign(1, std::move(set).value());
  }
  if (!as_json) return CommandOutput{live_table(*job), {}};
  auto json = live_json(answer->json, *job, live);
  if (!json) return json.status();
  return CommandOutput{std::move(json).value(), {}};
}

Result<CommandOutput> run_live_fit(const DaemonSource& daemon, const LiveOptions& live,
                                   bool as_json) {
  const auto set = ask_for_set(daemon, live);
  if (!set) return set.status();
  if (!set->cost) {
    return make_status(StatusCode::NotFound,
                       "job '{}': no cost is fitted yet: {} steps are complete, and plan {} was "
                       "made without one",
                       live.job, set->steps_measured, set->plan);
  }
  return CommandOutput{as_json ? to_json(*set->cost) + '\n' : live_cost_table(*set->cost), {}};
}

}  // namespace braid
