// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "ipc/user_quotas.h"
#include "timeline/work_spans.h"

namespace braid {

// A rank's part of placed work, in the seconds of one update: once all items. 0: not known.
struct WorkLoad {
  struct Item {
    std::string name;
    double seconds = 0;        // that this rank needs for it
    double least_seconds = 0;  // the shortest that any rank has needed
  };

  uint32_t rank = 0;
  std::string work;               // "inverses"
  uint64_t told_ns = 0;           // CLOCK_MONOTONIC
  uint64_t updates = 0;           // so far
  double interval_seconds = 0;    // from the begin of an update to the next one's
  double seconds = 0;             // that it computes
  double wait_seconds = 0;        // that it waits for what others compute
  double input_wait_seconds = 0;  // that it waits for what its items are computed of
  double planned_seconds = 0;     // that it was to compute, by the latest placement
  double makespan_seconds = 0;    // when all have all results, by that
  double bound_seconds = 0;       // which no placement beats
  std::vector<Item> items;        // that it computes, the costliest first
  uint64_t items_more = 0;        // that it computes, too
};

// What a rank has told at one time; checked.
struct ToldWork {
  WorkSpans spans;
  std::optional<WorkLoad> load;
};

// What the ranks of a job on this node have told of placed work. Only the latest loads and spans
// are kept. Any thread.
class PlacedWork {
 public:
  static constexpr size_t kWorksMax = 8;           // of a rank, by name
  static constexpr size_t kItemsKept = 16;         // of a load
  static constexpr size_t kBytesMax = 256u << 10;  // of a rank's spans

  // `charge`: of buffers of the rank's user. If there is no room for the spans, they are left out.
  // ResourceExhausted: the rank has told of other works before, and they are enough.
  Status take(ToldWork told, UserCharge charge) BRAID_EXCLUDES(mutex_);
  // By rank, then by the work's name.
  std::vector<WorkLoad> loads() const BRAID_EXCLUDES(mutex_);
  // In the order in which each rank has told them.
  std::vector<std::shared_ptr<const WorkSpans>> spans() const BRAID_EXCLUDES(mutex_);

 private:
  struct Rank {
    std::map<std::string, std::optional<WorkLoad>> loads;  // by work; nothing: only spans were told
    std::deque<std::shared_ptr<const WorkSpans>> spans;
    uint64_t bytes = 0;  // of these
    UserCharge charge;
  };

  static void keep(Rank& rank, WorkSpans spans);

  mutable Mutex mutex_;
  std::map<uint32_t, Rank> ranks_ BRAID_GUARDED_BY(mutex_);
};

}  // namespace braid
