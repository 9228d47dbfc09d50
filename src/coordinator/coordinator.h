// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/lifetime.h"
#include "base/log.h"
#include "control/control_plane.h"
#include "coordinator/investigation.h"
#include "coordinator/plan_director.h"
#include "coordinator/refused_senders.h"
#include "loop/timer.h"
#include "messages/control_messages.h"
#include "messages/job_owner.h"

namespace braid {

// Which algorithms all-reduces take, as it is configured; see Ring. Nothing: by the cost of hops
// and bytes (plan/algorithm_sizes.h), from the round trips between this node and the job's others.
struct ConfiguredAlgorithms {
  std::optional<uint64_t> direct_bytes = 0;
  std::optional<uint64_t> halving_bytes = 0;
  bool is_hierarchical = false;
  std::optional<uint64_t> two_hops_bytes = 0;
};

// Brings the ranks of jobs together whose trainers named this node as their master: gathers JoinJob
// until all ranks are there, fixes epoch, key and ring order (nodes by their lowest rank, those
// of a rack together), tells everyone, and spreads failures and the end. Ranks come together whose
// job has the same name and the same owner. Not on the hot path. Control loop only.
//
//   forming  --all ranks joined-->  starting  --all nodes ready-->  running  --all ranks left-->
//   (forgotten)
//      |                               |                              |
//      +------- a failure, a lost node, a deadline, a contradiction: JobFailed to all ----------->
//      (forgotten)
class Coordinator {
 public:
  static constexpr size_t kFormingJobsMax = 1024;
  static constexpr size_t kFormingJobsPerUserMax = kFormingJobsMax / 4;
  static constexpr size_t kEpochsRemembered = 4096;
  static constexpr uint32_t kWorldSizeMax = 65536;
  static constexpr uint64_t kContradictionMs = 10'000;
  static constexpr uint32_t kLeaveTimeoutMs = 43'200'000;

  // Among more nodes nothing is direct: each would send as much to every one of them.
  static constexpr size_t kDirectNodesMax = 8;

  // By two hops each node sends to every other one: below, that saves no hop around the ring, and
  // above, the connections are too many.
  static constexpr size_t kTwoHopsNodesMin = 3;

  // Below, going by halves saves no hop.
  static constexpr size_t kHalvingNodesMin = 4;

  Coordinator(Loop& loop, ControlPlane& control_plane, PlanningOptions planning = {},
              const ConfiguredAlgorithms& algorithms = {},
              uint32_t leave_timeout_ms = kLeaveTimeoutMs)
      : loop_(loop),
        control_plane_(control_plane),
        planning_(std::move(planning)),
        algorithms_(algorithms),
        leave_timeout_ms_(leave_timeout_ms) {}
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // JoinJob, JobReady, FailJob, RankLeft, OperationOverdue, OperationReport, PlanReport,
  // PlanAnswer, SetRegistered, SetUnregistered, StepReport, CodecSample; false for any other
  // message.
  bool on_control_message(const Peer& from, const proto::ControlMessage& message);
  void on_peer_lost(const Peer& peer, const Status& reason);
  // The tuning of a job that this node coordinates; nothing for any other.
  std::optional<std::string> tuning_json(uint64_t job_key) const;
  // What its guard has last read of its codecs; nothing: as above.
  std::optional<std::vector<GuardReading>> guard_readings(uint64_t job_key) const;
  uint64_t messages_refused() const { return refused_.count(); }

 private:
  struct Member {
    Peer peer;
    int64_t process_id = 0;
    std::string rack{};
  };
  struct FormingJob {
    JobIdentity identity;
    uint32_t user = 0;  // of its first rank
    uint32_t world_size = 0;
    uint32_t timeout_ms = 0;
    uint32_t weight = 1;
    CutSettings cut;                     // of the first node
    std::map<uint32_t, Member> members;  // by rank
    std::unique_ptr<Timer> deadline;

