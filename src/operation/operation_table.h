// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "engine/operation.h"
#include "engine/transfer_settings.h"
#include "ipc/user_quotas.h"
#include "messages/signature.h"
#include "operation/codec_hop.h"
#include "operation/ended_tensors.h"
#include "operation/job_counters.h"
#include "operation/job_numbers.h"
#include "operation/node_exchange.h"
#include "operation/operation_engines.h"
#include "operation/result_memory.h"
#include "operation/tensor_group.h"
#include "timeline/loop_timeline.h"
#include "update/shard_state.h"

namespace braid {

// One local rank's word on one operation.
struct Submission {
  uint32_t local_rank = 0;  // place among the node's ranks of the job
  uint64_t ticket = 0;
  uint64_t tensor = 0;  // hash of its name
  uint64_t step = 0;
  Signature signature;
  const uint8_t* input = nullptr;  // mapped
  // That were checked to be there, of what the rank itself has registered.
  uint64_t input_bytes = 0;
  // Gather, scatter, all-to-all: how `input` is split, and what the rank gets.
  std::shared_ptr<const Splits> splits;
  uint64_t submitted_ns = 0;
  uint64_t deadline_ns = 0;
  uint32_t timeout_ms = 0;
  std::shared_ptr<const std::string> name;  // of the tensor
  std::optional<uint32_t> plan;  // that it follows, by number; nothing: it is not planned
  // The group that the plan has put the tensor in, and its place there; nullptr: by itself.
  std::shared_ptr<const TensorGroup> group;
  uint32_t member = 0;
  // How the operation travels, the same for all of its submissions; nullptr: as the engines and the
  // ring say.
  std::shared_ptr<const TransferSettings> settings;
  uint64_t urgency = kMostUrgent;  // of the operation, the same for all of its submissions
  // The tensors that have the signature's codec, and where the submitted one begins among their
  // elements; nullptr: it has none.
  std::shared_ptr<const CodedTensors> coded;
  uint64_t first_element = 0;
  bool is_sampled = false;  // what its codec loses is measured
  // What this node keeps of the set, where the tensor begins among the set's elements, and what its
  // owners are to do; nullptr: nothing is kept.
  std::shared_ptr<ShardState> shard;
  uint64_t first_in_set = 0;
  UpdateStep update;
};

// Where one local rank's results go: its done ring.
class ResultSink {
 public:
  virtual ~ResultSink() = default;
  virtual void publish(uint64_t ticket, uint64_t result_offset, uint64_t result_bytes) = 0;
};

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
  // Gets what the operations come to.
  std::shared_ptr<JobNumbers> numbers = std::make_shared<JobNumbers>();
  LoopTimeline* timeline = nullptr;  // of the control loop; nullptr: nothing is noted
  std::function<uint64_t()> now_ns = [] { return SystemClock().now_ns(); };
};

// All operations of one job on this node, from the first local submission until every local rank
// has given its result back. The operation of a group has several members, the tensors that a plan
// has merged; all others have one.
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
// around the ring the predecessor and the successor, else as the operation's route says. What
// any other node is ready for is compared, because nodes that disagree about the size may take
// different algorithms.
//
// An early operation waits for no READY: the parts of all nodes say as much. If it does not end at
// once its READY goes out all the same, for it tells the sources where ranks disagree.
//
// Any error that a function returns is the end of the job. Control loop only.
class OperationTable final : public OperationEvents {
 public:
  // Operations that others are ready for and no local rank has submitted yet; a peer with more is
  // broken.
  static constexpr size_t kEarlyReadyMax = 1 << 16;
  // What a node's readiness for one of them takes, about; they count in steps.
  static constexpr uint64_t kReadyCostBytes = 256;
  static constexpr uint64_t kReadyStepBytes = 256 << 10;
  // What the loops' doors and queues hold of a job's operations; enough to keep all loops busy.
  static constexpr size_t kLocalRunningMax = 64;

  OperationTable(std::string job_name, uint64_t job_key, std::shared_ptr<const Ring> ring,
                 std::vector<uint32_t> local_ranks, std::shared_ptr<ResultMemory> memory,
                 OperationServices services);

