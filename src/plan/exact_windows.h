// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plan/cost_model.h"

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
// Of the prefixes that ended before `ready` only the last one counts: it leaves least to send and
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
  // Less than it takes to send `bytes` in any number of groups.
  double least_seconds(uint64_t /*bytes*/) const { return 0; }

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

// T(M) = a + b·M: O(1) per question, all in all.
//
// Of the prefixes that end after `ready`, the best one has the least end − b·bytes, whatever is
// asked: a queue in which a prefix stands only as long as no later one is better.
class LinearWindow {
 public:
  static constexpr uint64_t kStepsMax = 1 << 17;

  explicit LinearWindow(LinearCost cost) : cost_(cost) {}

  void look_at(const std::vector<Prefix>& prefixes) {
    prefixes_ = &prefixes;
    first_ = visible_ = 0;
    late_.clear();
    head_ = 0;
  }
  uint32_t visible() const { return visible_; }
  uint64_t steps() const { return 1; }
  double least_seconds(uint64_t bytes) const { return cost_.seconds(static_cast<double>(bytes)); }

  void show_next() {
    const Prefix& next = (*prefixes_)[visible_];
    const double key = next.end_seconds - cost_.seconds_per_byte * static_cast<double>(next.bytes);
    while (late_.size() > head_ && !better(late_.back(), key, next.groups)) late_.pop_back();
    late_.push_back({key, visible_, next.groups});
    ++visible_;
  }

  Continuation best(double ready, uint64_t bytes) {
    while (first_ + 1 < visible_ && (*prefixes_)[first_ + 1].end_seconds <= ready) ++first_;
    while (head_ < late_.size() && late_[head_].place <= first_) ++head_;
    const Continuation through = continuation(first_, ready, bytes);
    if (head_ == late_.size()) return through;
    const Continuation late = continuation(late_[head_].place, ready, bytes);
    if (late.end_seconds != through.end_seconds) {
      return late.end_seconds < through.end_seconds ? late : through;
    }
    return late_[head_].groups < (*prefixes_)[first_].groups ? late : through;
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
    const Prefix& prefix = (*prefixes_)[place];
    return {place, std::max(prefix.end_seconds, ready) +
                       cost_.seconds(static_cast<double>(bytes - prefix.bytes))};
  }

  LinearCost cost_;
  const std::vector<Prefix>* prefixes_ = nullptr;
  std::vector<Late> late_;  // from head_ on
  size_t head_ = 0;
  uint32_t visible_ = 0;
  uint32_t first_ = 0;  // the last one that was through by `ready`
};

}  // namespace braid
