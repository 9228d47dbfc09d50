// SPDX-License-Identifier: Apache-2.0
#include "job/job.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/checked.h"
#include "base/log.h"
#include "engine/early_limits.h"
#include "job/operation_report.h"

namespace braid {
namespace {

TimelineEvent submit_span(const Membership& membership, const Submission& submission,
                          bool is_planned) {
  TimelineEvent event;
  event.kind = SpanKind::Submit;
  event.job_key = membership.key;
  event.tensor = submission.tensor;
  event.step = submission.step;
  event.number = membership.local_ranks[submission.local_rank];
  event.begin_ns = event.end_ns = submission.submitted_ns;
  event.bytes = submission.input_bytes;
  event.is_planned = is_planned;
  return event;
}

ArenaMemory::OfRanks arenas_of(const std::vector<Session*>& sessions) {
  ArenaMemory::OfRanks arenas;
  for (const Session* session : sessions)
    arenas.push_back(session == nullptr ? nullptr : session->arenas());
  return arenas;
}

void add_flows(Transport& transport, const Membership& membership, uint32_t flows) {
  for (const MemberNode* node : membership.targets()) transport.add_flows(node->peer.id, flows);
}

Status why_overdue(const OperationTable::Overdue& overdue, const Peer& coordinator) {
  return make_status(
      StatusCode::DeadlineExceeded,
      "{} did not end within {} ms, and the coordinator, node '{}', does not say why",
      overdue.description, overdue.timeout_ms, coordinator.name);
}

Status why_node_lost(const std::string& job, const MemberNode& node, const Status& reason) {
  return make_status(StatusCode::JobFailed, "job '{}': lost node '{}' with rank {}: {}", job,
                     node.peer.name, fmt::join(node.ranks, ", "), reason.message());
}

Status why_link_lost(const std::string& job, const std::string& self, const MemberNode& node,
                     const Status& reason) {
  return make_status(StatusCode::JobFailed,
                     "job '{}': node '{}' lost its link to node '{}' with rank {}: {}", job, self,
                     node.peer.name, fmt::join(node.ranks, ", "), reason.message());
}

Status why_unknown(const std::string& job, const Peer& from) {
  return make_status(StatusCode::Protocol,
                     "job '{}': node '{}' is ready for an operation of unknown kind", job,
                     from.name);
}

LeftRank left_rank(const Session& session, const MessageTable* messages) {
  LeftRank left{session.rank(), session.leave_reason(), SentMessages()};
  if (messages != nullptr) left.sent = messages->sent_by(session.local_rank());
  return left;
}

// `room` ok: there is more than an honest node can have in flight.
Status why_overrun(const std::string& job, const std::string& peer, const std::string& self,
                   const Status& room) {
  if (!room) {
    return room.with_context(
        fmt::format("job '{}': node '{}' cannot keep the small all-reduces that came from node "
                    "'{}' and that nobody here has submitted yet",
                    job, self, peer));
  }
  return make_status(
      StatusCode::Protocol,
      "job '{}': node '{}' has sent more than {} bytes of small all-reduces that nobody "
      "on node '{}' has submitted yet, which no daemon of this version does: use the "
      "same version of braidd on all nodes",
      job, peer, kEarlyBytesMax, self);
}

}  // namespace

Job::Job(JobServices services, Membership membership, std::vector<Session*> sessions,
         Peer coordinator)
    : services_(services),
      membership_(std::move(membership)),
      coordinator_(std::move(coordinator)),
      sessions_(std::move(sessions)),
      user_(sessions_.empty() ? 0 : sessions_.front()->credentials().uid),
      numbers_(services_.board.add(membership_.name, membership_.local_ranks)),
      flows_(services_, membership_),
      set_memory_(
          membership_.ring,
          [this] { return UserCharge(services_.quotas, user_, UserResource::ResultBytes); }),
      plans_(label(), membership_.key, membership_.ring->nodes, membership_.local_ranks,
             {[this](ControlBuffer& message) {
                return services_.control_plane.send(coordinator_.id, message);
              },
              [this](const TransferSettings& settings) { flows_.plan(settings); },
              [this](uint32_t flows) { add_flows(services_.transport, membership_, flows); },
              [this](const PlanSet& set) { return set_memory_.make(set); },
              [this] {
                return CarriedWork{services_.engines.processor_ns(),
                                   services_.engines.counters().bytes_carried};
              }},
             membership_.sample_every_steps, numbers_),
      observer_(
          plans_, services_.clock, [this] { return services_.engines.counters().bytes_carried; },
          [this](const Status& status) { check(status); }),
      reach_(services_.control_plane, services_.transport, membership_,
             [this](const Status& reached) { on_reached(reached); }),
      arena_memory_(
          *services_.user_work, user_, [this] { return arenas_of(sessions_); },
          [this](uint64_t bytes) { numbers_->arena_memory_bytes.set(bytes); }),
      polling_(services_.engines.polling_jobs(), sessions_),
      duels_(services_.control_plane, membership_,
             {{{[this] { return flows_.may_try_few() && plans_.is_empty(); },
                [this](bool few) { flows_.use_few(few); }},
               {[this] { return polling_.is_adaptive(); },
                [this](bool polls) { polling_.poll(polls); }}}}),
      deadline_timer_(services.loop),
      verdict_timer_(services.loop),
      memory_rounds_(services.loop) {
  BRAID_ASSERT(sessions_.size() == membership_.local_ranks.size(), "one session per local rank");
  for (uint32_t i = 0; i < sessions_.size(); ++i) {
    sessions_[i]->join(*this, i);
    numbers_->ranks[i].pid.set(static_cast<uint64_t>(sessions_[i]->credentials().pid));
  }
}

Job::~Job() {
  lifetime_.end();
  // A job that all ranks have left ended well and has nobody to tell.
  if (std::any_of(sessions_.begin(), sessions_.end(),
                  [](const Session* session) { return session != nullptr; })) {
    close(make_status(StatusCode::Cancelled, "job '{}': the daemon is shutting down",
                      membership_.name));
  }
  services_.engines.abort_job(membership_.key);
  services_.board.remove(*numbers_);
  services_.user_work->dispose(std::move(names_));
  services_.user_work->dispose(plans_.take_sets());
}

void Job::begin() {
  auto tables =
      make_tables(services_, membership_, sessions_,
                  {observer_, reach_, coordinator_, [this](const Status& status) { check(status); },
                   [this](uint64_t now_ns) { duels_.on_operation(now_ns); }, numbers_});
  if (!tables) return fail(tables.status());
  memory_ = std::move(tables->memory);
  operations_ = std::move(tables->operations);
  messages_ = std::move(tables->messages);
  memory_->set_growth_callback(lifetime_.guard([this](const Status& growth) {
    if (!is_closed()) check(operations_->on_memory(growth));
    if (!is_closed()) check(messages_->on_memory(growth));
  }));
  memory_->set_charge(UserCharge(services_.quotas, user_, UserResource::ResultBytes));
  arena_memory_.look();
  const auto buffers = [this] {
    return UserCharge(services_.quotas, user_, UserResource::BufferBytes);
  };
  operations_->set_early_charge(buffers());
  messages_->set_charge(buffers());
  services_.engines.begin_job(
      membership_.key, *messages_,
      [this](NodeId from, const Status& room) { on_overrun(from, room); }, buffers);
  flows_.begin();
  reach();
}

void Job::reach() {
  if (membership_.ring->nodes > 1) return reach_.begin();
  if (services_.control_plane.find(coordinator_.id) == nullptr)
    return fail(
        make_status(StatusCode::Unavailable, "job '{}': lost its coordinator", membership_.name));
  report_ready();
}

void Job::on_reached(const Status& reached) {
  if (!reached) return fail(reached.with_context(fmt::format("job '{}'", membership_.name)));
  if (state_ == State::Preparing) return report_ready();
  check(operations_->on_reached());
  check(messages_->on_reached());
}

void Job::report_ready() {
  state_ = State::Waiting;
  auto message = make_job_ready(membership_.key);
  check(services_.control_plane.send(coordinator_.id, message));
}

void Job::on_go() {
  if (state_ != State::Waiting) return;
  state_ = State::Running;
  BRAID_LOG_INFO(LogFields{.job = {name(), user_}},
                 "job '{}': epoch {} runs: ranks {} here (node {} of {}), {} ranks in all",
                 membership_.name, membership_.epoch, fmt::join(membership_.local_ranks, ", "),
                 membership_.ring->self, membership_.ring->nodes, membership_.ring->world_size);
  if (membership_.local_ranks.front() == 0)
    progress_.emplace(*numbers_, world_size(), membership_.ring->nodes, services_.clock.now_ns());
  for (uint32_t i = 0; i < sessions_.size() && state_ == State::Running; ++i) {
    if (sessions_[i] != nullptr) sessions_[i]->open(membership_.epoch, memory_, *membership_.ring);
  }
}

Status Job::check_registered(const Session& session, std::span<const Tensor> tensors) const {
  return names_->check(tensors).with_context(
      fmt::format("job '{}': rank {}", membership_.name, session.rank()));
}

void Job::remove_registered(std::span<const Tensor> tensors) {
  for (const uint64_t gone : names_->remove(tensors)) operations_->end_tensor(gone);
}

void Job::on_submit(Submission submission, uint64_t plan_set) {
  const uint64_t now_ns = services_.clock.now_ns();
  submission.submitted_ns = now_ns;
  submission.deadline_ns = now_ns + uint64_t{submission.timeout_ms} * 1'000'000;
  if (LoopTimeline* const timeline = services_.engines.timeline(); timeline != nullptr)
    timeline->record(submit_span(membership_, submission, plan_set != 0));
  check(plan_set == 0 ? operations_->submit(submission) : submit_planned(submission, plan_set));
  watch_deadlines();
}

void Job::on_message_end(MessageEnd end, proto::SubmitKind kind) {
  end.begin_at(services_.clock.now_ns());
  check(kind == proto::SubmitKind::Send ? messages_->send(end) : messages_->receive(end));
  watch_deadlines();
}

void Job::watch_deadlines() {
  if (is_closed()) return;
  if (!deadline_timer_.is_active())
    deadline_timer_.start_repeating(kDeadlineCheckPeriodMs, [this] { check_deadlines(); });
  memory_rounds_.begin(*memory_, [this] { look_at_memory(); });
}

Status Job::submit_planned(Submission& submission, uint64_t plan_set) {
  const auto planned = plans_.plan(submission, plan_set, submission.submitted_ns);
  if (!planned) return planned.status();
  return *planned ? operations_->submit(submission, **planned) : Status::ok();
}

size_t Job::place_of(NodeId node) const {
  const std::vector<NodeId>& members = membership_.ring->members;
  return static_cast<size_t>(std::ranges::find(members, node) - members.begin());
}

std::optional<uint32_t> Job::place_of_other(const Peer& peer) const {
  const size_t place = place_of(peer.id);
  if (operations_ == nullptr || is_closed() || place == membership_.ring->members.size() ||
      place == membership_.ring->self)
    return std::nullopt;
  return static_cast<uint32_t>(place);
}

void Job::on_node_ready(const Peer& from, const proto::OperationReady& ready) {
  const auto place = place_of_other(from);
  if (!place) return;
  const auto signature = signature_of(ready);
  if (!signature) return fail(why_unknown(name(), from));
  check(operations_->on_node_ready(*place, {membership_.key, ready.tensor(), ready.step()},
                                   *signature));
}

void Job::on_plan_proposal(const proto::PlanProposal& proposal) {
  if (state_ != State::Running) return;
  const auto parsed = parse_plan_proposal(proposal, services_.chunk_bytes_max);
  check(parsed ? plans_.on_proposal(*parsed) : parsed.status());
}

void Job::on_plan_verdict(const proto::PlanVerdict& verdict) {
  if (state_ != State::Running) return;
  const auto freed = plans_.on_verdict(verdict);
  Status submitted = freed.is_ok() ? Status::ok() : freed.status();
  for (size_t i = 0; submitted && i < freed->size(); ++i)
    submitted = operations_->submit((*freed)[i].submission, (*freed)[i].planned);
  check(submitted);
  let_go_of_leavers();
}

void Job::on_overrun(NodeId from, const Status& room) {
  const Peer* found = services_.control_plane.find(from);
  fail(why_overrun(name(), found == nullptr ? "?" : found->name,
                   services_.control_plane.self().name, room));
}

void Job::on_query(const proto::OperationQuery& query) {
  if (operations_ == nullptr) return;
  auto message =
      report_operation({membership_.key, query.tensor(), query.step()}, *this, services_.transport);
  check(services_.control_plane.send(coordinator_.id, message));
}

void Job::check_deadlines() {
  if (progress_) progress_->log(label(), *services_.progress_seconds, services_.clock.now_ns());
  const bool is_idle =
      !operations_->has_unfinished() && messages_->unfinished() == 0 && !plans_.holds_submissions();
  if (is_idle || deadline_checks_ == 0) look_at_memory();
  deadline_checks_ = is_idle ? 0 : (deadline_checks_ + 1) % kDeadlineChecksPerLook;
  if (is_idle) return deadline_timer_.stop();
  check(plans_.check_deadlines(services_.clock.now_ns()));
  if (is_closed()) return;
  const uint64_t now_ns = services_.clock.now_ns();
  if (!look_pace_.is_due(now_ns, operations_->size() + messages_->size())) return;
  check(operations_->tell_readiness());
  check(messages_->check_deadlines(now_ns));
  const auto overdue = operations_->take_overdue(now_ns);
  if (!overdue) return;
  auto message = make_operation_overdue(overdue->key, overdue->timeout_ms, overdue->description);
  check(services_.control_plane.send(coordinator_.id, message));
  await_verdict(why_overdue(*overdue, coordinator_));
}

void Job::on_peer_lost(const Peer& peer, const Status& reason) {
  if (is_closed()) return;
  if (peer.id == coordinator_.id) {
    return close(make_status(StatusCode::JobFailed, "job '{}': lost its coordinator, node '{}': {}",
                             membership_.name, peer.name, reason.message()));
  }
  for (const MemberNode& node : membership_.nodes) {
    if (node.peer.id != peer.id) continue;
    // A connection that was as good as dead when the job began. The coordinator, whom the node has
    // just asked to join, is the one who knows that it is there.
    if (reach_.awaits(peer.id)) return;
    if (state_ == State::Preparing && reach_.begin_again()) return;
    fail(why_node_lost(name(), node, reason));
  }
}

void Job::on_link_lost(const Peer& peer, const Status& reason) {
  for (const MemberNode* node : membership_.targets()) {
    if (node->peer.id != peer.id || is_closed()) continue;
    fail(why_link_lost(name(), services_.control_plane.self().name, *node, reason));
  }
}

void Job::forget(const Session& session) {
  sessions_[session.local_rank()] = nullptr;
  if (operations_ == nullptr) return;
  operations_->drop_sink(session.local_rank());
  messages_->drop_sink(session.local_rank());
}

void Job::on_session_left(Session& session) {
  session.leave();
  forget(session);
  leavers_.push_back({session.local_rank(), session.leave_reason()});
  let_go_of_leavers();
  auto message = make_rank_left(membership_.key, left_rank(session, messages_.get()));
  check(services_.control_plane.send(coordinator_.id, message));
}

// What a rank had submitted before it left counts, also where a plan keeps it back.
void Job::let_go_of_leavers() {
  std::erase_if(leavers_, [this](const auto& leaver) {
    const auto& [local_rank, reason] = leaver;
    if (plans_.holds_submissions_of(local_rank)) return false;
    if (operations_ != nullptr) check(operations_->on_rank_left(local_rank, reason));
    if (operations_ != nullptr) check(messages_->on_rank_left(local_rank, reason));
    return true;
  });
}

void Job::on_session_lost(Session& session, const Status& reason) {
  forget(session);
  fail(make_status(StatusCode::JobFailed, "job '{}': lost rank {} on node '{}': {}",
                   membership_.name, session.rank(), services_.control_plane.self().name,
                   reason.message()));
}

void Job::fail(const Status& reason) {
  if (is_closed()) return;
  auto message = make_fail_job(membership_.key, membership_.name, reason);
  if (const Status sent = services_.control_plane.send(coordinator_.id, message); !sent)
    return close(reason);
  await_verdict(reason);
}

void Job::await_verdict(const Status& reason) {
  if (!verdict_timer_.is_active())
    verdict_timer_.start_once(kVerdictTimeoutMs, [this, reason] { close(reason); });
}

void Job::end_progress(std::string_view how) {
  if (progress_)
    progress_->log_end(label(), *services_.progress_seconds, how, services_.clock.now_ns());
}

void Job::look_at_memory() {
  arena_memory_.look();
  numbers_->result_memory_bytes.set(memory_->reserved_bytes());
}

void Job::check(const Status& status) {
  if (!status) fail(status);
}

void Job::close(const Status& reason) {
  if (is_closed()) return;
  end_progress("has failed");
  state_ = State::Closed;
  ++services_.counters.failures[static_cast<size_t>(reason.code())];
  reach_.stop();
  deadline_timer_.stop();
  verdict_timer_.stop();
  memory_rounds_.stop();
  // Before its operations are given up. What the daemon's end does to it tells nobody anything.
  if (services_.on_job_failed && reason.code() != StatusCode::Cancelled)
    services_.on_job_failed(*this, reason);
  services_.engines.abort_job(membership_.key);
  for (Session*& session : sessions_) {
    if (session != nullptr) session->fail(reason);
    session = nullptr;
  }
  if (services_.on_job_closed) services_.on_job_closed();
}

}  // namespace braid
