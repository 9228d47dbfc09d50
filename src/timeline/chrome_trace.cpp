// SPDX-License-Identifier: Apache-2.0
#include "timeline/chrome_trace.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <vector>

#include "timeline/trace_writer.h"
#include "timeline/training_steps.h"

namespace braid {
namespace {

// Tracks that stand together: a span goes to the first on which nothing else lies.
class Lanes {
 public:
  // `next_track`: of the process; grows with each lane.
  Lanes(TraceWriter& writer, uint32_t process, uint32_t& next_track, std::string name)
      : writer_(writer), process_(process), next_track_(next_track), name_(std::move(name)) {}

  // In the order of their begins.
  uint32_t track_for(uint64_t begin, uint64_t end) {
    for (Lane& lane : lanes_) {
      if (lane.end > begin) continue;
      lane.end = end;
      return lane.track;
    }
    const uint32_t track = next_track_++;
    lanes_.push_back({track, end});
    writer_.name_track(process_, track,
                       lanes_.size() == 1 ? name_ : fmt::format("{} ({})", name_, lanes_.size()));
    return track;
  }

 private:
  struct Lane {
    uint32_t track = 0;
    uint64_t end = 0;
  };
  TraceWriter& writer_;
  const uint32_t process_;
  uint32_t& next_track_;
  const std::string name_;
  std::vector<Lane> lanes_;
};

template <typename Span>
std::vector<const Span*> by_begin(const std::vector<Span>& spans) {
  std::vector<const Span*> sorted;
  sorted.reserve(spans.size());
  for (const Span& span : spans) sorted.push_back(&span);
  std::ranges::stable_sort(sorted, {}, [](const Span* span) { return span->begin; });
  return sorted;
}

// One node's process.
class NodeTrace {
 public:
  // `first_ns`: the time of the trace's begin by this node's clock.
  NodeTrace(TraceWriter& writer, const NodeTimeline& node, uint32_t process, uint64_t first_step,
            uint64_t first_ns)
      : writer_(writer),
        node_(node),
        process_(process),
        first_step_(first_step),
        shift_(node.origin_ns - first_ns) {
    for (const std::string& tensor : node.tensors) tensors_.push_back(to_json_text(tensor));
    for (const std::string& name : node.names) names_.push_back(to_json_text(name));
  }

  void write() {
    writer_.name_process(process_, fmt::format("node {}", node_.node), process_);
    for (const uint32_t rank : node_.ranks) {
      write_rank(rank);
      write_work(rank);
    }
    write_operations();
    write_reduces();
    write_units();
    write_chunks();
  }

 private:
  uint64_t at(uint64_t time) const { return shift_ + time; }

  void write_span(uint32_t track, std::string_view name, uint64_t begin, uint64_t end,
                  std::string_view args) {
    writer_.add_span(process_, track, name, at(begin), at(end), args);
  }

  void write_rank(uint32_t rank) {
    const uint32_t track = next_track_++;
    writer_.name_track(process_, track, fmt::format("rank {}: trainer", rank));
    const auto steps = training_steps(node_, rank, first_step_);
    for (auto step = steps.begin(); step != steps.end(); ++step) {
      const RankStep& times = step->second;
      const std::string args = fmt::format(R"("step":{})", step->first);
      write_span(track, fmt::format(R"("step {}: backward")", step->first), times.first_submit,
                 times.last_submit, args);
      if (!times.last_result) continue;
      // Steps may overlap: then the trainer does not wait for the whole step.
      const auto next = std::next(step);
      const uint64_t result = std::max(*times.last_result, times.last_submit);
      const uint64_t next_begin = next == steps.end() ? result : next->second.first_submit;
      const uint64_t waited =
          next == steps.end() ? result : std::min(result, std::max(next_begin, times.last_submit));
      write_span(track, fmt::format(R"("step {}: waits for the network")", step->first),
                 times.last_submit, waited, args);
      if (next_begin > result)
        write_span(track, R"("optimizer, input, forward")", result, next_begin, args);
    }
    for (const NodeTimeline::Submit& submit : node_.submits) {
      if (submit.rank != rank) continue;
      writer_.add_instant(process_, track, tensors_[submit.tensor], at(submit.at),
                          fmt::format(R"("step":{})", submit.step));
    }
  }

