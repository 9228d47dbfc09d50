// SPDX-License-Identifier: Apache-2.0
#include "job/job_manager.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/log.h"
#include "job/client_body.h"
#include "job/open_request.h"
#include "job/rank_messages.h"
#include "messages/rank_message.h"

namespace braid {
namespace {

// What is pinned stays, and fewer than one for each rail there cannot be.
bool may_try_few_flows(const TuningOptions& tuning) {
  return tuning.is_on && tuning.defaults.flows > tuning.rails &&
         std::ranges::find(tuning.pinned, "flows_per_link") == tuning.pinned.end();
}

}  // namespace

JobManager::JobManager(Loop& loop, const Clock& clock, JobManagerOptions options)
    : loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      submission_turns_(loop),
      registration_turns_(loop, clock),
      jobs_(loop,
            [this](uint64_t key) {
              if (teller_ != nullptr) teller_->on_job_over(key);
            }),
      drain_timer_(loop),
      idle_link_timer_(loop) {}

JobManager::~JobManager() {
  lifetime_.end();
  jobs_.clear();  // before the sessions that they speak to
}

void JobManager::set_services(JobServices services) {
  services_ = std::make_unique<JobServices>(std::move(services));
  services_->progress_seconds = &options_.progress_seconds;
  services_->rails = options_.planning.tuning.rails;
  services_->tries_few_flows = may_try_few_flows(options_.planning.tuning);
  maker_ = options_.planning.worker != nullptr ? options_.planning.worker : &services_->worker;
  user_work_ = std::make_unique<UserWork>(loop_, *maker_);
  services_->user_work = user_work_.get();
  // Jobs that end with this one are closed while the map lets go of them.
  services_->on_job_closed = lifetime_.guard([this] { jobs_.remove_closed(); });
  coordinator_ = std::make_unique<Coordinator>(loop_, services_->control_plane, options_.planning,
                                               options_.algorithms, options_.leave_timeout_ms);
  services_->on_job_failed = lifetime_.guard([this](const Job& job, const Status& reason) {
    if (teller_ != nullptr) teller_->on_job_failed(job, reason);
  });
  joining_ = std::make_unique<JoiningTrainers>(
      loop_, clock_, services_->control_plane,
      JoiningTrainers::Options{options_.control_port, options_.listens_on_loopback,
                               options_.why_own_host_only, options_.cut, options_.rack});
}

void JobManager::on_client_connected(ClientConnection& connection) {
  const ClientCredentials& who = connection.credentials();
  BRAID_LOG_DEBUG("client {} ('{}'): process {}, user {}, group {}, library {}", connection.id(),
                  connection.process_name(), who.pid, who.uid, who.gid,
                  connection.library_version());
}

void JobManager::on_client_message(ClientConnection& connection,
                                   const proto::ClientMessage& message, std::vector<Fd> fds) {
  const auto session = sessions_.find(connection.id());
  if (session != sessions_.end()) {
    if (session->second->on_message(message, fds)) return;
  } else if (message.body_type() == proto::ClientBody::OpenJob) {
    const Status admitted = admit(connection, *message.body_as_OpenJob(), std::move(fds));
    if (!admitted) refuse_client(connection, admitted);
    return;
  } else if (message.body_type() == proto::ClientBody::NameQuery) {
    return give_name(connection, message.body_as_NameQuery()->job()->str());
  }
  if (teller_ != nullptr && teller_->on_client_message(connection, message)) return;
  refuse_client(connection, make_status(StatusCode::Protocol, "{} came where it does not belong",
                                        proto::EnumNameClientBody(message.body_type())));
}

Status JobManager::admit(ClientConnection& connection, const proto::OpenJob& open,
                         std::vector<Fd> fds) {
  if (is_draining_) return Status(StatusCode::Unavailable, "this node's braidd is shutting down");
  if (jobs_.size() >= options_.jobs_max) {
    return make_status(StatusCode::ResourceExhausted,
                       "{} jobs run on this node already, and it takes no more: end some",
                       jobs_.size());
  }
  auto session = Session::create(loop_, services_->worker, submission_turns_,
                                 {*user_work_, registration_turns_}, connection, open,
                                 std::move(fds), options_.session);
  if (!session) return session.status();
  Session& added = **session;
  BRAID_RETURN_IF_ERROR(joining_->check_user(added));
  BRAID_RETURN_IF_ERROR(take_place(added));
  sessions_[connection.id()] = std::move(session).value();
  const ClientCredentials& who = connection.credentials();
  BRAID_LOG_INFO(added.log_fields(),
                 "job '{}': rank {} of {} is here: process {}, user {}; coordinator {}",
                 added.job_name(), added.rank(), added.world_size(), who.pid, who.uid,
                 added.request().master_address);
  joining_->add(added);
  return Status::ok();
}

void JobManager::give_name(ClientConnection& connection, const std::string& wanted) {
  if (const Status valid = check_job_name(wanted); !valid) return refuse_client(connection, valid);
  std::unordered_set<std::string> taken;
  for (const auto& [identity, place] : places_) {
    if (!place.expired()) taken.insert(identity.name);
  }
  const std::string name = names_.give(wanted, taken, clock_.now_ms());
  flatbuffers::FlatBufferBuilder builder;
  send_body(connection, builder, proto::CreateNameReplyDirect(builder, name.c_str()));
}

Status JobManager::take_place(Session& session) {
  std::erase_if(places_, [](const auto& place) { return place.second.expired(); });
  const auto position = places_.find(session.request().identity);
  std::shared_ptr<UserCharge> place;
  if (position != places_.end()) place = position->second.lock();
  if (place == nullptr) {
    place = std::make_shared<UserCharge>(options_.session.quotas, session.credentials().uid,
                                         UserResource::Jobs);
    BRAID_RETURN_IF_ERROR(place->set(1));
    places_[session.request().identity] = place;
    names_.came(session.job_name());
  }
  session.set_place(std::move(place));
  return Status::ok();
}

void JobManager::on_client_closed(ClientConnection& connection, const Status& reason) {
  const auto position = sessions_.find(connection.id());
  if (position == sessions_.end()) return;
  // The session goes with the connection that it holds on to.
  const std::unique_ptr<Session> session = std::move(position->second);
  sessions_.erase(position);
  joining_->remove(*session, reason);
  if (connection.has_gone()) session->on_process_gone();
  if (session->job() != nullptr && session->is_leaving()) {
    session->job()->on_session_left(*session);
  } else if (session->job() != nullptr) {
    session->job()->on_session_lost(*session, reason);
  }
  jobs_.remove_closed();
  if (is_draining_ && sessions_.empty()) finish_drain();
}

void JobManager::on_control_message(const Peer& from, const proto::ControlMessage& message) {
  if (message.body() == nullptr) return;
  // Each operation among several nodes has some of these: nobody else is asked first.
  if (message.body_type() == proto::ControlBody::OperationReady) {
    on_operation_ready(from, message);
  } else if (uint64_t job_key = 0; is_of_rank_message(message, job_key)) {
    on_rank_message(from, message, job_key);
  } else if (!coordinator_->on_control_message(from, message) &&
             !services_->transport.on_control_message(from, message) &&
             !on_job_message(from, message) &&
             (teller_ == nullptr || !teller_->on_control_message(from, message))) {
    BRAID_LOG_WARN(LogFields{.peer = from.name},
                   "node '{}' sent a control message of an unknown kind ({})", from.name,
                   static_cast<int>(message.body_type()));
  }
  jobs_.remove_closed();
}

void JobManager::on_operation_ready(const Peer& from, const proto::ControlMessage& message) {
  const proto::OperationReady& ready = *message.body_as_OperationReady();
  Job* job = jobs_.find(ready.job_key());
  if (job == nullptr) return;
  if (!job->has_member(from.id)) return refused_.refuse(from, message.body_type(), job->label());
  job->on_node_ready(from, ready);
}

void JobManager::on_rank_message(const Peer& from, const proto::ControlMessage& message,
                                 uint64_t job_key) {
  Job* job = jobs_.find(job_key);
  if (job == nullptr) return;
  if (!job->has_member(from.id)) return refused_.refuse(from, message.body_type(), job->label());
  take_rank_message(*job, from, message);
}

// From the coordinator of a job. False: it is something else.
bool JobManager::on_job_message(const Peer& from, const proto::ControlMessage& message) {
  switch (message.body_type()) {
    case proto::ControlBody::JobStart:
      on_job_start(from, message);
      return true;
    case proto::ControlBody::JobGo:
      if (Job* job = find_job_of(from, message.body_as_JobGo()->job_key(), message)) job->on_go();
      return true;
    case proto::ControlBody::JobFailed:
      on_job_failed(from, message);
      return true;
    case proto::ControlBody::JobEnded:
      if (Job* job = find_job_of(from, message.body_as_JobEnded()->job_key(), message)) {
        job->on_ended();
        jobs_.remove(job->key());
      }
      return true;
    case proto::ControlBody::PlanProposal:
      if (Job* job = find_job_of(from, message.body_as_PlanProposal()->job_key(), message))
        job->on_plan_proposal(*message.body_as_PlanProposal());
      return true;
    case proto::ControlBody::PlanVerdict:
      if (Job* job = find_job_of(from, message.body_as_PlanVerdict()->job_key(), message))
        job->on_plan_verdict(*message.body_as_PlanVerdict());
      return true;
    case proto::ControlBody::DuelSwitch:
      if (Job* job = find_job_of(from, message.body_as_DuelSwitch()->job_key(), message))
        job->on_duel_switch(*message.body_as_DuelSwitch());
      return true;
    case proto::ControlBody::RankHasLeft:
      on_rank_has_left(from, message);
      return true;
    case proto::ControlBody::OperationQuery:
      if (Job* job = find_job_of(from, message.body_as_OperationQuery()->job_key(), message))
        job->on_query(*message.body_as_OperationQuery());
      return true;
    default:
      return false;
  }
}

void JobManager::on_rank_has_left(const Peer& from, const proto::ControlMessage& message) {
  const proto::RankLeft& left = *message.body_as_RankHasLeft()->left();
  Job* job = find_job_of(from, left.job_key(), message);
  if (job != nullptr && job->is_running())
    job->check(job->messages().on_other_left(left_rank_of(left)));
}

void JobManager::on_job_start(const Peer& from, const proto::ControlMessage& message) {
  const proto::JobStart& start = *message.body_as_JobStart();
  // Keys are random: one that is taken was chosen.
  if (const Job* taken = jobs_.find(start.job_key()))
    return refused_.refuse(from, message.body_type(), taken->label());
  auto membership = check_job_start(start);
  const auto owner = parse_job_owner(start.owner());
  if (const Status& valid = membership ? owner.status() : membership.status(); !valid) {
    return BRAID_LOG_ERROR(LogFields{.peer = from.name}, "node '{}': {}", from.name,
                           valid.message());
  }
  std::vector<Session*> sessions =
      joining_->take(from.id, {membership->name, *owner}, membership->local_ranks);
  if (sessions.size() == membership->local_ranks.size())
    return begin_job(from, std::move(membership).value(), std::move(sessions));
  // A trainer has gone while this message was on its way.
  const Status reason = make_status(StatusCode::JobFailed, "job '{}': a rank on node '{}' has gone",
                                    membership->name, services_->control_plane.self().name);
  auto answer = make_fail_job(membership->key, membership->name, reason);
  (void)services_->control_plane.send(from.id, answer);
  for (Session* session : sessions) session->fail(reason);
}

Result<Membership> JobManager::check_job_start(const proto::JobStart& start) const {
  auto membership =
      parse_job_start(start, services_->control_plane.self().id, options_.cut.unit_bytes);
  // No daemon of this version asks for more.
  if (membership && membership->ring->direct_bytes > options_.cut.chunk_bytes) {
    return make_status(StatusCode::Protocol,
                       "job '{}': direct_bytes {} is more than a chunk, {} bytes", membership->name,
                       membership->ring->direct_bytes, options_.cut.chunk_bytes);
  }
  return membership;
}

void JobManager::begin_job(const Peer& from, Membership membership,
                           std::vector<Session*> sessions) {
  const Session& first = *sessions.front();
  if (membership.nodes.size() > 1 && first.rank() == 0 && !first.request().has_token) {
    BRAID_LOG_WARN(
        first.log_fields(),
        "job '{}' has no token and is on {} nodes: any process of user {} on any node of the "
        "cluster could have been one of its ranks; give its trainers one with BRAID_JOB_TOKEN",
        membership.name, membership.nodes.size(), first.credentials().uid);
  }
  Job& job = jobs_.add(
      std::make_unique<Job>(*services_, std::move(membership), std::move(sessions), from));
  job.begin();
  if (teller_ != nullptr) teller_->on_job_began(job);
  watch_idle_links();
}

void JobManager::on_job_failed(const Peer& from, const proto::ControlMessage& message) {
  const proto::JobFailed& failed = *message.body_as_JobFailed();
  const Status reason = failure_status(failed.code(), failed.reason());
  if (failed.job_key() != 0) {
    if (Job* job = find_job_of(from, failed.job_key(), message)) job->on_failed(reason);
    return;
  }
  const auto owner = parse_job_owner(failed.owner());
  if (!owner)
    return BRAID_LOG_ERROR(LogFields{.peer = from.name}, "node '{}': {}", from.name,
                           owner.status().message());
  joining_->fail(from.id, {failed.name()->str(), *owner}, reason);
}

void JobManager::on_peer_lost(const Peer& peer, const Status& reason) {
  BRAID_LOG_WARN(LogFields{.peer = peer.name}, "lost node '{}' ({}): {}", peer.name, peer.address,
                 reason.message());
  // As a coordinator first: its verdict reaches the jobs here through the loop, with the same words
  // for all nodes. The links last: a job that begins must not take their end for its own.
  coordinator_->on_peer_lost(peer, reason);
  for (const auto& [key, job] : jobs_.all()) job->on_peer_lost(peer, reason);
  services_->transport.on_peer_lost(peer.id);
  joining_->on_peer_lost(peer, reason);
  jobs_.remove_closed();
}

void JobManager::on_link_lost(const Peer& peer, const Status& reason) {
  for (const auto& [key, job] : jobs_.all()) job->on_link_lost(peer, reason);
  jobs_.remove_closed();
}

Job* JobManager::find_job_of(const Peer& from, uint64_t key, const proto::ControlMessage& message) {
  Job* job = jobs_.find(key);
  if (job == nullptr || job->coordinator().id == from.id) return job;
  refused_.refuse(from, message.body_type(), job->label());
  return nullptr;
}

void JobManager::watch_idle_links() {
  if (idle_link_timer_.is_active()) return;
  const auto period_ms = std::clamp<uint64_t>(options_.idle_link_ms / 4, 1, kIdleLinkCheckMs);
  idle_link_timer_.start_repeating(period_ms, [this] { close_idle_links(); });
}

void JobManager::close_idle_links() {
  const bool are_left =
      services_->transport.close_idle_links(jobs_.targets(), options_.idle_link_ms);
  if (!are_left && jobs_.size() == 0) idle_link_timer_.stop();
}

void JobManager::drain(std::function<void()> drained) {
  if (is_draining_) return;
  is_draining_ = true;
  on_drained_ = std::move(drained);
  if (sessions_.empty()) return finish_drain();
  BRAID_LOG_INFO("draining: {} trainers are still here, waiting {} ms for them", sessions_.size(),
                 kDrainTimeoutMs);
  drain_timer_.start_once(kDrainTimeoutMs, [this] {
    const Status reason = make_status(StatusCode::JobFailed, "braidd on node '{}' is shutting down",
                                      services_->control_plane.self().name);
    for (const auto& [key, job] : jobs_.all())
      job->fail(reason.with_context(fmt::format("job '{}'", job->name())));
    joining_->fail_all(reason);
    drain_timer_.start_once(kFarewellMs, [this] { finish_drain(); });
  });
}

void JobManager::finish_drain() {
  if (!on_drained_) return;
  drain_timer_.stop();
  loop_.defer(std::exchange(on_drained_, nullptr));
}

size_t JobManager::jobs_forming() const {
  return jobs_.starting() + (joining_ == nullptr ? 0 : joining_->jobs());
}

uint64_t JobManager::messages_refused() const {
  return refused_.count() + (coordinator_ == nullptr ? 0 : coordinator_->messages_refused());
}

}  // namespace braid
