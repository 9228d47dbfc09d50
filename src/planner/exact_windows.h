// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "planner/cost_model.h"

namespace braid {

// What is left to do once a plan's first tensors have been sent: where the next group may begin.
struct Prefix {
  uint32_t tensors = 0;    // how many have been sent
  uint32_t groups = 0;     // in how many
  uint64_t bytes = 0;      // of all of them
  double end_seconds = 0;  // when the last one was through
  uint32_t before = 0;     // the prefix that the last group was added to: its place in its list
};

// How a prefix goes on with one more group.
struct Continuation {
  uint32_t place = 0;
  double end_seconds = 0;
};

// The windows below look at a list of prefixes, each with more tensors and no earlier end than the
// one before, which become visible one after the other, and answer: which one is best continued
// with a group that is ready at `ready` and ends at `bytes` of all? "Best" is the earliest end,
// then the fewest groups. From one question to the next, `ready` and `bytes` never get less.
//
// Only the last prefix that ended before `ready` counts: it leaves least to send and
// delays nothing.

// Any monotone cost: O(prefixes) per question.
class MonotoneWindow {
 public:
  static constexpr uint64_t kStepsMax = 1 << 20;  // of a search: see fewest_groups.h

  explicit MonotoneWindow(const CostModel& cost) : cost_(&cost) {}

  void look_at(const std::vector<Prefix>& prefixes) {
    prefixes_ = &prefixes;
    first_ = visible_ = 0;
  }
  void show_next() { ++visible_; }
  uint32_t visible() const { return visible_; }
  // What the next question takes.
  uint64_t steps() const { return visible_ - first_; }

  // At least one is visible.
  Continuation best(double ready, uint64_t bytes) {
    while (first_ + 1 < visible_ && (*prefixes_)[first_ + 1].end_seconds <= ready) ++first_;
    const double start = std::max((*prefixes_)[first_].end_seconds, ready);
    Continuation best = continuation(visible_ - 1, ready, bytes);
    for (uint32_t place = visible_ - 1; place-- > first_;) {
      // No earlier prefix starts before `start`, nor leaves less to send.
      const double transfer = cost_->seconds(bytes - (*prefixes_)[place].bytes);
      if (start + transfer > best.end_seconds) break;
      const double end = std::max((*prefixes_)[place].end_seconds, ready) + transfer;
      if (end < best.end_seconds ||
          (end == best.end_seconds &&
           (*prefixes_)[place].groups < (*prefixes_)[best.place].groups)) {
        best = {place, end};
      }
    }
    return best;
  }

 private:
  Continuation continuation(uint32_t place, double ready, uint64_t bytes) const {
    const Prefix& prefix = (*prefixes_)[place];
    return {place, std::max(prefix.end_seconds, ready) + cost_->seconds(bytes - prefix.bytes)};
  }

  const CostModel* cost_;
  const std::vector<Prefix>* prefixes_ = nullptr;
  uint32_t visible_ = 0;
  uint32_t first_ = 0;  // the last one that was through by `ready`
};

// T made of lines: O(lines) per question at most, all in all.
//
// Sizes are sums, so the prefixes whose groups would be of one line's sizes are neighbours: the
// larger the sizes, the earlier the prefixes. From one question to the next all these runs move
// forward. A prefix of a run that ends after `ready` ends the group at
//     end + a + b·(bytes − its bytes),
// so the best prefix has the least end − b·bytes, whatever is asked. That is the least of a
// window that slides: a queue in which a prefix stands only as long as no later one, which also
// stays longer, is better.
class LinesWindow {
 public:
  static constexpr uint64_t kStepsMax = 1 << 17;

  // At least one.
  explicit LinesWindow(std::vector<CostModel::Line> lines) : lines_(std::move(lines)) {
    runs_.resize(lines_.size());
  }

  void look_at(const std::vector<Prefix>& prefixes) {
    prefixes_ = &prefixes;
    first_ = visible_ = 0;
    for (Run& run : runs_) run.clear();
  }
  void show_next() { ++visible_; }
  uint32_t visible() const { return visible_; }
  uint64_t steps() const { return 1; }

