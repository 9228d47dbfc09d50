// SPDX-License-Identifier: Apache-2.0
#include "telling/job_timelines.h"

#include <chrono>
#include <memory>
#include <utility>

#include "base/log.h"
#include "telling/job_facts.h"
#include "timeline/chrome_trace.h"
#include "timeline/timeline_source.h"

namespace braid {
namespace {

uint64_t unix_ms() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(since).count());
}

// A whole document about one node.
std::string document_of(TimelineSource source, const std::string& failure) {
  JobTimeline job;
  job.job = source.head.job;
  job.failure = failure;
  auto& node = job.nodes.emplace_back();
  node.timeline = make_node_timeline(std::move(source));
  drop_to_fit(node.timeline, JobTimelines::kFileSpanBytesMax);
  return to_chrome_trace(job);
}

}  // namespace

NodeQueries::Window JobTimelines::window(const Job& job, uint32_t steps) const {
  const uint64_t now_ns = services_.clock.now_ns();
  if (const StepTimes* times = job.plans().step_times(); times != nullptr) {
    const auto& kept = times->kept();
    if (kept.empty()) return {0, 0, now_ns};
    const StepTimes::Ended& first = kept[kept.size() - std::min<size_t>(steps, kept.size())];
    return {first.step, first.ended_ns - first.step_ns, now_ns};
  }
  const LoopTimeline* noted = services_.engines.timeline();
  if (noted == nullptr) return {0, 0, now_ns};
  return {0, noted->begin_of_operations(job.key(), steps * kOperationsPerStep), now_ns};
}

void JobTimelines::tell(const Job& job, const TimelineSpan& span, NodeQueries::Told told) {
  if (services_.engines.timeline_copier() == nullptr || tellings_ >= kTellingsMax) {
    services_.loop.defer([told = std::move(told)]() mutable { told(std::nullopt); });
    return;
  }
  ++tellings_;
  auto json = std::make_shared<std::string>();
  collect(
      job, {job.key(), span.begin_ns, span.end_ns},
      [json, bytes_max = span.bytes_max](TimelineSource source) {
        NodeTimeline timeline = make_node_timeline(std::move(source));
        drop_to_fit(timeline, bytes_max);
        *json = to_json(timeline);
      },
      [this, json, told = std::move(told)] {
        --tellings_;
        told(std::move(*json));
      });
}

void JobTimelines::write_failed(const Job& job, const Status& reason) {
  if (directory_.empty() || services_.engines.timeline_copier() == nullptr) return;
  if (!limits_.take(job.user(), job.name(), services_.clock.now_ns())) {
    BRAID_LOG_INFO(LogFields{.job = {job.name(), job.user()}},
                   "job '{}': no timeline is written: there were enough in the last minute",
                   job.name());
    return;
  }
  const std::string name = timeline_file_name(job.name(), job.membership().epoch,
                                              services_.control_plane.self().name, unix_ms());
  auto written = std::make_shared<std::optional<Result<std::string>>>();
  collect(
      job, {job.key()},
      [directory = directory_, name, failure = reason.message(), written](TimelineSource source) {
        if (source.pieces.empty()) return;  // it has never begun
        *written = TimelineFiles(directory).write(name, document_of(std::move(source), failure));
      },
      [written, label = job.label()] {
        if (!*written) return;
        const Result<std::string>& path = **written;
        if (path) {
          BRAID_LOG_INFO(LogFields{.job = label}, "job '{}': what happened before it failed: {}",
                         label.name, *path);
        } else {
          BRAID_LOG_WARN(LogFields{.job = label}, "job '{}': its timeline is lost: {}", label.name,
                         path.status().message());
        }
      });
}

void JobTimelines::collect(const Job& job, const TimelineFilter& wanted, Make make,
                           std::function<void()> done) {
  auto source =
      std::make_shared<TimelineSource>(job_timeline_source(job, services_.clock.now_ns()));
  source->wanted = wanted;
  source->head.node = services_.control_plane.self().name;
  for (const RailStatus& rail : services_.transport.rails())
    source->head.rails.push_back(rail.name);
  services_.engines.timeline_copier()->copy(
      wanted,
      lifetime_.guard([this, source, make = std::move(make), done = std::move(done)](
                          std::vector<TimelineSource::Piece> pieces, uint64_t overwritten) mutable {
        source->pieces = std::move(pieces);
        source->head.overwritten = overwritten;
        // As many as there are tellings and files: few.
        const bool is_taken =
            maker_.run([source, make = std::move(make)] { make(std::move(*source)); },
                       lifetime_.guard([done](auto&&...) { done(); }));
        if (!is_taken) done();
      }));
}

}  // namespace braid
