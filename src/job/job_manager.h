// SPDX-License-Identifier: Apache-2.0
#pragma once

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
#include "job/client_queries.h"
#include "job/explainer.h"
#include "job/job.h"
#include "job/job_timelines.h"
#include "job/job_watch.h"
#include "job/joining_trainers.h"
#include "job/node_queries.h"
#include "job/session.h"
#include "job/submission_turns.h"

namespace braid {

struct JobManagerOptions {
  uint16_t control_port = 7410;      // of every coordinator
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
  // What bounds the jobs whose first rank is on this node, every so often; it outlives the manager.
  FindingsBoard* findings = nullptr;  // none: nobody wants to know
  uint64_t explain_every_ms = 60'000;
  std::string timeline_directory;  // of the timelines of jobs that failed; empty: none is written
};

// Where the outside meets the jobs of this node: dispatches what clients and peers say, brings
// trainers and coordinators together, owns sessions and jobs. Control loop only.
class JobManager final : public ClientHandler, public ControlPlaneHandler {
 public:
  static constexpr uint32_t kDrainTimeoutMs = 3'000;
  static constexpr uint32_t kFarewellMs = 250;          // for the news of its end
  static constexpr uint64_t kIdleLinkCheckMs = 30'000;  // or more often, where links go sooner

  // Gathers what the I/O loops know, then calls back with what makes the daemon's status, as JSON,
  // for who may see the jobs of this user.
  using StatusMaker = std::function<std::string()>;
  using StatusSource = std::function<void(uid_t viewer, std::function<void(StatusMaker)> told)>;

  JobManager(Loop& loop, const Clock& clock, JobManagerOptions options);
  ~JobManager() override;

  // The control plane and the transport are made with this object as their handler; call before the
  // loop runs.
  void set_services(JobServices services);
  void set_status_source(StatusSource source) { status_source_ = std::move(source); }
  // SIGHUP: holds for operations to come.
  void set_operation_timeout_ms(uint32_t timeout_ms) {
    options_.session.operation_timeout_ms = timeout_ms;
  }

  void set_progress_seconds(uint32_t seconds) { options_.progress_seconds = seconds; }  // as well

  // Takes no new trainers, waits a while for those that are there, then fails their jobs. `drained`
  // comes once.
  void drain(std::function<void()> drained);

  void on_link_lost(const Peer& peer, const Status& reason);

  // Why the steps of the job of this name take what they take; where `user` may see several, it is
  // the one with the most planned bytes. `explained` comes once, later. NotFound: there is none.
  Status explain_job(const std::string& name, uid_t user, Explainer::Explained explained);

  // What `user` may see: its own jobs; root and the daemon's own user see all.
  std::vector<DaemonStatus::Job> job_statuses(uid_t user = 0) const;
  uint32_t jobs_hidden_from(uid_t user) const;
  // A JSON array, of all jobs of the name that `user` may see; `job_name` empty: of all of them. It
  // is made on another thread. Comes once, later; with the time that this has taken.
  using PlansTold = std::function<void(Result<std::string> json, uint64_t work_ns)>;
  void tell_plans(const std::string& job_name, uid_t user, PlansTold told);
  // What all nodes of these jobs know of their steps (parse_job_facts reads it). `gathered` comes
  // once, maybe at once. ResourceExhausted: too many have asked.
  Status gather_facts(const std::string& job_name, uid_t user,
                      const std::function<void(std::string json)>& gathered);
  size_t jobs() const { return jobs_.size(); }
  size_t jobs_running() const;
  size_t jobs_forming() const;  // that have ranks on this node and do not run yet
  size_t operations_pending() const;
  // This node's NodeTimeline of the latest steps of one job of this name that `user` may see, 1 to
  // NodeQueries::kStepsMax, as JSON. Nothing: there is no such job, or timelines are off, or too
  // many are asked for. Comes once, later.
  void job_timeline(const std::string& job_name, uid_t user, uint32_t steps,
                    NodeQueries::Told told);
  // That were dropped because of who sent them.
  uint64_t messages_refused() const;