  void write_work(uint32_t rank) {
    std::map<uint32_t, Lanes> lanes;
    for (const auto* span : by_begin(node_.work)) {
      if (span->rank != rank) continue;
      auto& own =
          lanes_of(lanes, span->work, fmt::format("rank {}: {}", rank, node_.names[span->work]));
      const std::string owner = span->owner == NodeTimeline::kEverybody
                                    ? R"("everybody")"
                                    : fmt::format("{}", span->owner);
      const std::string& item = names_[span->item];
      // Inside the quotes.
      const std::string name = span->is_wait ? R"("waits for )" + item.substr(1) : item;
      write_span(own.track_for(span->begin, span->end), name, span->begin, span->end,
                 fmt::format(R"("owner":{},"waits":{})", owner, span->is_wait));
    }
  }

  void write_operations() {
    Lanes lanes(writer_, process_, next_track_, "operations");
    for (const auto* operation : by_begin(node_.operations)) {
      const uint32_t track = lanes.track_for(operation->begin, operation->end);
      std::string args = fmt::format(R"("step":{},"bytes":{},"tensors":{})", operation->step,
                                     operation->bytes, operation->tensors);
      if (operation->plan != NodeTimeline::kNoPlan)
        args += fmt::format(R"(,"plan":{})", operation->plan);
      write_span(track, operation_name(*operation), operation->begin, operation->end, args);
      if (operation->go > operation->begin)
        write_span(track, R"("waits for other nodes")", operation->begin, operation->go, {});
    }
    Lanes unfinished(writer_, process_, next_track_, "unfinished operations");
    for (const auto* operation : by_begin(node_.unfinished)) {
      const uint64_t end = std::max(operation->begin, node_.told);
      const bool has_gone = operation->go != NodeTimeline::Unfinished::kNotGone;
      const char* state = has_gone                  ? "travels"
                          : operation->missing == 0 ? "waits for other nodes, or memory"
                                                    : "waits for local ranks";
      write_span(unfinished.track_for(operation->begin, end), operation_name(*operation),
                 operation->begin, end,
                 fmt::format(R"("step":{},"tensors":{},"state":"{}","submissions missing":{})",
                             operation->step, operation->tensors, state, operation->missing));
    }
  }

  template <typename Operation>
  std::string operation_name(const Operation& operation) const {
    const std::string& first = tensors_[operation.tensor];
    if (operation.tensors <= 1) return first;
    // Inside the quotes.
    return fmt::format(R"({} and {} more")", first.substr(0, first.size() - 1),
                       operation.tensors - 1);
  }

  void write_reduces() {
    std::map<uint32_t, Lanes> lanes;
    for (const auto* reduce : by_begin(node_.reduces)) {
      auto& own = lanes_of(lanes, reduce->io_loop,
                           fmt::format("local reduce, I/O loop {}", reduce->io_loop));
      write_span(own.track_for(reduce->begin, reduce->end), tensors_[reduce->tensor], reduce->begin,
                 reduce->end, unit_args(*reduce));
    }
  }

  void write_units() {
    std::map<std::tuple<uint32_t, int32_t>, Lanes> lanes;
    for (const auto* unit : by_begin(node_.units)) {
      const bool has_stream = unit->stream != NodeTimeline::kNoStream;
      auto& own =
          lanes_of(lanes, {unit->io_loop, unit->stream},
                   has_stream ? fmt::format("stream {}, I/O loop {}", unit->stream, unit->io_loop)
                              : fmt::format("units without a stream, I/O loop {}", unit->io_loop));
      write_span(own.track_for(unit->begin, unit->end), tensors_[unit->tensor], unit->begin,
                 unit->end, unit_args(*unit));
    }
  }

