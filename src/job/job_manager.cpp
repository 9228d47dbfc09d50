// SPDX-License-Identifier: Apache-2.0
#include "job/job_manager.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/printable.h"

namespace braid {
namespace {

constexpr size_t kLeaveReasonBytesMax = 400;

// A trainer's own words, for messages and logs.
std::string text_of(const flatbuffers::String* text) {
  return text == nullptr ? std::string() : printable(text->string_view(), kLeaveReasonBytesMax);
}

}  // namespace

JobManager::JobManager(Loop& loop, const Clock& clock, JobManagerOptions options)
    : loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      submission_turns_(loop),
      registration_turns_(loop, clock),
      drain_timer_(loop),
      idle_link_timer_(loop) {}

JobManager::~JobManager() {
  lifetime_.end();
  jobs_.clear();  // before the sessions that they speak to
}

void JobManager::set_services(JobServices services) {
  services_ = std::make_unique<JobServices>(std::move(services));
  services_->progress_seconds = &options_.progress_seconds;
  maker_ = options_.planning.worker != nullptr ? options_.planning.worker : &services_->worker;
  user_work_ = std::make_unique<UserWork>(loop_, *maker_);
  services_->user_work = user_work_.get();
  // Jobs that end with this one are closed while the map lets go of them.
  services_->on_job_closed = lifetime_.guard([this] { remove_closed_jobs(); });
  coordinator_ = std::make_unique<Coordinator>(loop_, services_->control_plane, options_.planning,
                                               options_.algorithms, options_.leave_timeout_ms);
  services_->on_job_failed = lifetime_.guard(
      [this](const Job& job, const Status& reason) { timelines_->write_failed(job, reason); });
  make_queries();
  joining_ = std::make_unique<JoiningTrainers>(
      loop_, clock_, services_->control_plane,
      JoiningTrainers::Options{options_.control_port, options_.listens_on_loopback,
                               options_.why_own_host_only, options_.cut, options_.rack});
}

void JobManager::on_client_connected(ClientConnection& connection) {
  clients_[connection.id()] = &connection;
  const ClientCredentials& who = connection.credentials();
  BRAID_LOG_DEBUG("client {} ('{}'): process {}, user {}, group {}, library {}", connection.id(),
                  connection.process_name(), who.pid, who.uid, who.gid,
                  connection.library_version());
}

void JobManager::on_client_message(ClientConnection& connection,
                                   const proto::ClientMessage& message, std::vector<Fd> fds) {
  using Kind = ClientQueries::Kind;
  const auto position = sessions_.find(connection.id());
  Session* session = position == sessions_.end() ? nullptr : position->second.get();
  switch (message.body_type()) {
    case proto::ClientBody::OpenJob:
      if (session == nullptr)
        return open_job(connection, *message.body_as_OpenJob(), std::move(fds));
      break;
    case proto::ClientBody::RegisterTensors:
      if (session == nullptr || session->is_joining() || session->is_leaving()) break;
      return session->register_tensors(*message.body_as_RegisterTensors(),
                                       connection.message_bytes());
    case proto::ClientBody::UnregisterTensors:
      if (session == nullptr || session->is_joining() || session->is_leaving()) break;
      return session->unregister_tensors(*message.body_as_UnregisterTensors());
    case proto::ClientBody::RegisterMemory:
      if (session == nullptr || session->is_joining() || session->is_leaving()) break;
      return session->register_memory(message.body_as_RegisterMemory()->bytes(),
                                      std::move(fds.front()));
    case proto::ClientBody::LeaveJob:
      if (session == nullptr || session->is_joining()) break;
      if (session->job() == nullptr) return session->leave();
      return session->begin_leaving(text_of(message.body_as_LeaveJob()->reason()));
    case proto::ClientBody::StatusQuery:
      return ask(connection, {Kind::Status, ""});
    case proto::ClientBody::PlanQuery:
      return ask(connection, {Kind::Plan, message.body_as_PlanQuery()->job()->str()});
    case proto::ClientBody::TuneQuery:
      return ask(connection, {Kind::Tune, message.body_as_TuneQuery()->job()->str()});
    case proto::ClientBody::ExplainQuery:
      return ask(connection, {Kind::Facts, message.body_as_ExplainQuery()->job()->str()});
    case proto::ClientBody::TimelineQuery: {
      const proto::TimelineQuery& query = *message.body_as_TimelineQuery();
      return ask(connection, {Kind::Timeline, query.job()->str(),
                              std::clamp(query.steps(), 1U, NodeQueries::kStepsMax)});
    }
    case proto::ClientBody::ExplanationQuery:
      return ask(connection, {Kind::Explanation, message.body_as_ExplanationQuery()->job()->str()});
    default:
      break;
  }
  refuse(connection, make_status(StatusCode::Protocol, "{} came where it does not belong",
                                 proto::EnumNameClientBody(message.body_type())));
}

void JobManager::open_job(ClientConnection& connection, const proto::OpenJob& open,
                          std::vector<Fd> fds) {
  if (is_draining_) {
    return refuse(connection,
                  Status(StatusCode::Unavailable, "this node's braidd is shutting down"));
  }
  if (jobs_.size() >= options_.jobs_max) {
    return refuse(connection,
                  make_status(StatusCode::ResourceExhausted,
                              "{} jobs run on this node already; client.jobs_max allows no more",
                              jobs_.size()));
  }
  auto session = Session::create(loop_, services_->worker, submission_turns_,
                                 {*user_work_, registration_turns_}, connection, open,
                                 std::move(fds), options_.session);
  if (!session) return refuse(connection, session.status());
  Session& added = **session;
  if (const Status allowed = joining_->check_user(added); !allowed)
    return refuse(connection, allowed);
  if (const Status room = take_place(added); !room) return refuse(connection, room);
  sessions_[connection.id()] = std::move(session).value();
  const ClientCredentials& who = connection.credentials();
  BRAID_LOG_INFO(
      added.log_fields(), "job '{}': rank {} of {} is here: process {}, user {}; coordinator {}",
      added.job_name(), added.rank(), added.world_size(), who.pid, who.uid, added.master_address());
  joining_->add(added);
}

Status JobManager::take_place(Session& session) {
  std::erase_if(places_, [](const auto& place) { return place.second.expired(); });
  const auto position = places_.find(session.identity());
  std::shared_ptr<UserCharge> place;
  if (position != places_.end()) place = position->second.lock();
  if (place == nullptr) {
    place = std::make_shared<UserCharge>(options_.session.quotas, session.credentials().uid,
                                         UserResource::Jobs);
    BRAID_RETURN_IF_ERROR(place->set(1));
    places_[session.identity()] = place;
  }
  session.set_place(std::move(place));
  return Status::ok();
}

void JobManager::on_client_closed(ClientConnection& connection, const Status& reason) {
  clients_.erase(connection.id());
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
  remove_closed_jobs();
  if (is_draining_ && sessions_.empty()) finish_drain();
}

void JobManager::on_control_message(const Peer& from, const proto::ControlMessage& message) {
  if (message.body() == nullptr) return;
  if (coordinator_->on_control_message(from, message)) return;
  if (services_->transport.on_control_message(from, message)) return;
  switch (message.body_type()) {
    case proto::ControlBody::JobStart:
      on_job_start(from, message);
      break;
    case proto::ControlBody::JobGo:
      if (Job* job = find_job_of(from, message.body_as_JobGo()->job_key(), message)) job->on_go();
      break;
    case proto::ControlBody::JobFailed:
      on_job_failed(from, message);
      break;
    case proto::ControlBody::JobEnded:
      if (Job* job = find_job_of(from, message.body_as_JobEnded()->job_key(), message))
        end_job(*job);
      break;
    case proto::ControlBody::OperationReady:
      if (Job* job = find_job(message.body_as_OperationReady()->job_key())) {
        if (!job->has_member(from.id))
          refused_.refuse(from, message.body_type(), job->label());
        else
          job->on_node_ready(from, *message.body_as_OperationReady());
      }
      break;
    case proto::ControlBody::PlanProposal:
      if (Job* job = find_job_of(from, message.body_as_PlanProposal()->job_key(), message))
        job->on_plan_proposal(*message.body_as_PlanProposal());
      break;
    case proto::ControlBody::PlanVerdict:
      if (Job* job = find_job_of(from, message.body_as_PlanVerdict()->job_key(), message))
        job->on_plan_verdict(*message.body_as_PlanVerdict());
      break;
    case proto::ControlBody::OperationQuery:
      if (Job* job = find_job_of(from, message.body_as_OperationQuery()->job_key(), message))
        job->on_query(*message.body_as_OperationQuery());
      break;
    case proto::ControlBody::FactsQuery:
      on_facts_query(from, message);
      break;
    case proto::ControlBody::FactsReply:
      queries_->on_reply(from, *message.body_as_FactsReply());
      break;
    case proto::ControlBody::ClockQuery:
      on_clock_query(from, message);
      break;
    case proto::ControlBody::ClockReply:
      queries_->on_clock_reply(from, *message.body_as_ClockReply());
      break;
    default:
      BRAID_LOG_WARN(LogFields{.peer = from.name},
                     "node '{}' sent a control message of an unknown kind ({})", from.name,
                     static_cast<int>(message.body_type()));
  }
  remove_closed_jobs();
}

void JobManager::on_job_start(const Peer& from, const proto::ControlMessage& message) {
  auto membership = parse_job_start(*message.body_as_JobStart(), services_->control_plane.self().id,
                                    options_.cut.unit_bytes);
  if (!membership)
    return BRAID_LOG_ERROR(LogFields{.peer = from.name}, "node '{}': {}", from.name,
                           membership.status().message());
  // Keys are random: one that is taken was chosen.
  if (const Job* taken = find_job(membership->key))
    return refused_.refuse(from, message.body_type(), taken->label());
  // No daemon of this version asks for more.
  if (membership->ring->direct_bytes > options_.cut.chunk_bytes) {
    return BRAID_LOG_ERROR(LogFields{.peer = from.name},
                           "node '{}': job '{}': direct_bytes {} is more than a chunk, {} bytes",
                           from.name, membership->name, membership->ring->direct_bytes,
                           options_.cut.chunk_bytes);
  }
  const auto owner = parse_job_owner(message.body_as_JobStart()->owner());
  if (!owner)
    return BRAID_LOG_ERROR(LogFields{.peer = from.name}, "node '{}': {}", from.name,
                           owner.status().message());
  std::vector<Session*> sessions =
      joining_->take(from.id, {membership->name, *owner}, membership->local_ranks);
  if (sessions.size() != membership->local_ranks.size()) {
    // A trainer has gone while this message was on its way.
    const Status reason =
        make_status(StatusCode::JobFailed, "job '{}': a rank on node '{}' has gone",
                    membership->name, services_->control_plane.self().name);
    auto answer = make_fail_job(membership->key, membership->name, reason);
    (void)services_->control_plane.send(from.id, answer);
    for (Session* session : sessions) session->fail(reason);
    return;
  }
  if (membership->nodes.size() > 1 && sessions.front()->rank() == 0 &&
      !sessions.front()->has_token()) {
    BRAID_LOG_WARN(
        LogFields{.job = {membership->name, sessions.front()->credentials().uid}},
        "job '{}' has no token and is on {} nodes: any process of user {} on any node of the "
        "cluster could have been one of its ranks; give its trainers one with BRAID_JOB_TOKEN",
        membership->name, membership->nodes.size(), sessions.front()->credentials().uid);
  }
  const uint64_t key = membership->key;
  auto job =
      std::make_unique<Job>(*services_, std::move(membership).value(), std::move(sessions), from);
  Job& added = *job;
  jobs_[key] = std::move(job);
  added.begin();
  const bool looks_after_it =
      added.membership().nodes.front().peer.id == services_->control_plane.self().id;
  if (watch_ != nullptr && looks_after_it) watch_->add(key);
  if (!idle_link_timer_.is_active()) {
    const auto period_ms = std::clamp<uint64_t>(options_.idle_link_ms / 4, 1, kIdleLinkCheckMs);
    idle_link_timer_.start_repeating(period_ms, [this] { close_idle_links(); });
  }
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
  for (auto& [key, job] : jobs_) job->on_peer_lost(peer, reason);
  services_->transport.on_peer_lost(peer.id);
  joining_->on_peer_lost(peer, reason);
  remove_closed_jobs();
}

void JobManager::on_link_lost(const Peer& peer, const Status& reason) {
  for (auto& [key, job] : jobs_) job->on_link_lost(peer, reason);
  remove_closed_jobs();
}

Job* JobManager::find_job(uint64_t key) {
  const auto position = jobs_.find(key);
  return position == jobs_.end() ? nullptr : position->second.get();
}

Job* JobManager::find_job_of(const Peer& from, uint64_t key, const proto::ControlMessage& message) {
  Job* job = find_job(key);
  if (job == nullptr || job->coordinator().id == from.id) return job;
  refused_.refuse(from, message.body_type(), job->label());
  return nullptr;
}

void JobManager::remove_closed_jobs() {
  // Deferred: a job may be in the middle of the call that closed it.
  const bool has_closed = std::any_of(jobs_.begin(), jobs_.end(),
                                      [](const auto& job) { return job.second->is_closed(); });
  if (!has_closed) return;
  loop_.defer(lifetime_.guard([this] {
    std::vector<uint64_t> closed;
    for (const auto& [key, job] : jobs_) {
      if (job->is_closed()) closed.push_back(key);
    }
    for (const uint64_t key : closed) forget_job(key);
  }));
}

void JobManager::forget_job(uint64_t key) {
  jobs_.erase(key);
  if (watch_ != nullptr) watch_->remove(key);
}

void JobManager::end_job(Job& job) {
  job.on_ended();
  forget_job(job.key());
}

void JobManager::close_idle_links() {
  std::unordered_set<NodeId> used;
  for (const auto& [key, job] : jobs_) {
    for (const MemberNode* node : job->membership().targets()) used.insert(node->peer.id);
  }
  if (!services_->transport.close_idle_links(used, options_.idle_link_ms) && jobs_.empty())
    idle_link_timer_.stop();
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
    for (auto& [key, job] : jobs_)
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

size_t JobManager::jobs_running() const {
  return static_cast<size_t>(
      std::ranges::count_if(jobs_, [](const auto& job) { return job.second->is_running(); }));
}

size_t JobManager::jobs_forming() const {
  const auto starting =
      std::ranges::count_if(jobs_, [](const auto& job) { return job.second->is_starting(); });
  return static_cast<size_t>(starting) + (joining_ == nullptr ? 0 : joining_->jobs());
}

size_t JobManager::operations_pending() const {
  size_t pending = 0;
  for (const auto& [key, job] : jobs_) pending += job->operations_pending();
  return pending;
}

uint64_t JobManager::messages_refused() const {
  return refused_.count() + (coordinator_ == nullptr ? 0 : coordinator_->messages_refused());
}

std::vector<DaemonStatus::Job> JobManager::job_statuses(uid_t user) const {
  std::vector<DaemonStatus::Job> statuses;
  for (const auto& [key, job] : jobs_) {
    if (may_see(user, *job)) statuses.push_back(job->status());
  }
  return statuses;
}

uint32_t JobManager::jobs_hidden_from(uid_t user) const {
  return static_cast<uint32_t>(std::count_if(
      jobs_.begin(), jobs_.end(), [user](const auto& job) { return !may_see(user, *job.second); }));
}

void JobManager::refuse(ClientConnection& connection, const Status& reason) {
  const ClientCredentials& who = connection.credentials();
  BRAID_LOG_WARN(LogFields{.user = who.uid}, "client {} (process {}, user {}) refused: {}",
                 connection.id(), who.pid, who.uid, reason.message());
  flatbuffers::FlatBufferBuilder builder;
  const auto text = builder.CreateString(reason.message());
  const auto body = proto::CreateFailure(builder, static_cast<uint8_t>(reason.code()), text);
  builder.Finish(proto::CreateClientMessage(builder, proto::ClientBody::Failure, body.Union()));
  connection.send(builder);
  connection.close_after_send();
}

}  // namespace braid