  void on_client_connected(ClientConnection& connection) override;
  void on_client_message(ClientConnection& connection, const proto::ClientMessage& message,
                         std::vector<Fd> fds) override;
  void on_client_closed(ClientConnection& connection, const Status& reason) override;
  void on_control_message(const Peer& from, const proto::ControlMessage& message) override;
  void on_peer_lost(const Peer& peer, const Status& reason) override;

 private:
  // Names and processes of a job are nobody else's business.
  static bool may_see(uid_t user, const Job& job);
  // A JSON array; `job_name` empty: of all jobs that `user` may see.
  std::string describe_jobs(const std::string& job_name, uid_t user,
                            const std::function<std::string(const Job&)>& describe) const;
  // `gathered` gets a JSON array with what all nodes of these jobs know of them; once, maybe at
  // once.
  Status gather(const std::string& job_name, uid_t user, NodeQueries::Question question,
                const std::function<void(std::string json)>& gathered);
  void ask(ClientConnection& asker, ClientQueries::Question question);
  // Begins to make the answer.
  void make_answer(uid_t viewer, const ClientQueries::Question& question,
                   const ClientQueries::Made& made);
  void make_gathered(uid_t viewer, const std::string& job_name, NodeQueries::Question question,
                     const ClientQueries::Made& made);
  void make_explanation(uid_t viewer, const std::string& job_name, const ClientQueries::Made& made);
  ClientQueries::Send json_answer(uid_t viewer, std::shared_ptr<const std::string> json) const;
  ClientQueries::Send refusal(Status reason);
  void tell_facts(uint64_t job_key, NodeQueries::Told told_facts);
  void make_queries();
  NodeFacts facts_of(const Job& job, const std::vector<FlowStatus>& flows) const;
  Explainer::Sources explainer_sources();
  PlanBook::JsonMaker plans_of(const Job& job) const;
  void on_facts_query(const Peer& from, const proto::ControlMessage& message);
  void on_clock_query(const Peer& from, const proto::ControlMessage& message);
  static bool is_of(const Peer& node, const Job& job);
  Status take_place(Session& session);
  void open_job(ClientConnection& connection, const proto::OpenJob& open, std::vector<Fd> fds);
  void on_job_start(const Peer& from, const proto::ControlMessage& message);
  void on_job_failed(const Peer& from, const proto::ControlMessage& message);
  Job* find_job(uint64_t key);
  // The job, if there is one that `from` coordinates.
  Job* find_job_of(const Peer& from, uint64_t key, const proto::ControlMessage& message);
  void end_job(Job& job);
  void remove_closed_jobs();
  void forget_job(uint64_t key);
  void close_idle_links();
  void finish_drain();
  void refuse(ClientConnection& connection, const Status& reason);

  Loop& loop_;
  const Clock& clock_;
  JobManagerOptions options_;
  std::unique_ptr<JobServices> services_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unordered_map<uint64_t, ClientConnection*> clients_;          // by id
  SubmissionTurns submission_turns_;                                 // of the sessions
  UserTurns registration_turns_;                                     // as well
  std::unique_ptr<UserWork> user_work_;                              // that would hold up the loop
  std::unordered_map<uint64_t, std::unique_ptr<Session>> sessions_;  // by connection
  std::unique_ptr<JoiningTrainers> joining_;
  std::unordered_map<uint64_t, std::unique_ptr<Job>> jobs_;  // by key
  std::unique_ptr<Explainer> explainer_;
  std::unique_ptr<JobWatch> watch_;  // none: nobody wants to know
  std::unique_ptr<JobTimelines> timelines_;
  std::unique_ptr<NodeQueries> queries_;
  std::unique_ptr<ClientQueries> answers_;
  WorkThread* maker_ = nullptr;  // of what would hold up the loop
  RefusedSenders refused_;
  // What a job's ranks on this node share, forming or running.
  std::unordered_map<JobIdentity, std::weak_ptr<UserCharge>> places_;
  StatusSource status_source_;
  std::function<void()> on_drained_;
  Timer drain_timer_;
  Timer idle_link_timer_;  // active while there are jobs, or links that no job uses
  bool is_draining_ = false;
  Lifetime lifetime_;  // of callbacks that may come after the end
};

}  // namespace braid
