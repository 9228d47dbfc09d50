// SPDX-License-Identifier: Apache-2.0
#include "timeline/timeline_source.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace braid {
namespace {

// Places in a list of names, in the order in which they are asked for.
class NamePlaces {
 public:
  NamePlaces(std::vector<std::string>& names, std::function<std::string(uint64_t)> name_of)
      : names_(names), name_of_(std::move(name_of)) {}

  uint32_t of(uint64_t id) {
    const auto [place, is_new] = places_.try_emplace(id, static_cast<uint32_t>(names_.size()));
    if (is_new) names_.push_back(name_of_(id));
    return place->second;
  }

 private:
  std::vector<std::string>& names_;
  const std::function<std::string(uint64_t)> name_of_;
  std::unordered_map<uint64_t, uint32_t> places_;
};

class TimelineMaker {
 public:
  explicit TimelineMaker(TimelineSource source)
      : source_(std::move(source)),
        timeline_(std::move(source_.head)),
        tensors_(timeline_.tensors, [this](uint64_t hash) { return tensor_name(hash); }),
        peers_(timeline_.peers, [this](uint64_t id) { return peer_name(id); }) {}

  NodeTimeline make() {
    if (timeline_.rails.empty()) timeline_.rails.emplace_back("?");
    timeline_.origin_ns = source_.told_ns;
    for (const auto& piece : source_.pieces) {
      for (const TimelineEvent& event : piece.events)
        timeline_.origin_ns = std::min(timeline_.origin_ns, event.begin_ns);
    }
    for (const TimelineEvent& event : source_.unfinished)
      timeline_.origin_ns = std::min(timeline_.origin_ns, event.begin_ns);
    for (const auto& told : source_.work) {
      for (const WorkSpans::Span& span : told->spans) {
        if (is_wanted(span)) timeline_.origin_ns = std::min(timeline_.origin_ns, span.begin_ns);
      }
    }
    timeline_.told = after(source_.told_ns);
    for (const auto& piece : source_.pieces) {
      for (const TimelineEvent& event : piece.events) add(event, piece.io_loop);
    }
    for (const TimelineEvent& event : source_.unfinished) add_unfinished(event);
    for (const auto& told : source_.work) add_work(*told);
    sort(timeline_.work);
    sort(timeline_.operations);
    sort(timeline_.units);
    sort(timeline_.reduces);
    sort(timeline_.chunks);
    std::ranges::stable_sort(timeline_.submits, {}, &NodeTimeline::Submit::at);
    return std::move(timeline_);
  }

 private:
  std::string tensor_name(uint64_t hash) const {
    const auto known = source_.name_of_tensor ? source_.name_of_tensor(hash) : nullptr;
    return known == nullptr ? fmt::format("tensor {:016x}", hash) : *known;
  }
  std::string peer_name(uint64_t id) const {
    const auto known = source_.peers.find(id);
    return known == source_.peers.end() ? fmt::format("node {:016x}", id) : known->second;
  }

  uint64_t after(uint64_t at_ns) const { return at_ns - std::min(at_ns, timeline_.origin_ns); }

  template <typename Span>
  static void sort(std::vector<Span>& spans) {
    std::ranges::stable_sort(spans, {}, &Span::end);
  }

  void add(const TimelineEvent& event, uint32_t io_loop) {
    const uint32_t tensor = tensors_.of(event.tensor);
    const uint64_t begin = after(event.begin_ns);
    const uint64_t end = std::max(begin, after(event.end_ns));
    switch (event.kind) {
      case SpanKind::Submit:
        timeline_.submits.push_back({event.number, tensor, event.step, begin, event.is_planned});
        return;
      case SpanKind::Operation:
        timeline_.operations.push_back(
            {tensor, event.step, begin, std::clamp(after(event.go_or_peer), begin, end), end,
             event.bytes, event.number,
             event.slot == TimelineEvent::kNoSlot ? NodeTimeline::kNoPlan : event.slot});
        return;
      case SpanKind::Unit:
        timeline_.units.push_back(
            {io_loop, event.slot == TimelineEvent::kNoSlot ? NodeTimeline::kNoStream : event.slot,
             tensor, event.step, event.number, begin, end, event.bytes});
        return;
      case SpanKind::Reduce:
        timeline_.reduces.push_back(
            {io_loop, tensor, event.step, event.number, begin, end, event.bytes});
        return;
      case SpanKind::Chunk:
        timeline_.chunks.push_back({io_loop, event.slot, peers_.of(event.go_or_peer),
                                    static_cast<uint32_t>(event.slot % timeline_.rails.size()),
                                    tensor, event.step, event.number, begin, end, event.bytes,
                                    event.is_sum, event.is_resent});
        return;
    }
  }

  void add_unfinished(const TimelineEvent& event) {
    const auto go = static_cast<int64_t>(after(event.go_or_peer));
    timeline_.unfinished.push_back(
        {tensors_.of(event.tensor), event.step, after(event.begin_ns),
         event.go_or_peer == 0 ? NodeTimeline::Unfinished::kNotGone : go, event.bytes, event.number,
         event.slot == TimelineEvent::kNoSlot ? NodeTimeline::kNoPlan : event.slot});
  }

  bool is_wanted(const WorkSpans::Span& span) const {
    return span.end_ns >= source_.wanted.begin_ns && span.begin_ns <= source_.wanted.end_ns;
  }

  uint32_t place_of(const std::string& name) {
    const auto [place, is_new] =
        names_.try_emplace(name, static_cast<uint32_t>(timeline_.names.size()));
    if (is_new) timeline_.names.push_back(name);
    return place->second;
  }

  void add_work(const WorkSpans& told) {
    for (const WorkSpans::Span& span : told.spans) {
      if (!is_wanted(span)) continue;
      const WorkSpans::Item& item = told.items[span.item];
      const int64_t owner =
          item.owner == WorkSpans::kEverybody ? NodeTimeline::kEverybody : int64_t{item.owner};
      const uint64_t begin = after(span.begin_ns);
      timeline_.work.push_back({told.rank, place_of(told.work), place_of(item.name), owner, begin,
                                std::max(begin, after(span.end_ns)), span.is_wait});
    }
  }

  TimelineSource source_;
  NodeTimeline timeline_;
  std::unordered_map<std::string, uint32_t> names_;  // places in the timeline's
  NamePlaces tensors_;
  NamePlaces peers_;
};

}  // namespace

NodeTimeline make_node_timeline(TimelineSource source) {
  return TimelineMaker(std::move(source)).make();
}

}  // namespace braid