  // What other nodes are ready for too early counts there.
  void set_early_charge(UserCharge charge) { early_charge_ = std::move(charge); }
  Status submit(const Submission& submission);
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
  void end_tensor(uint64_t tensor);

  struct Overdue {
    OperationKey key;
    uint32_t timeout_ms = 0;
    std::string description;
  };
  // The operation with the earliest deadline among those whose deadline has passed and that were
  // not reported before.
  std::optional<Overdue> take_overdue(uint64_t now_ns);
  bool has_unfinished() const { return unfinished_ > 0; }
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
    // By local rank: from its submission to the end. Empty: a plan has merged it.
    std::vector<uint64_t> wait_ns;
  };
  static constexpr size_t kEndedKept = 512;
  std::vector<Ended> latest_ended(size_t most) const;
  // The local ranks that have not submitted the operation, or not all of its members.
  std::vector<uint32_t> missing_ranks(const OperationKey& key) const;
  // The first member that the rank has not submitted, of an operation that others have.
  std::string first_missing(const OperationKey& key, uint32_t rank) const;

  uint64_t operations_done() const { return services_.numbers->operations.get(); }
  uint64_t steps_done() const { return steps_done_; }
  uint64_t bytes_done() const { return services_.numbers->operation_bytes.get(); }
  size_t pending() const { return unfinished_; }
  // Also those that have ended, until all local ranks have given them back.
  size_t size() const { return entries_.size(); }
  // Operations that have not ended, for the timeline: see TimelineSource.
  std::vector<TimelineEvent> unfinished_spans() const;

 private:
  enum class State : uint8_t { Gathering, Placed, Running, Published };
  // One member of one local rank.
  struct LocalPart {
    bool is_submitted = false;
    bool is_released = false;
    uint64_t submitted_ns = 0;
    uint64_t ticket = 0;
    const uint8_t* input = nullptr;
    uint64_t result_start = 0;  // of an exchange: where the rank's own result is in the operation's
  };
  struct Entry {
    State state = State::Gathering;
    bool is_retired = false;
    bool is_reported_overdue = false;
    bool is_early = false;
    bool is_seen_running = false;  // by tell_readiness()
    bool is_ready_told = false;
    bool is_going = false;         // note_go() was called
    bool is_timed = false;         // an all-reduce on its way: all_reduces_going_ counts it
    const Route* route = nullptr;  // the ring's; nullptr: around the ring
    std::unique_ptr<NodeExchange> exchange;
    std::vector<uint32_t> awaited;  // places of the targets that are not ready yet
    Signature signature;
    std::shared_ptr<const std::string> name;
    std::shared_ptr<const TensorGroup> group;  // nullptr: one tensor
    std::shared_ptr<const TransferSettings> settings;
    uint64_t urgency = kMostUrgent;
    std::shared_ptr<const CodedTensors> coded;  // nullptr: the elements travel as they are
    uint64_t first_element = 0;
    std::shared_ptr<CodecGauge> gauge;  // nullptr: the operation is not sampled
    std::shared_ptr<ShardState> shard;  // nullptr: its owners keep nothing
    uint64_t first_in_set = 0;
    std::vector<std::optional<UpdateStep>> updates;  // by member; of an operation with state
    std::vector<LocalPart> parts;  // the first local rank's members, the second's, …
    size_t submitted = 0;          // parts
    size_t released = 0;
    uint32_t first_rank = 0;  // whose signature it is
    uint64_t deadline_ns = 0;
    uint32_t timeout_ms = 0;
    uint64_t result_offset = 0;
    uint64_t result_bytes = 0;
    std::optional<uint32_t> plan;
    uint64_t first_submitted_ns = 0;
    uint64_t submitted_ns = 0;  // the last part
    uint64_t went_ns = 0;
  };
  using Entries = std::unordered_map<OperationKey, Entry, OperationKeyHash>;
  // What a node is ready for.
  struct NodeReady {
    uint32_t place = 0;
    Signature signature;
  };
  // Where a tensor's operation is when it is a member of a group.
  struct EntryMember {
    OperationKey entry;
    uint32_t member = 0;
  };

  Status add_part(const OperationKey& key, Entry& entry, const Submission& submission);
  Status check_member(const Entry& entry, const Submission& submission) const;
  Status place(const OperationKey& key, Entry& entry);
  Status allocate(const OperationKey& key, Entry& entry);
  Status check_kept(const OperationKey& key, const Entry& entry) const;
  static bool lies_within(const Entry& entry, uint64_t elements, uint64_t first,
                          uint64_t TensorGroup::Member::*first_of_member);
  // operation_table_updates.cpp
  Status check_update(const OperationKey& key, Entry& entry, const Submission& submission) const;
  void prepare_update(Entry& entry, Operation& operation) const;
  static bool pulls_rounded(const Entry& entry);
  bool has_hop(const Entry& entry) const;

  std::shared_ptr<Hop> hop_of(const OperationKey& key, const Entry& entry) const;
  void say_what_is_final(const Operation& operation, CodecGauge& gauge) const;
  void finish_coded(const OperationKey& key, const Entry& entry);
  bool can_start(const Operation& operation, const Entry& entry) const;
  Status start_in_turn(Entry& entry, Operation operation);
  Status start(Entry& entry, Operation operation);
  OperationInput input_of(const Entry& entry, uint32_t local_rank) const;
  Status go(const OperationKey& key, Entry& entry);
  void note_go(const OperationKey& key, Entry& entry);
  void note_end(const OperationKey& key, const Entry& entry);
  void remember(const OperationKey& key, const Entry& entry, uint64_t end_ns);
  static const std::shared_ptr<const std::string>& first_name(const Entry& entry);
  Status check_taken(bool is_taken) const;
  void publish(const Entry& entry, uint32_t local_rank);
  static ElementRanges elements_of(const Entry& entry, uint64_t first,
                                   uint64_t TensorGroup::Member::*first_of_member);
  size_t members(const Entry& entry) const { return entry.parts.size() / local_ranks_.size(); }
  bool has_submitted(const Entry& entry, uint32_t local_rank) const;
  void release_part(Entry& entry, uint32_t local_rank, uint32_t member);
  Status tell_sources(Entry& entry, const OperationKey& key);
  Status count_early_ready(uint64_t count);
  Status take_readiness(Entry& entry, const OperationKey& key, const NodeReady& ready);
  bool has_ended(const OperationKey& key) const;
  Status check_agrees(const Entry& entry, const OperationKey& key, const NodeReady& ready) const;
  void forget_if_over(Entries::iterator entry);
  void set_unfinished(size_t unfinished);
  TimelineEvent span_of(const OperationKey& key, const Entry& entry) const;

  // operation_table_exchange.cpp
  Status add_to_exchange(const OperationKey& key, Entry& entry, const Submission& submission);
  Status place_exchange(const OperationKey& key, Entry& entry, Operation operation);
  Status tell_exchange_sources(const Entry& entry, const OperationKey& key);
  Status check_splits(const OperationKey& key, const Entry& entry,
                      const std::string& disagreement) const;

  std::string describe(const Entry& entry, const OperationKey& key) const;
  std::string describe_leaver(uint32_t local_rank) const;

  const std::string job_name_;
  const uint64_t job_key_;
  const JobHash hash_;
  const std::shared_ptr<const Ring> ring_;
  const std::vector<uint32_t> local_ranks_;
  const std::shared_ptr<ResultMemory> memory_;
  OperationServices services_;
  Entries entries_;
  std::deque<Operation> placed_;  // those that wait for their memory
  std::unordered_map<OperationKey, EntryMember, OperationKeyHash> members_;  // of members of groups
  std::unordered_map<OperationKey, std::vector<NodeReady>, OperationKeyHash> early_ready_;
  uint64_t early_ready_count_ = 0;  // of all nodes
  UserCharge early_charge_;
  std::unordered_map<uint64_t, uint64_t> last_published_;  // the highest step, by tensor
  EndedTensors ended_tensors_;
  std::vector<bool> has_left_;              // by local rank
  std::vector<std::string> leave_reasons_;  // by local rank
  size_t unfinished_ = 0;                   // not published yet
  std::vector<Ended> ended_;                // the latest
  size_t ended_next_ = 0;                   // place in it
  size_t running_ = 0;                      // started and not published
  size_t all_reduces_going_ = 0;
  uint64_t going_since_ns_ = 0;  // at least one of them
  uint64_t steps_done_ = 0;      // the highest step that was published, plus one
};

}  // namespace braid
