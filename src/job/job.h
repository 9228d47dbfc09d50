// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "control/control_plane.h"
#include "coordinator/membership.h"
#include "job/arena_memory.h"
#include "job/job_duels.h"
#include "job/job_flows.h"
#include "job/job_polling.h"
#include "job/job_progress.h"
#include "job/job_services.h"
#include "job/job_tables.h"
#include "job/look_pace.h"
#include "job/memory_rounds.h"
#include "job/node_reach.h"
#include "job/registration.h"
#include "job/session.h"
#include "job/tensor_names.h"
#include "loop/timer.h"
#include "loop/work_thread.h"
#include "messages/control_messages.h"
#include "net/transport.h"
#include "operation/engine_pool.h"
#include "operation/job_board.h"
#include "operation/job_counters.h"
#include "operation/operation_table.h"
#include "planning/plan_book.h"
#include "planning/plan_observer.h"
#include "planning/set_memory.h"

namespace braid {

// A job's membership on this node, from JobStart on: its local trainers, its place in the ring, its
// operations.
//
//   preparing  --neighbours reached, links open: JobReady-->
//   waiting    --JobGo: sessions are opened-->
//   running    --JobEnded-->                (closed, destroyed by its owner)
//      any     --a failure here or JobFailed--> (closed: sessions were told)
//
// Control loop only.
class Job final {
 public:
  static constexpr uint32_t kDeadlineCheckPeriodMs = 100;
  // While operations are under way its metrics learn so often, and at the end, what memory it has.
  static constexpr uint32_t kDeadlineChecksPerLook = 10;
  // The coordinator has this long to explain a missed deadline before the node fails the job by
  // itself.
  static constexpr uint32_t kVerdictTimeoutMs = 3000;

  // `sessions`: the trainers of this node that asked for the job, ascending by rank; `start` was
  // checked (see parse_job_start).
  Job(JobServices services, Membership membership, std::vector<Session*> sessions,
      Peer coordinator);
  ~Job();

  void begin();
  void on_go();
  // The coordinator's verdict. The sessions hear of it; the job is closed then.
  void on_failed(const Status& reason) { close(reason); }
  // All ranks have left: it is destroyed next.
  void on_ended() { end_progress("is over"); }
  void on_node_ready(const Peer& from, const proto::OperationReady& ready);
  void on_query(const proto::OperationQuery& query);
  void on_plan_proposal(const proto::PlanProposal& proposal);
  void on_plan_verdict(const proto::PlanVerdict& verdict);
  void on_duel_switch(const proto::DuelSwitch& message) {
    if (is_running()) duels_.on_switch(message);
  }
  void on_peer_lost(const Peer& peer, const Status& reason);
  // No data can be sent to the peer any more, although its control connection is up.
  void on_link_lost(const Peer& peer, const Status& reason);

  // From a session of this job.
  // `plan_set`: what the tensor is planned with; 0: it is not planned.
  void on_submit(Submission submission, uint64_t plan_set);
  void on_message_end(MessageEnd end, proto::SubmitKind kind);
  OperationTable& operation_table() { return *operations_; }
  MessageTable& messages() const { return *messages_; }  // where there are operations
  // Its trainers' registrations go one after the other, and in pieces: all of the tensors are
  // checked, then the planned ones, if there are any, are added, then all are added. So do those
  // that are taken out again.
  RegistrationQueue& registrations() { return registrations_; }
  Status check_registered(const Session& session, std::span<const Tensor> tensors) const;
  PlanBook& plans() { return plans_; }
  void add_registered(std::span<const Tensor> tensors) { names_->add(tensors); }
  void remove_registered(std::span<const Tensor> tensors);
  void on_memory_registered(std::shared_ptr<SharedMemory> arena) {
    memory_->hold(std::move(arena));
    arena_memory_.look();
  }
  void on_session_left(Session& session);
  // It died or broke the protocol.
  void on_session_lost(Session& session, const Status& reason);