  void write_chunks() {
    std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Lanes> lanes;
    for (const auto* chunk : by_begin(node_.chunks)) {
      auto& own =
          lanes_of(lanes, {chunk->peer, chunk->io_loop, chunk->flow},
                   fmt::format("flow {} to {} on {}, I/O loop {}", chunk->flow,
                               node_.peers[chunk->peer], node_.rails[chunk->rail], chunk->io_loop));
      write_span(
          own.track_for(chunk->begin, chunk->end), tensors_[chunk->tensor], chunk->begin,
          chunk->end,
          fmt::format(R"({},"carries":"{}"{})", unit_args(*chunk), chunk->is_sum ? "sum" : "part",
                      chunk->is_resent ? R"(,"resent":true)" : ""));
    }
  }

  template <typename Span>
  static std::string unit_args(const Span& span) {
    return fmt::format(R"("step":{},"unit":{},"bytes":{})", span.step, span.unit, span.bytes);
  }

  template <typename Key>
  Lanes& lanes_of(std::map<Key, Lanes>& lanes, const Key& key, std::string name) {
    return lanes.try_emplace(key, writer_, process_, next_track_, std::move(name)).first->second;
  }

  TraceWriter& writer_;
  const NodeTimeline& node_;
  const uint32_t process_;
  const uint64_t first_step_;
  const uint64_t shift_;
  std::vector<std::string> tensors_;  // as JSON, as the next one
  std::vector<std::string> names_;
  uint32_t next_track_ = 1;
};

// The time of the node's first span, by the clock of the node that asked.
uint64_t corrected_origin(const JobTimeline::Node& node) {
  return node.timeline.origin_ns - static_cast<uint64_t>(node.offset_ns);
}

std::string metadata_of(const JobTimeline& job, uint64_t first_ns) {
  std::string nodes, missing;
  for (const JobTimeline::Node& node : job.nodes) {
    const NodeTimeline& told = node.timeline;
    nodes += fmt::format(
        R"({}{{"node":{},"braid":{},"epoch":{},"clock_offset_ns":{},"clock_error_ns":{},)"
        R"("spans_overwritten":{},"spans_dropped":{}}})",
        nodes.empty() ? "" : ",", to_json_text(told.node), to_json_text(told.version), told.epoch,
        node.offset_ns, node.error_ns, told.overwritten, told.dropped);
  }
  for (const std::string& node : job.missing)
    missing += (missing.empty() ? "" : ",") + to_json_text(node);
  const std::string failure =
      job.failure.empty() ? "" : fmt::format(R"("failure":{},)", to_json_text(job.failure));
  return fmt::format(R"("job":{},{}"first_step":{},"begin_ns":{},"nodes":[{}],"missing":[{}])",
                     to_json_text(job.job), failure, job.first_step, first_ns, nodes, missing);
}

}  // namespace

std::string to_chrome_trace(const JobTimeline& job) {
  TraceWriter writer;
  uint64_t first_ns = 0;
  if (!job.nodes.empty()) {
    // Signed: clocks may begin anywhere.
    first_ns = corrected_origin(job.nodes.front());
    for (const JobTimeline::Node& node : job.nodes) {
      if (static_cast<int64_t>(corrected_origin(node) - first_ns) < 0)
        first_ns = corrected_origin(node);
    }
    for (uint32_t i = 0; i < job.nodes.size(); ++i) {
      const JobTimeline::Node& node = job.nodes[i];
      NodeTrace(writer, node.timeline, i + 1, job.first_step,
                first_ns + static_cast<uint64_t>(node.offset_ns))
          .write();
    }
  }
  return writer.finish(metadata_of(job, first_ns));
}

}  // namespace braid
