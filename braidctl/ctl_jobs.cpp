// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_jobs.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "arguments/format_option.h"
#include "braidctl/ctl_explain.h"
#include "braidctl/status_view.h"
#include "braidctl/text_table.h"
#include "client/status_client.h"
#include "explain/job_view.h"

namespace braid {
namespace {

constexpr uint32_t kTablesMax = 1'000'000;

Result<std::vector<LiveJob>> ask_for_plans(const DaemonSource& daemon) {
  const auto answer = daemon.plans("", kFactsTimeoutMs);
  if (!answer) return answer.status();
  return parse_live_plans(answer->json);
}

void pause_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// What comes first, and whom it is about.
std::string bound_by(const Finding& finding) {
  std::string text(to_string(finding.cause));
  std::ranges::replace(text, '_', ' ');
  if (finding.rank) text += fmt::format(": rank {}", *finding.rank);
  if (!finding.node.empty()) text += (finding.rank ? " on " : ": ") + printable(finding.node);
  return text;
}

CLI::Option* add_seconds_option(CLI::App& command, double& seconds) {
  return command
      .add_option("--seconds", seconds, "the time between two looks at the daemons' numbers")
      ->check(is_number(kLookSecondsMin, kLookSecondsMax))
      ->capture_default_str();
}

std::string lines_json(const std::vector<JobLine>& lines) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const JobLine& line : lines) {
    list.push_back(line.explanation
                       ? nlohmann::ordered_json::parse(to_json(*line.explanation))
                       : nlohmann::ordered_json{{"job", printable(line.job)},
                                                {"error", line.explanation.status().message()}});
  }
  return list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace

CLI::App* add_jobs_command(CLI::App& app, JobsCommand& command) {
  CLI::App* jobs = app.add_subcommand("jobs", "list the jobs on this node, and what bounds each");
  jobs->fallthrough();
  add_seconds_option(*jobs, command.seconds);
  add_format_options(*jobs, command.as_json, "print what explain says of each, as JSON");
  return jobs;
}

CLI::App* add_top_command(CLI::App& app, TopCommand& command) {
  CLI::App* top = app.add_subcommand("top", "show the jobs on this node again and again");
  top->fallthrough();
  add_seconds_option(*top, command.seconds);
  top->add_option("--count", command.count, "end after so many tables (default: never)")
      ->check(is_integer(1, kTablesMax));
  return top;
}

std::vector<JobLine> job_lines(const std::vector<JobFacts>& before,
                               const std::vector<JobFacts>& after, std::vector<LiveJob> plans) {
  std::vector<JobLine> lines;
  for (const JobFacts& job : after) {
    JobLine line;
    line.job = job.job;
    line.nodes = job.nodes.size() + job.missing.size();
    for (const NodeFacts& node : job.nodes) {
      line.ranks = node.world_size;
      for (const NodeFacts::Step& step : node.steps)
        line.latest_step = std::max(line.latest_step, step.step);
    }
    std::optional<LiveSet> plan;
    const auto planned = std::ranges::find(plans, job.job, &LiveJob::name);
    if (planned != plans.end()) plan = largest_set(std::move(*planned));
    const auto earlier = std::ranges::find(before, job.job, &JobFacts::job);
    // A job that has just begun has no earlier facts to be compared with.
    line.explanation = explain(earlier == before.end() ? job : *earlier, job, plan);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string jobs_table(const std::vector<JobLine>& lines) {
  if (lines.empty()) return "no jobs\n";
  std::vector<std::vector<std::string>> rows = {
      {"JOB", "RANKS", "NODES", "STEP", "TAKES", "NETWORK", "BOUND BY"}};
  for (const JobLine& line : lines) {
    std::vector<std::string> row = {printable(line.job), std::to_string(line.ranks),
                                    std::to_string(line.nodes)};
    if (line.explanation) {
      const Explanation& what = *line.explanation;
      const bool has_steps = what.operations == 0;
      row.push_back(has_steps ? std::to_string(line.latest_step) : "-");
      row.push_back(has_steps ? format_time(what.step_seconds) : "-");
      row.push_back(fmt::format("{} ({:.0f} %)", format_time(what.exposed_seconds),
                                what.exposed_seconds / what.step_seconds * 100));
      row.push_back(bound_by(what.findings.front()));
    } else {
      row.insert(row.end(), {"-", "-", "-", "not known yet: braidctl explain says why"});
    }
    rows.push_back(std::move(row));
  }
  return render_table(rows);
}

Result<JobsLook> look_at_jobs(const DaemonSource& daemon) {
  const auto answer = daemon.facts("", kFactsTimeoutMs);
  if (!answer) return answer.status();
  auto jobs = parse_job_facts(answer->json);
  if (!jobs) return jobs.status();
  std::ranges::stable_sort(*jobs, {}, &JobFacts::job);
  return JobsLook{std::move(jobs).value(), answer->jobs_hidden};
}

Result<std::vector<JobLine>> compare_looks(const DaemonSource& daemon, const JobsLook& before,
                                           const JobsLook& after) {
  auto plans = ask_for_plans(daemon);
  if (!plans) return plans.status();
  return job_lines(before.jobs, after.jobs, std::move(plans).value());
}

Result<CommandOutput> run_jobs(const DaemonSource& daemon, const JobsCommand& command) {
  const auto before = look_at_jobs(daemon);
  if (!before) return before.status();
  pause_for(command.seconds);
  const auto after = look_at_jobs(daemon);
  if (!after) return after.status();
  const auto lines = compare_looks(daemon, *before, *after);
  if (!lines) return lines.status();
  if (command.as_json) return CommandOutput{lines_json(*lines), {}};
  return CommandOutput{jobs_table(*lines) + hidden_line(after->hidden), {}};
}

}  // namespace braid