  // Ends the job on all nodes.
  void fail(const Status& reason);
  // Does so unless all is well.
  void check(const Status& status);

  // In the ring, of another node of the job; nothing: there are no operations with it.
  std::optional<uint32_t> place_of_other(const Peer& peer) const;
  bool is_running() const { return state_ == State::Running; }
  bool is_starting() const { return state_ == State::Preparing || state_ == State::Waiting; }
  bool is_closed() const { return state_ == State::Closed; }
  uid_t user() const { return user_; }  // of its ranks on this node
  const std::string& name() const { return membership_.name; }
  JobLabel label() const { return {name(), user_}; }
  uint64_t key() const { return membership_.key; }
  const Membership& membership() const { return membership_; }
  // The only node whose verdicts and plans count.
  const Peer& coordinator() const { return coordinator_; }
  bool has_member(NodeId node) const { return place_of(node) < membership_.ring->members.size(); }
  uint32_t world_size() const { return membership_.ring->world_size; }
  // What it tells of itself is made of these.
  const PlanBook& plans() const { return plans_; }
  const JobNumbers& numbers() const { return *numbers_; }
  PlacedWork& work() { return numbers_->work; }
  const OperationTable* operations() const { return operations_.get(); }  // nullptr: not yet
  const ResultMemory& results() const { return *memory_; }  // where there are operations
  const std::vector<Session*>& sessions() const { return sessions_; }
  const std::shared_ptr<TensorNames>& names() const { return names_; }
  const ArenaMemory& arena_memory() const { return arena_memory_; }
  void look_at_arenas() {
    if (!is_closed()) arena_memory_.look();
  }
  const JobDuels& duels() const { return duels_; }
  uint64_t planned_bytes() const { return numbers_->planned_bytes.get(); }  // of the largest set
  size_t operations_pending() const {
    return operations_ == nullptr ? 0 : operations_->pending() + messages_->unfinished();
  }

 private:
  enum class State : uint8_t { Preparing, Waiting, Running, Closed };

  size_t place_of(NodeId node) const;  // in the ring; its size: it is no member
  void watch_deadlines();
  Status submit_planned(Submission& submission, uint64_t plan_set);
  // There is no room for the parts of small all-reduces that came from there; `room` ok: they are
  // more than an honest node can have in flight.
  void on_overrun(NodeId from, const Status& room);

  void reach();
  void on_reached(const Status& reached);
  void report_ready();
  void look_at_memory();
  void check_deadlines();
  void end_progress(std::string_view how);
  void forget(const Session& session);
  void let_go_of_leavers();
  // The coordinator is to say why the job ends; else it is for `reason`.
  void await_verdict(const Status& reason);
  void close(const Status& reason);

  JobServices services_;
  Membership membership_;
  std::shared_ptr<TensorNames> names_ = std::make_shared<TensorNames>();
  const Peer coordinator_;
  std::vector<Session*> sessions_;  // by local rank; nullptr once it has gone
  const uid_t user_;
  const std::shared_ptr<JobNumbers> numbers_;
  std::shared_ptr<ResultMemory> memory_;
  std::unique_ptr<OperationTable> operations_;
  std::unique_ptr<MessageTable> messages_;
  RegistrationQueue registrations_;
  JobFlows flows_;
  const SetMemory set_memory_;
  PlanBook plans_;
  PlanObserver observer_;
  NodeReach reach_;
  ArenaMemory arena_memory_;
  JobPolling polling_;
  JobDuels duels_;
  std::optional<JobProgress> progress_;  // once it runs, on the node of rank 0
  // Local ranks that have left while submissions are kept back, and why in their own words.
  std::vector<std::pair<uint32_t, std::string>> leavers_;
  State state_ = State::Preparing;
  Timer deadline_timer_;
  uint32_t deadline_checks_ = 0;
  LookPace look_pace_;
  Timer verdict_timer_;
  MemoryRounds memory_rounds_;
  Lifetime lifetime_;  // of callbacks that may come after the end
};

}  // namespace braid