  Continuation best(double ready, uint64_t bytes) {
    while (first_ + 1 < visible_ && (*prefixes_)[first_ + 1].end_seconds <= ready) ++first_;
    Continuation best =
        continuation(line_of(bytes - (*prefixes_)[first_].bytes), first_, ready, bytes);
    const double start = std::max((*prefixes_)[first_].end_seconds, ready);
    uint32_t end = visible_;  // the run's
    for (size_t i = 0; i < lines_.size() && end > first_ + 1; ++i) {
      const CostModel::Line& line = lines_[i];
      Run& run = runs_[i];
      while (run.begin < end && bytes - (*prefixes_)[run.begin].bytes > line.bytes_max) ++run.begin;
      if (run.begin == end) continue;
      const uint32_t begin = std::max(run.begin, first_ + 1);
      const double least = line.phases(bytes - (*prefixes_)[end - 1].bytes).seconds();
      // No earlier prefix starts before `start`, nor leaves less to send.
      if (start + least > best.end_seconds) break;
      if ((*prefixes_)[begin].end_seconds + least <= best.end_seconds) {
        run.slide(*prefixes_, line.seconds_per_byte, begin, end);
        const Continuation late = continuation(line, run.front(), ready, bytes);
        if (better(late, best)) best = late;
      }
      end = run.begin;
    }
    return best;
  }

 private:
  // The prefixes whose groups are of one line's sizes.
  class Run {
   public:
    uint32_t begin = 0;  // those before it would make larger groups

    void clear() {
      begin = seen_ = 0;
      queue_.clear();
      head_ = 0;
    }
    // To the places [first, end), of which neither ever gets less.
    void slide(const std::vector<Prefix>& prefixes, double seconds_per_byte, uint32_t first,
               uint32_t end) {
      while (head_ < queue_.size() && queue_[head_].place < first) ++head_;
      for (seen_ = std::max(seen_, first); seen_ < end; ++seen_) {
        const Prefix& next = prefixes[seen_];
        const double key = next.end_seconds - seconds_per_byte * static_cast<double>(next.bytes);
        while (queue_.size() > head_ && !queue_.back().is_better(key, next.groups)) {
          queue_.pop_back();
        }
        queue_.push_back({key, seen_, next.groups});
      }
    }
    uint32_t front() const { return queue_[head_].place; }

   private:
    struct Late {
      double key = 0;
      uint32_t place = 0;
      uint32_t groups = 0;
      bool is_better(double other_key, uint32_t other_groups) const {
        return key < other_key || (key == other_key && groups < other_groups);
      }
    };
    std::vector<Late> queue_;  // from head_ on
    size_t head_ = 0;
    uint32_t seen_ = 0;  // places before it have been in the queue, or never will be
  };

  bool better(const Continuation& a, const Continuation& b) const {
    if (a.end_seconds != b.end_seconds) return a.end_seconds < b.end_seconds;
    const uint32_t groups_a = (*prefixes_)[a.place].groups;
    const uint32_t groups_b = (*prefixes_)[b.place].groups;
    return groups_a != groups_b ? groups_a < groups_b : a.place > b.place;
  }
  const CostModel::Line& line_of(uint64_t bytes) const {
    size_t i = 0;
    while (bytes > lines_[i].bytes_max) ++i;
    return lines_[i];
  }
  Continuation continuation(const CostModel::Line& line, uint32_t place, double ready,
                            uint64_t bytes) const {
    const Prefix& prefix = (*prefixes_)[place];
    return {place,
            std::max(prefix.end_seconds, ready) + line.phases(bytes - prefix.bytes).seconds()};
  }

  std::vector<CostModel::Line> lines_;
  std::vector<Run> runs_;
  const std::vector<Prefix>* prefixes_ = nullptr;
  uint32_t visible_ = 0;
  uint32_t first_ = 0;  // the last one that was through by `ready`
};

}  // namespace braid
