// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/lifetime.h"
#include "control/control_plane.h"
#include "coordinator/coordinator.h"
#include "coordinator/refused_senders.h"
#include "ipc/client_connection.h"
#include "ipc/client_server.h"
#include "job/job_names.h"
#include "job/job_table.h"
#include "job/job_teller.h"
#include "job/joining_trainers.h"
#include "job/session.h"
#include "job/submission_turns.h"

namespace braid {

struct JobManagerOptions {
  uint16_t control_port = 7410;      // of coordinators whose port trainers do not name
  bool listens_on_loopback = false;  // this node's address is a loopback address
  std::string why_own_host_only;     // see config/rails.h; empty: other nodes reach this one
  uint32_t jobs_max = 64;
  SessionLimits session;
  CutSettings cut;                  // of this node's engines
  std::string rack;                 // that this node is in; empty: not known
  ConfiguredAlgorithms algorithms;  // of the jobs that this node coordinates
  uint32_t progress_seconds = 60;   // see JobProgress; 0: never
  uint64_t idle_link_ms = 600'000;  // links that no job has used for so long are closed
  PlanningOptions planning;         // of the jobs that this node coordinates
  uint32_t leave_timeout_ms = Coordinator::kLeaveTimeoutMs;  // of the jobs that it coordinates
};

// Where the outside meets the jobs of this node: dispatches what clients and peers say, brings
// trainers and coordinators together, owns sessions and jobs. Control loop only.
class JobManager final : public ClientHandler, public ControlPlaneHandler {
 public:
  static constexpr uint32_t kDrainTimeoutMs = 3'000;
  static constexpr uint32_t kFarewellMs = 250;          // for the news of its end
  static constexpr uint64_t kIdleLinkCheckMs = 30'000;  // or more often, where links go sooner

  JobManager(Loop& loop, const Clock& clock, JobManagerOptions options);
  ~JobManager() override;

  // The control plane and the transport are made with this object as their handler; call before the
  // loop runs.
  void set_services(JobServices services);
  // Who answers questions; nullptr: nobody does.
  void set_teller(JobTeller* teller) { teller_ = teller; }
  // SIGHUP: holds for operations to come.
  void set_operation_timeout_ms(uint32_t timeout_ms) {
    options_.session.operation_timeout_ms = timeout_ms;
  }
  // As well: for trainers and jobs to come.
  void set_arena_bytes_max(uint64_t of_trainer, uint64_t of_results) {
    options_.session.arena_bytes_max = of_trainer;
    services_->result_bytes_max = of_results;
  }
  void set_guard(const GuardOptions& guard) { coordinator_->set_guard(guard); }
  void set_progress_seconds(uint32_t seconds) { options_.progress_seconds = seconds; }  // as well

  // Takes no new trainers, waits a while for those that are there, then fails their jobs. `drained`
  // comes once.
  void drain(std::function<void()> drained);

  void on_link_lost(const Peer& peer, const Status& reason);
  // A link may be open that no job uses: it is closed when it has been idle.
  void watch_idle_links();

  const JobTable& jobs() const { return jobs_; }
  size_t jobs_forming() const;  // that have ranks on this node and do not run yet
  // That were dropped because of who sent them.
  uint64_t messages_refused() const;
  // Once there are services.
  const JobServices& services() const { return *services_; }
  const Coordinator& coordinator() const { return *coordinator_; }
  WorkThread& maker() const { return *maker_; }  // of what would hold up the loop

  void on_client_connected(ClientConnection& connection) override;
  void on_client_message(ClientConnection& connection, const proto::ClientMessage& message,
                         std::vector<Fd> fds) override;
  void on_client_closed(ClientConnection& connection, const Status& reason) override;
  void on_control_message(const Peer& from, const proto::ControlMessage& message) override;
  void on_peer_lost(const Peer& peer, const Status& reason) override;

 private:
  void give_name(ClientConnection& connection, const std::string& wanted);
  Status take_place(Session& session);
  Status admit(ClientConnection& connection, const proto::OpenJob& open, std::vector<Fd> fds);
  bool on_job_message(const Peer& from, const proto::ControlMessage& message);
  void on_operation_ready(const Peer& from, const proto::ControlMessage& message);
  void on_rank_message(const Peer& from, const proto::ControlMessage& message, uint64_t job_key);
  void on_rank_has_left(const Peer& from, const proto::ControlMessage& message);
  void on_job_start(const Peer& from, const proto::ControlMessage& message);
  Result<Membership> check_job_start(const proto::JobStart& start) const;
  void begin_job(const Peer& from, Membership membership, std::vector<Session*> sessions);
  void on_job_failed(const Peer& from, const proto::ControlMessage& message);
  // The job, if there is one that `from` coordinates.
  Job* find_job_of(const Peer& from, uint64_t key, const proto::ControlMessage& message);
  void close_idle_links();
  void finish_drain();

  Loop& loop_;
  const Clock& clock_;
  JobManagerOptions options_;
  std::unique_ptr<JobServices> services_;
  std::unique_ptr<Coordinator> coordinator_;
  SubmissionTurns submission_turns_;                                 // of the sessions
  UserTurns registration_turns_;                                     // as well
  std::unique_ptr<UserWork> user_work_;                              // that would hold up the loop
  std::unordered_map<uint64_t, std::unique_ptr<Session>> sessions_;  // by connection
  std::unique_ptr<JoiningTrainers> joining_;
  JobTable jobs_;
  JobTeller* teller_ = nullptr;
  WorkThread* maker_ = nullptr;
  RefusedSenders refused_;
  // What a job's ranks on this node share, forming or running.
  std::unordered_map<JobIdentity, std::weak_ptr<UserCharge>> places_;
  JobNames names_;
  std::function<void()> on_drained_;
  Timer drain_timer_;
  Timer idle_link_timer_;  // active while there are jobs, or links that no job uses
  bool is_draining_ = false;
  Lifetime lifetime_;  // of callbacks that may come after the end
};

}  // namespace braid
