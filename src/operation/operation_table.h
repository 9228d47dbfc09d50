// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "operation/operation_engines.h"
#include "operation/operation_log.h"
#include "operation/operation_maker.h"
#include "operation/readiness.h"
#include "operation/result_memory.h"

namespace braid {

// Told what a table's operations do, from within the table's own functions.
class OperationObserver {
 public:
  virtual ~OperationObserver() = default;
  virtual void on_start(const OperationKey& key, uint64_t result_bytes) = 0;
  // It waits for no other node any more.
  virtual void on_go(const OperationKey& key) = 0;
  // Before its results are published.
  virtual void on_done(const OperationKey& key) = 0;
  // An operation that was sampled is done: what its codec has lost on this node.
  virtual void on_loss(const OperationKey& /*key*/, const CodecLoss& /*loss*/) {}
};

// What a table works with.
struct OperationServices {
  OperationEngines& engines;
  OperationObserver& observer;
  JobCounters& counters;
  std::vector<ResultSink*> sinks;  // by local rank
  // READY, to the node at `place` of the ring.
  std::function<Status(uint32_t place, const OperationKey&, const Signature&)> send_ready;
  // Whether this node can send to all others. Where it cannot yet, it begins to see to that, and
  // on_reached() follows.
  std::function<bool()> reach_all;
  // An operation that waited for another one's end could not start: the job ends.
  std::function<void(const Status&)> fail = [](const Status&) {};
  // An operation has ended well, and its results are published.
  std::function<void(uint64_t now_ns)> on_end = [](uint64_t) {};
  // Gets what the operations come to.
  std::shared_ptr<JobNumbers> numbers = std::make_shared<JobNumbers>();
  LoopTimeline* timeline = nullptr;  // of the control loop; nullptr: nothing is noted
  std::function<uint64_t()> now_ns = [] { return SystemClock().now_ns(); };
};

// All operations of one job on this node, from the first local submission until every local rank
// has given its result back.
//
//   gathering  --all local ranks submitted all members: result placed--> placed
//   placed     --its memory is there: engine started, READY to the sources--> running
//   running    --the READY of all targets: go … engine done: published--> published
//   published  --engine retired and released by all local ranks--> (forgotten)
//
// Operations start in the order in which they were placed, so one whose memory or links still have
// to come holds up those behind it. So does one with error memory that an operation of another step
// still works with. So do kLocalRunningMax operations of a job that is on this node alone: the
// others wait here, where they hold up no other job's.
//
// The sources are the nodes that will send to this one, the targets those that it will send to:
// around the ring the predecessor and the successor, else as the operation's route says.
//
// An early operation waits for no READY: the parts of all nodes say as much. If it does not end at
// once its READY goes out all the same, for it tells the sources where ranks disagree.
//
// Any error that a function returns is the end of the job. Control loop only.
class OperationTable final : public OperationEvents {
 public:
  // What the loops' doors and queues hold of a job's operations; enough to keep all loops busy.
  static constexpr size_t kLocalRunningMax = 64;

  OperationTable(JobOnNode job, std::shared_ptr<ResultMemory> memory, OperationServices services);

  // What other nodes are ready for too early counts there.
  void set_early_charge(UserCharge charge) { readiness_.set_charge(std::move(charge)); }
  Status submit(const Submission& submission, const PlannedTensor& planned = {});
  Status on_node_ready(uint32_t place, const OperationKey& key, const Signature& signature);
  // To be called now and then: sends the readiness of early operations that were running at the
  // last call already.
  Status tell_readiness();
  // `reason`: what it said, if anything.
  Status on_rank_left(uint32_t local_rank, const std::string& reason = {});
  // Nothing is published to it any more, though what it has submitted counts.
  void drop_sink(uint32_t local_rank) { services_.sinks[local_rank] = nullptr; }
  // More memory has come, or none will: see ResultMemory.
  Status on_memory(const Status& growth);
  // reach_all() is true now.
  Status on_reached() { return on_memory(Status::ok()); }
  void on_done(const OperationKey& key) override;
  void on_retired(const OperationKey& key) override;
  Status release(uint32_t local_rank, const OperationKey& key);
  // No rank of this node has the tensor any more; what is said of it from now on is late.
  void end_tensor(uint64_t tensor) { log_.end_tensor(tensor); }

  struct Overdue {
    OperationKey key;
    uint32_t timeout_ms = 0;
    std::string description;
  };
  // The operation with the earliest deadline among those whose deadline has passed and that were
  // not reported before.
  std::optional<Overdue> take_overdue(uint64_t now_ns);
  size_t pending() const { return log_.pending(); }
  bool has_unfinished() const { return log_.pending() > 0; }
  // Also those that have ended, until all local ranks have given them back.
  size_t size() const { return entries_.size(); }
  const OperationLog& log() const { return log_; }
  const JobOnNode& job() const { return job_; }

 private:
  using Entry = OperationEntry;
  using State = OperationState;
  // Where a tensor's operation is when a plan has merged it with others.
  struct EntryMember {
    OperationKey entry;
    uint32_t member = 0;
  };

  Status place(Entry& entry);
  Status place_result(Entry& entry, Operation& operation);
  void find_awaited(Entry& entry, const Operation& operation) const;
  Status allocate(Entry& entry);
  bool needs_all(const Operation& operation) const;
  bool can_start(const Operation& operation, const Entry& entry) const;
  Status start(Entry& entry, Operation operation);
  Status tell_sources(Entry& entry);
  Status take_readiness(Entry& entry, const Readiness::Word& word);
  void note_go(Entry& entry);
  Status go(Entry& entry);
  Status check_taken(bool is_taken) const;
  void publish(Entry& entry);
  void forget_if_over(OperationEntries::iterator position);
  Status leaver_without(const GatheredOperation& submitted, uint32_t local_rank) const;
  Status leaver_apart(uint32_t local_rank, const Signature& signature) const;
  std::string describe_leaver(uint32_t local_rank) const;

  const JobOnNode job_;
  const std::shared_ptr<ResultMemory> memory_;
  OperationServices services_;
  const OperationMaker maker_;
  OperationEntries entries_;
  OperationLog log_;
  Readiness readiness_;
  std::deque<Operation> placed_;  // those that wait for their memory
  std::unordered_map<OperationKey, EntryMember, OperationKeyHash> members_;  // of merged tensors
  std::vector<bool> has_left_;                                               // by local rank
  std::vector<std::string> leave_reasons_;                                   // by local rank
  size_t running_ = 0;  // started and not published
};

}  // namespace braid
