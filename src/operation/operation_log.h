// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "operation/ended_tensors.h"
#include "operation/job_counters.h"
#include "operation/job_numbers.h"
#include "operation/operation_entry.h"
#include "timeline/loop_timeline.h"

namespace braid {

// What the operations of one job have come to on this node: which have ended, how long they took,
// and what is told of those that have not. Control loop only.
class OperationLog {
 public:
  // `job` and `entries`, those of the table, outlive it. `timeline`: of the control loop; nullptr:
  // nothing is noted.
  OperationLog(const JobOnNode& job, const OperationEntries& entries, JobCounters& counters,
               std::shared_ptr<JobNumbers> numbers, LoopTimeline* timeline)
      : job_(job),
        entries_(entries),
        counters_(counters),
        numbers_(std::move(numbers)),
        timeline_(timeline) {}

  // The table says so.
  void on_first_submission() { set_pending(pending_ + 1); }
  void on_go(const OperationEntry& entry);
  void on_end(const OperationEntry& entry, uint64_t end_ns);
  // No rank of this node has the tensor any more; what is said of it from now on is late.
  void end_tensor(uint64_t tensor);
  // For an operation without an entry. A tensor's steps grow, so earlier ones have ended.
  bool has_ended(const OperationKey& key) const;

  uint64_t operations_done() const { return numbers_->operations.get(); }
  uint64_t steps_done() const { return steps_done_; }
  uint64_t bytes_done() const { return numbers_->operation_bytes.get(); }
  size_t pending() const { return pending_; }  // not published yet

  // An operation that has not ended here, and what of it a local rank has submitted.
  struct Pending {
    std::string tensor;  // the first one of a group
    uint64_t step = 0;
    Collective collective = Collective::AllReduce;
    size_t tensors = 1;           // that are merged in it
    uint64_t bytes = 0;           // that one rank gives
    uint64_t submitted_ns = 0;    // by the first local rank
    bool is_on_its_way = false;   // no other node is awaited any more
    std::vector<uint32_t> ranks;  // of this node, that have submitted all of it
  };
  // Those that were submitted first.
  std::vector<Pending> oldest_pending(size_t most) const;
  // What has ended on this node may still be pending on others.
  struct Ended {
    std::shared_ptr<const std::string> tensor;  // as Pending::tensor
    uint64_t step = 0;
    Collective collective = Collective::AllReduce;
    uint64_t end_ns = 0;
    // By local rank: from its submission to the end. Empty: the operation is planned.
    std::vector<uint64_t> wait_ns;
  };
  static constexpr size_t kEndedKept = 512;
  std::vector<Ended> latest_ended(size_t most) const;
  // The local ranks that have not submitted the operation, or not all of its members.
  std::vector<uint32_t> missing_ranks(const OperationKey& key) const;
  // The first member that the rank has not submitted, of an operation that others have.
  std::string first_missing(const OperationKey& key, uint32_t rank) const;
  // Operations that have not ended, for the timeline: see TimelineSource.
  std::vector<TimelineEvent> unfinished_spans() const;

 private:
  static TimelineEvent span_of(const OperationEntry& entry);
  void remember(const GatheredOperation& submitted, uint64_t end_ns);
  void set_pending(size_t pending);

  const JobOnNode& job_;
  const OperationEntries& entries_;
  JobCounters& counters_;
  const std::shared_ptr<JobNumbers> numbers_;
  LoopTimeline* const timeline_;
  std::unordered_map<uint64_t, uint64_t> last_ended_;  // the highest step, by tensor
  EndedTensors ended_tensors_;
  std::vector<Ended> ended_;  // the latest
  size_t ended_next_ = 0;     // place in it
  size_t pending_ = 0;
  size_t all_reduces_going_ = 0;
  uint64_t going_since_ns_ = 0;  // at least one of them
  uint64_t steps_done_ = 0;      // the highest step that has ended, plus one
};

}  // namespace braid