    JobLabel label() const { return {identity.name, user}; }
  };
  // Ranks that contradict each other fail a forming job at once; ranks that come a moment later are
  // told, too, instead of waiting for partners who have given up. A rank that was told and comes
  // again is a new attempt.
  struct Contradiction {
    Status reason;
    std::set<uint32_t> told;
    std::unique_ptr<Timer> expiry;
  };
  struct ActiveJob {
    std::string name;
    JobOwner owner{};
    uint32_t user = 0;  // of its first rank
    uint64_t key = 0;
    uint32_t world_size = 0;
    uint32_t weight = 1;
    std::vector<MemberNode> nodes;
    Algorithms algorithms;
    std::set<NodeId> nodes_ready;
    std::set<uint32_t> ranks_left;
    std::unique_ptr<Timer> deadline;  // for becoming ready; later, for leaving as others have
    std::unique_ptr<Investigation> investigation;
    std::unique_ptr<PlanDirector> planning;

    JobLabel label() const { return {name, user}; }
  };

  void on_join(const Peer& from, const proto::JoinJob& join);
  // Its first rank has come; the others have as long as that one is willing to wait.
  void begin_forming(const JobIdentity& identity, const proto::JoinJob& first);
  void on_ready(const Peer& from, ActiveJob& job);
  void on_fail(const Peer& from, const proto::ControlMessage& message);
  void on_rank_left(const Peer& from, const proto::ControlMessage& message);
  Algorithms algorithms_of(const std::vector<MemberNode>& nodes, const CutSettings& cut) const;
  // The longest of those between this node and the others, in seconds; 0: not known, or not to be
  // looked at, because all runs shall have the same bits.
  double round_trip_to(const std::vector<MemberNode>& nodes) const;
  // Says so where a job of so many nodes cannot have the direct_bytes that are configured.
  void tell_of_cut(const ActiveJob& job) const;
  PlanDirector& planning_of(uint64_t job_key, ActiveJob& job);
  void on_overdue(const proto::OperationOverdue& overdue);
  // Ok, or what the rank says otherwise than those before it.
  static Status check_agreement(const FormingJob& job, const Peer& from,
                                const proto::JoinJob& join);
  void start(FormingJob& forming);
  void fail_forming(const JobIdentity& identity, const Status& reason);
  void fail_contradictory(const FormingJob& job, const Peer& from, uint32_t rank,
                          const Status& reason);
  const Status* find_contradiction(const JobIdentity& identity, uint32_t rank);
  // Ok, or why no further job can be formed for this user.
  Status check_room(uint32_t user) const;
  // Without those who have left the others can do nothing any more: they have so long to go, too.
  void await_leavers(ActiveJob& job);
  void fail_active(uint64_t job_key, const Status& reason);
  // InvalidArgument: too long for a frame, so nobody has got it. All other trouble is the control
  // plane's to tell: who cannot be sent to is lost.
  Status send_to_all(const std::vector<MemberNode>& nodes, ControlBuffer message);
  Status send(const Peer& to, ControlBuffer& message);
  void send(const Peer& to, ControlBuffer&& message) { (void)send(to, message).is_ok(); }
  // The job, if there is one that `from` is a member of.
  ActiveJob* find_member(const Peer& from, uint64_t job_key, const proto::ControlMessage& message);

  Loop& loop_;
  ControlPlane& control_plane_;
  const PlanningOptions planning_;
  const ConfiguredAlgorithms algorithms_;
  const uint32_t leave_timeout_ms_;
  std::unordered_map<JobIdentity, FormingJob> forming_;
  std::unordered_map<uint64_t, ActiveJob> active_;
  std::unordered_map<JobIdentity, Contradiction> contradictions_;
  std::unordered_map<std::string, uint32_t> epochs_;
  RefusedSenders refused_;
  Lifetime lifetime_;  // of what is deferred
};

}  // namespace braid
