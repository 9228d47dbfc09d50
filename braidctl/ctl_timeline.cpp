// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_timeline.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "arguments/complete_words.h"
#include "base/write_file.h"
#include "braidctl/status_view.h"
#include "client/status_client.h"
#include "timeline/chrome_trace.h"

namespace braid {
namespace {

constexpr uint32_t kTraceStepsMax = 64;
constexpr uint32_t kJobsTimeoutMs = 5000;
// Nodes that do not answer take up to seven seconds.
constexpr uint32_t kTimelineTimeoutMs = 12'000;

// The name of the only job of this node that the user may see.
Result<std::string> only_job(const std::string& path) {
  const auto json = query_status(path, kJobsTimeoutMs);
  if (!json) return json.status();
  const auto status = parse_status(*json);
  if (!status) return status.status();
  std::vector<std::string> names;
  for (const DaemonStatus::Job& job : status->jobs)
    names.push_back(fmt::format("'{}'", printable(job.name)));
  if (names.size() == 1) return status->jobs.front().name;
  if (names.empty()) {
    return Status(StatusCode::NotFound,
                  "no job runs on this node" + hidden_note(status->jobs_hidden));
  }
  std::ranges::sort(names);
  return make_status(StatusCode::InvalidArgument,
                     "{} jobs run on this node: say which one with --job: {}", names.size(),
                     fmt::join(names, ", "));
}

size_t spans_of(const NodeTimeline& node) {
  return node.submits.size() + node.operations.size() + node.unfinished.size() + node.units.size() +
         node.reduces.size() + node.chunks.size() + node.work.size();
}

}  // namespace

void add_timeline_options(CLI::App& trace, TimelineCommand& command) {
  trace
      .add_option("--job", command.job,
                  "a job that runs on this node (default: the only one); all of its nodes are "
                  "asked")
      ->type_name(kJobValue);
  trace.add_option("--steps", command.steps, "how many of its latest steps")
      ->check(is_integer(1, kTraceStepsMax))
      ->capture_default_str();
  trace
      .add_option("-o,--output", command.output_path,
                  "a file instead of standard output, for ui.perfetto.dev")
      ->type_name(kFileValue);
}

Result<JobTimeline> only_timeline(std::vector<JobTimeline> told, const std::string& job) {
  if (told.empty()) {
    return make_status(StatusCode::NotFound,
                       "no job '{}' runs on this node; braidctl status lists those that do",
                       printable(job));
  }
  if (told.size() > 1) {
    return make_status(StatusCode::InvalidArgument,
                       "{} jobs named '{}' run on this node; a timeline shows only one",
                       told.size(), printable(job));
  }
  if (!told.front().nodes.empty()) return std::move(told.front());
  return make_status(StatusCode::Unavailable,
                     "no node of job '{}' has answered ({}): are other timelines being made there?",
                     printable(job),
                     printable(fmt::format("{}", fmt::join(told.front().missing, ", "))));
}

std::vector<std::string> timeline_warnings(const JobTimeline& timeline) {
  std::vector<std::string> warnings;
  if (!timeline.missing.empty()) {
    warnings.push_back(
        fmt::format("no answer from {}: the timeline is of the other nodes",
                    printable(fmt::format("{}", fmt::join(timeline.missing, ", ")))));
  }
  for (const JobTimeline::Node& node : timeline.nodes) {
    if (node.timeline.dropped == 0) continue;
    warnings.push_back(
        fmt::format("{}: {} spans had no room in its answer, chunks first: ask for fewer steps",
                    printable(node.timeline.node), node.timeline.dropped));
  }
  return warnings;
}

std::string timeline_summary(const JobTimeline& timeline) {
  size_t spans = 0;
  uint64_t error_ns = 0;
  for (const JobTimeline::Node& node : timeline.nodes) {
    spans += spans_of(node.timeline);
    error_ns = std::max(error_ns, node.error_ns);
  }
  return fmt::format("{} {}, {} spans, clocks aligned to {:.3f} ms", timeline.nodes.size(),
                     timeline.nodes.size() == 1 ? "node" : "nodes", spans,
                     static_cast<double>(error_ns) * 1e-6);
}

Result<CommandOutput> run_timeline(const DaemonSource& daemon, const TimelineCommand& command) {
  const auto path = daemon.socket("trace");
  if (!path) return path.status();
  std::string job = command.job;
  if (job.empty()) {
    auto only = only_job(*path);
    if (!only) return only.status();
    job = std::move(*only);
  }
  const auto answer = query_timelines(*path, job, command.steps, kTimelineTimeoutMs);
  if (!answer) return answer.status();
  auto told = parse_job_timelines(answer->json);
  if (!told) return told.status();
  const auto timeline = only_timeline(std::move(*told), job);
  if (!timeline) {
    return Status(timeline.status().code(),
                  timeline.status().message() + hidden_note(answer->jobs_hidden));
  }
  CommandOutput output{to_chrome_trace(*timeline), timeline_warnings(*timeline)};
  if (command.output_path.empty()) return output;
  BRAID_RETURN_IF_ERROR(write_file(command.output_path, output.text));
  output.text = fmt::format("{}: {}\n", command.output_path, timeline_summary(*timeline));
  return output;
}

}  // namespace braid
