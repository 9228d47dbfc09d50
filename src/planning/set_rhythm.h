// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "messages/plan_messages.h"

namespace braid {

// When the sets of one job begin their steps, relative to each other, on this node: which sets
// share the network with a set, how often, and how far apart they begin. Nanoseconds. Control loop
// only.
class SetRhythm {
 public:
  // The latest beginnings of steps, of all sets. What began before is not looked for.
  static constexpr size_t kBeginsKept = 16;
  // Shares and times are taken over so many steps of a set.
  static constexpr size_t kStepsKept = 64;
  // The first steps of a set do not count; see PlanMeter::kStepsIgnored.
  static constexpr uint32_t kStepsIgnored = 2;

  // A step of the set begins.
  void on_begin(uint64_t set, uint64_t now_ns);
  void forget(uint64_t set);
  // The sets that began a step between two steps of this set: in which share of this set's steps,
  // and how long before the later of the two: the median. The most frequent ones, as many as a
  // report takes.
  std::vector<PlanReport::Beside> beside(uint64_t set) const;

 private:
  struct Begin {
    uint64_t set = 0;
    uint64_t at_ns = 0;
  };
  struct Before {
    uint64_t set = 0;
    uint64_t before_ns = 0;
  };
  struct Steps {
    uint32_t begun = 0;
    std::deque<std::vector<Before>> kept;
  };

  std::deque<Begin> begins_;
  std::unordered_map<uint64_t, Steps> steps_;  // by set
};

}  // namespace braid
