// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/lifetime.h"
#include "control/control_plane.h"
#include "coordinator/forming_jobs.h"
#include "coordinator/investigation.h"
#include "coordinator/job_algorithms.h"
#include "coordinator/job_leavers.h"
#include "coordinator/plan_director.h"
#include "coordinator/refused_senders.h"
#include "loop/timer.h"
#include "messages/control_messages.h"

namespace braid {

// The jobs whose trainers named this node as their master. FormingJobs gathers their ranks; then
// this fixes epoch, key and ring order (nodes by their lowest rank, those of a rack together),
// tells everyone, and spreads failures and the end. Not on the hot path. Control loop only.
//
//   forming  --all ranks joined-->  starting  --all nodes ready-->  running  --all ranks left-->
//   (forgotten)
//      |                               |                              |
//      +------- a failure, a lost node, a deadline, a contradiction: JobFailed to all ----------->
//      (forgotten)
class Coordinator {
 public:
  static constexpr size_t kEpochsRemembered = 4096;
  static constexpr uint32_t kWorldSizeMax = FormingJobs::kWorldSizeMax;
  static constexpr uint32_t kLeaveTimeoutMs = 43'200'000;

  Coordinator(Loop& loop, ControlPlane& control_plane, PlanningOptions planning = {},
              const ConfiguredAlgorithms& algorithms = {},
              uint32_t leave_timeout_ms = kLeaveTimeoutMs)
      : loop_(loop),
        control_plane_(control_plane),
        planning_(std::move(planning)),
        algorithms_(algorithms),
        leave_timeout_ms_(leave_timeout_ms),
        forming_(loop, control_plane, [this](const FormingJob& job) { start(job); }) {}
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // JoinJob, JobReady, FailJob, RankLeft, LeaversAwaited, OperationOverdue, OperationReport, and
  // what is for a PlanDirector; false for any other message.
  bool on_control_message(const Peer& from, const proto::ControlMessage& message);
  void on_peer_lost(const Peer& peer, const Status& reason);
  // The tuning of a job that this node coordinates; nothing for any other.
  std::optional<std::string> tuning_json(uint64_t job_key) const;
  // What its guard has last read of its codecs; nothing: as above.
  std::optional<std::vector<GuardReading>> guard_readings(uint64_t job_key) const;
  uint64_t messages_refused() const { return refused_.count(); }
  // For jobs to come.
  void set_guard(const GuardOptions& guard) { planning_.guard = guard; }

 private:
  struct ActiveJob {
    JobTerms terms;
    uint64_t key = 0;
    std::vector<MemberNode> nodes;  // in ring order
    Algorithms algorithms;
    std::set<NodeId> nodes_ready;
    JobLeavers leavers;
    std::unique_ptr<Timer> deadline;  // for becoming ready; later, for leaving as others have
    std::unique_ptr<Investigation> investigation;
    std::unique_ptr<PlanDirector> planning;

    // Null: the node has no part in it.
    const MemberNode* find(NodeId node) const;
  };

  void start(const FormingJob& forming);
  void on_ready(const Peer& from, ActiveJob& job);
  void on_fail(const Peer& from, const proto::ControlMessage& message);
  void on_rank_left(const Peer& from, const proto::ControlMessage& message);
  void on_overdue(const proto::OperationOverdue& overdue, ActiveJob& job);
  // The longest of those between this node and the others, in seconds; 0: not known, or not to be
  // looked at, because all runs shall have the same bits.
  double round_trip_to(const std::vector<MemberNode>& nodes) const;
  PlanDirector& planning_of(ActiveJob& job);
  void on_not_ready(uint64_t job_key);
  // Without those who have left the others can do nothing any more: they have so long to go, too.
  void await_leavers(ActiveJob& job);
  void on_not_left(uint64_t job_key);
  void fail_active(uint64_t job_key, const Status& reason);
  // The job, if there is one that `from` is a member of.
  ActiveJob* find_member(const Peer& from, uint64_t job_key, const proto::ControlMessage& message);

  Loop& loop_;
  ControlPlane& control_plane_;
  PlanningOptions planning_;
  const ConfiguredAlgorithms algorithms_;
  const uint32_t leave_timeout_ms_;
  FormingJobs forming_;
  std::unordered_map<uint64_t, ActiveJob> active_;
  std::unordered_map<std::string, uint32_t> epochs_;
  RefusedSenders refused_;
  Lifetime lifetime_;  // of what is deferred
};

}  // namespace braid
