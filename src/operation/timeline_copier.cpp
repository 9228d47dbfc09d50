// SPDX-License-Identifier: Apache-2.0
#include "operation/timeline_copier.h"

#include <utility>

namespace braid {
namespace {

constexpr size_t kTimelineDoorCapacity = 64;  // not kept to: a message of each loop for each copy

}  // namespace

TimelineCopier::TimelineCopier(Loop& control_loop, const std::vector<Source>& sources)
    : told_(control_loop, kTimelineDoorCapacity, [this](Told& told) { on_told(told); }) {
  for (size_t i = 0; i < sources.size(); ++i) {
    asks_.push_back(std::make_unique<Door<Ask>>(
        *sources[i].loop, kTimelineDoorCapacity,
        [this, i, timeline = sources[i].timeline](Ask& ask) { on_asked(i, *timeline, ask); }));
  }
}

void TimelineCopier::copy(const TimelineFilter& wanted, Copied copied) {
  const uint64_t number = ++last_copy_;
  copies_[number] = {wanted, {}, 0, asks_.size(), std::move(copied)};
  for (auto& ask : asks_) ask->send_unbounded({number, wanted, std::nullopt});
}

// On the source's loop.
void TimelineCopier::on_asked(size_t source, const LoopTimeline& timeline, const Ask& ask) {
  Told told;
  told.copy = ask.copy;
  told.source = source;
  told.cursor = ask.cursor ? *ask.cursor : timeline.begin();
  timeline.copy(ask.wanted, told.cursor, told.events);
  told.overwritten = timeline.overwritten();
  told_.send_unbounded(std::move(told));
}

void TimelineCopier::on_told(Told& told) {
  const auto found = copies_.find(told.copy);
  Copy& copy = found->second;
  if (!told.events.empty())
    copy.pieces.push_back({static_cast<uint32_t>(told.source), std::move(told.events)});
  if (!told.cursor.is_at_end())
    return asks_[told.source]->send_unbounded({told.copy, copy.wanted, told.cursor});
  copy.overwritten += told.overwritten;
  if (--copy.sources_left != 0) return;
  const Copy done = std::move(copy);
  copies_.erase(found);
  done.copied(done.pieces, done.overwritten);
}

}  // namespace braid
