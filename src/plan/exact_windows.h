// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "plan/cost_model.h"

namespace braid {

// What is left to do once a plan's first tensors have been sent: where the next group may begin.
struct Prefix {
  uint32_t tensors = 0;    // how many have been sent
  uint32_t groups = 0;     // in how many
  uint64_t bytes = 0;      // of all of them
  double end_seconds = 0;  // when the last one was through
  uint32_t before = 0;     // the prefix that the last group was added to: its place in its window
};

// The windows below hold prefixes in the order in which they were added, each with more tensors and
// no earlier end than the one before, and answer: which one is best continued with a group that is
// ready at `ready` and ends at `bytes` of all? "Best" is the earliest end, then the fewest groups.
// From one question to the next, `ready` and `bytes` never get less.
struct Continuation {
  uint32_t place = 0;
  double end_seconds = 0;
};

// Any monotone cost: O(prefixes) per question.
//
// Of the prefixes that ended before `ready` only the last one counts: it leaves least to send and
// delays nothing.
class MonotoneWindow {
 public:
  explicit MonotoneWindow(const CostModel& cost) : cost_(&cost) {}
  void add(const Prefix& prefix) { prefixes_.push_back(prefix); }
  // What the next question takes.
  uint64_t steps() const { return prefixes_.size() - first_; }

  // There is at least one prefix.
  Continuation best(double ready, uint64_t bytes) {
    while (first_ + 1 < prefixes_.size() && prefixes_[first_ + 1].end_seconds <= ready) ++first_;
    Continuation best = continuation(first_, ready, bytes);
    for (uint32_t place = first_ + 1; place < prefixes_.size(); ++place) {
      const Continuation other = continuation(place, ready, bytes);
      if (other.end_seconds < best.end_seconds ||
          (other.end_seconds == best.end_seconds &&
           prefixes_[place].groups < prefixes_[best.place].groups)) {
        best = other;
      }
    }
    return best;
  }

 private:
  Continuation continuation(uint32_t place, double ready, uint64_t bytes) const {
    const Prefix& prefix = prefixes_[place];
    return {place, std::max(prefix.end_seconds, ready) + cost_->seconds(bytes - prefix.bytes)};
  }

  const CostModel* cost_;
  std::vector<Prefix> prefixes_;
  uint32_t first_ = 0;  // the last one that was through by `ready`
};

// T(M) = a + b·M: O(1) per question, all in all.
//
// Of the prefixes that end after `ready`, the best one has the least end − b·bytes, whatever is
// asked: a queue in which a prefix stands only as long as no later one is better.
class LinearWindow {
 public:
  explicit LinearWindow(LinearCost cost) : cost_(cost) {}
  uint64_t steps() const { return 1; }

  void add(const Prefix& prefix) {
    const double key = prefix.end_seconds - cost_.seconds_per_byte * static_cast<double>(prefix.bytes);
    while (!late_.empty() && !better(late_.back(), key, prefix.groups)) late_.pop_back();
    late_.push_back({key, static_cast<uint32_t>(prefixes_.size()), prefix.groups});
    prefixes_.push_back(prefix);
  }

  Continuation best(double ready, uint64_t bytes) {
    while (first_ + 1 < prefixes_.size() && prefixes_[first_ + 1].end_seconds <= ready) ++first_;
    while (!late_.empty() && late_.front().place <= first_) late_.pop_front();
    const Continuation through = continuation(first_, ready, bytes);
    if (late_.empty()) return through;
    const Continuation late = continuation(late_.front().place, ready, bytes);
    if (late.end_seconds != through.end_seconds) {
      return late.end_seconds < through.end_seconds ? late : through;
    }
    return prefixes_[late.place].groups < prefixes_[through.place].groups ? late : through;
  }

 private:
  struct Late {
    double key = 0;
    uint32_t place = 0;
    uint32_t groups = 0;
  };
  static bool better(const Late& late, double key, uint32_t groups) {
    return late.key < key || (late.key == key && late.groups < groups);
  }
  Continuation continuation(uint32_t place, double ready, uint64_t bytes) const {
    const Prefix& prefix = prefixes_[place];
    return {place, std::max(prefix.end_seconds, ready) +
                       cost_.seconds(static_cast<double>(bytes - prefix.bytes))};
  }

  LinearCost cost_;
  std::vector<Prefix> prefixes_;
  std::deque<Late> late_;
  uint32_t first_ = 0;  // the last one that was through by `ready`
};

}  // namespace braid
