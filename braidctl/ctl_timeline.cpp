// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_timeline.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "base/write_file.h"
#include "braidctl/find_job.h"
#include "client/status_client.h"
#include "timeline/chrome_trace.h"

namespace braid {
namespace {

constexpr uint32_t kTraceStepsMax = 64;
// Nodes that do not answer take up to seven seconds.
constexpr uint32_t kTimelineTimeoutMs = 12'000;

size_t spans_of(const NodeTimeline& node) {
  return node.submits.size() + node.operations.size() + node.unfinished.size() + node.units.size() +
         node.reduces.size() + node.chunks.size() + node.work.size();
}

}  // namespace

void add_timeline_options(CLI::App& trace, TimelineCommand& command) {
  trace.add_option("--job", command.job, std::string(kJobHelp) + "; all of its nodes are asked");
  trace.add_option("--steps", command.steps, "how many of its latest steps")
      ->check(is_integer(1, kTraceStepsMax))
      ->capture_default_str();
  trace.add_option("-o,--output", command.output_path,
                   "a file instead of standard output, for ui.perfetto.dev");
}

Result<JobTimeline> only_timeline(std::vector<JobTimeline> told, const std::string& job) {
  if (told.empty()) return job_has_ended(job);
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

Result<CommandOutput> run_timeline(const std::string& socket, const TimelineCommand& command) {
  const std::string path = daemon_socket_path(socket);
  const auto job = find_job(path, command.job);
  if (!job) return job.status();
  const auto answer = query_timelines(path, *job, command.steps, kTimelineTimeoutMs);
  if (!answer) return answer.status();
  auto told = parse_job_timelines(answer->json);
  if (!told) return told.status();
  const auto timeline = only_timeline(std::move(*told), *job);
  if (!timeline) return timeline.status();
  CommandOutput output{to_chrome_trace(*timeline), timeline_warnings(*timeline)};
  if (command.output_path.empty()) return output;
  BRAID_RETURN_IF_ERROR(write_file(command.output_path, output.text));
  output.text = fmt::format("{}: {}\n", command.output_path, timeline_summary(*timeline));
  return output;
}

}  // namespace braid
