// SPDX-License-Identifier: Apache-2.0
#include "coordinator/coordinator.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/log.h"
#include "base/random.h"
#include "coordinator/member_messages.h"
#include "coordinator/racks.h"

namespace braid {
namespace {

constexpr uint32_t kReadyTimeoutMs = 30'000;

// In ring order.
std::vector<MemberNode> nodes_of(const FormingJob& forming) {
  std::vector<MemberNode> nodes;
  // Members are visited by rank, so nodes come out in the order of their lowest rank.
  std::unordered_map<NodeId, size_t> place;
  for (const auto& [rank, member] : forming.members) {
    const auto [known, is_new] = place.try_emplace(member.peer.id, nodes.size());
    if (is_new) nodes.push_back({member.peer, {}, member.rack});
    nodes[known->second].ranks.push_back(rank);
  }
  order_by_racks(nodes);
  return nodes;
}

}  // namespace

const MemberNode* Coordinator::ActiveJob::find(NodeId node) const {
  const auto found = std::find_if(nodes.begin(), nodes.end(),
                                  [node](const MemberNode& one) { return one.peer.id == node; });
  return found == nodes.end() ? nullptr : &*found;
}

bool Coordinator::on_control_message(const Peer& from, const proto::ControlMessage& message) {
  switch (message.body_type()) {
    case proto::ControlBody::JoinJob:
      forming_.on_join(from, *message.body_as_JoinJob());
      return true;
    case proto::ControlBody::JobReady:
      if (ActiveJob* job = find_member(from, message.body_as_JobReady()->job_key(), message))
        on_ready(from, *job);
      return true;
    case proto::ControlBody::FailJob:
      on_fail(from, message);
      return true;
    case proto::ControlBody::RankLeft:
      on_rank_left(from, message);
      return true;
    case proto::ControlBody::LeaversAwaited:
      if (ActiveJob* job = find_member(from, message.body_as_LeaversAwaited()->job_key(), message))
        job->leavers.add_listener(control_plane_, job->key, *job->find(from.id));
      return true;
    case proto::ControlBody::OperationOverdue: {
      const auto& overdue = *message.body_as_OperationOverdue();
      if (ActiveJob* job = find_member(from, overdue.job_key(), message)) on_overdue(overdue, *job);
      return true;
    }
    case proto::ControlBody::OperationReport: {
      const auto& report = *message.body_as_OperationReport();
      ActiveJob* job = find_member(from, report.job_key(), message);
      if (job != nullptr && job->investigation != nullptr &&
          job->investigation->key() ==
              OperationKey{report.job_key(), report.tensor(), report.step()}) {
        job->investigation->on_report(from.id, report);
      }
      return true;
    }
    default:
      break;
  }
  const auto planned_job = PlanDirector::job_of(message);
  if (!planned_job) return false;
  if (ActiveJob* job = find_member(from, *planned_job, message))
    planning_of(*job).on_control_message(from.id, message);
  return true;
}

std::optional<std::string> Coordinator::tuning_json(uint64_t job_key) const {
  const auto job = active_.find(job_key);
  if (job == active_.end()) return std::nullopt;
  return job->second.planning == nullptr ? "[]" : job->second.planning->tuning_json();
}

std::optional<std::vector<GuardReading>> Coordinator::guard_readings(uint64_t job_key) const {
  const auto job = active_.find(job_key);
  if (job == active_.end()) return std::nullopt;
  if (job->second.planning == nullptr) return std::vector<GuardReading>{};
  return job->second.planning->guard().readings();
}

PlanDirector& Coordinator::planning_of(ActiveJob& job) {
  if (job.planning != nullptr) return *job.planning;
  PlannedJob planned{loop_, job.terms.label(), job.key, {}, {}, planning_.answer_timeout_ms};
  for (const MemberNode& node : job.nodes) planned.nodes.push_back(node.peer.id);
  planned.send = [this](NodeId to, ControlBuffer message) {
    // One that cannot be reached is lost, and the job with it.
    (void)control_plane_.send(to, message);
  };
  PlanningOptions planning = planning_;
  planning.tuning.ranks_per_node = job.terms.world_size / static_cast<uint32_t>(job.nodes.size());
  for (TransferSettings* settings : {&planning.tuning.defaults, &planning.tuning.usual}) {
    settings->direct_bytes = job.algorithms.direct_bytes;
    settings->two_hops_bytes = job.algorithms.two_hops_bytes;
    settings->halving_bytes = job.algorithms.halving_bytes;
    settings->is_hierarchical = job.algorithms.is_hierarchical;
  }
  job.planning = std::make_unique<PlanDirector>(std::move(planned), std::move(planning));
  return *job.planning;
}

double Coordinator::round_trip_to(const std::vector<MemberNode>& nodes) const {
  uint64_t longest_ns = 0;
  if (planning_.planner == nullptr) return 0;
  for (const MemberNode& node : nodes)
    longest_ns = std::max(longest_ns, control_plane_.round_trip_ns(node.peer.id).value_or(0));
  return static_cast<double>(longest_ns) / 1e9;
}

void Coordinator::start(const FormingJob& forming) {
  const uint64_t key = random_u64();
  ActiveJob& job = active_[key];
  job.terms = forming.terms;
  job.key = key;
  job.nodes = nodes_of(forming);
  const double round_trip_seconds = round_trip_to(job.nodes);
  job.algorithms =
      job_algorithms(job.nodes, forming.cut.chunk_bytes, algorithms_, round_trip_seconds);
  const std::string& name = job.terms.name();
  if (epochs_.size() >= kEpochsRemembered && !epochs_.contains(name)) epochs_.clear();
  const uint32_t epoch = ++epochs_[name];
  BRAID_LOG_INFO(LogFields{.job = job.terms.line()},
                 "job '{}': all {} ranks on {} nodes joined, epoch {}", name, job.terms.world_size,
                 job.nodes.size(), epoch);
  BRAID_LOG_DEBUG(
      "job '{}': round trips of up to {:.2f} ms; all-reduces are direct up to {} bytes, go by two "
      "hops up to {}, by halving up to {}, and {} above",
      name, round_trip_seconds * 1e3, job.algorithms.direct_bytes, job.algorithms.two_hops_bytes,
      job.algorithms.halving_bytes,
      job.algorithms.is_hierarchical ? "by racks" : "around the ring");
  warn_of_cut(job.terms.label(), job.nodes.size(), algorithms_);
  job.deadline = std::make_unique<Timer>(loop_);
  job.deadline->start_once(kReadyTimeoutMs, [this, key] { on_not_ready(key); });
  // It names all nodes: for many of them it is long, and making it for each would take long.
  const Status sent = send_to_all(
      control_plane_, job.nodes,
      make_job_start(name, job.terms.world_size, epoch, key, job.nodes, job.algorithms,
                     job.terms.weight, job.terms.identity.owner, planning_.guard.every_steps));
  if (!sent) fail_active(key, sent);
}

void Coordinator::on_not_ready(uint64_t job_key) {
  const ActiveJob& late = active_.at(job_key);
  std::vector<std::string> waiting;
  for (const MemberNode& node : late.nodes) {
    if (!late.nodes_ready.contains(node.peer.id)) waiting.push_back(node.peer.name);
  }
  fail_active(job_key,
              make_status(StatusCode::DeadlineExceeded, "job '{}': not ready within {} ms: node {}",
                          late.terms.name(), kReadyTimeoutMs, fmt::join(waiting, ", ")));
}

void Coordinator::on_ready(const Peer& from, ActiveJob& job) {
  job.nodes_ready.insert(from.id);
  if (job.nodes_ready.size() < job.nodes.size()) return;
  job.deadline.reset();
  (void)send_to_all(control_plane_, job.nodes, make_job_go(job.key));
}

void Coordinator::on_fail(const Peer& from, const proto::ControlMessage& message) {
  const proto::FailJob& fail = *message.body_as_FailJob();
  const Status reason = failure_status(fail.code(), fail.reason());
  if (fail.job_key() != 0) {
    if (find_member(from, fail.job_key(), message) != nullptr) fail_active(fail.job_key(), reason);
    return;
  }
  const auto owner = parse_job_owner(fail.owner());
  if (!owner) return;
  const JobIdentity identity{fail.name()->str(), *owner};
  const FormingJob* job = forming_.find(identity);
  if (job == nullptr) return;
  if (job->ranks_of(from.id).empty())
    return refused_.refuse(from, message.body_type(), job->terms.label());
  forming_.fail(identity, reason);
}

void Coordinator::on_rank_left(const Peer& from, const proto::ControlMessage& message) {
  const proto::RankLeft& left = *message.body_as_RankLeft();
  ActiveJob* job = find_member(from, left.job_key(), message);
  if (job == nullptr) return;
  const std::vector<uint32_t>& ranks = job->find(from.id)->ranks;
  if (std::find(ranks.begin(), ranks.end(), left.rank()) == ranks.end())
    return refused_.refuse(from, message.body_type(), job->terms.label());
  job->leavers.add(left_rank_of(left));
  if (job->leavers.count() < job->terms.world_size) {
    job->leavers.tell_of(control_plane_, job->key, left.rank());
    return await_leavers(*job);
  }
  BRAID_LOG_INFO(LogFields{.job = job->terms.line()}, "job '{}': all ranks have left",
                 job->terms.name());
  (void)send_to_all(control_plane_, job->nodes, make_job_ended(job->key));
  active_.erase(left.job_key());
}

void Coordinator::await_leavers(ActiveJob& job) {
  job.deadline = std::make_unique<Timer>(loop_);
  job.deadline->start_once(leave_timeout_ms_, [this, key = job.key] { on_not_left(key); });
}

void Coordinator::on_not_left(uint64_t job_key) {
  const ActiveJob& late = active_.at(job_key);
  std::vector<uint32_t> staying;
  for (uint32_t rank = 0; rank < late.terms.world_size; ++rank) {
    if (!late.leavers.contains(rank)) staying.push_back(rank);
  }
  fail_active(job_key, make_status(StatusCode::DeadlineExceeded,
                                   "job '{}': rank {} has not left {} ms after the others: it ends",
                                   late.terms.name(), name_ranks(staying), leave_timeout_ms_));
}

void Coordinator::on_overdue(const proto::OperationOverdue& overdue, ActiveJob& job) {
  if (job.investigation != nullptr) return;  // the first one speaks for the job: it ends it
  const uint64_t job_key = job.key;
  job.investigation = std::make_unique<Investigation>(
      loop_, overdue, job.nodes, [this, job_key](const Status& reason) {
        loop_.defer(lifetime_.guard([this, job_key, reason] { fail_active(job_key, reason); }));
      });
  (void)send_to_all(control_plane_, job.nodes, make_operation_query(job.investigation->key()));
}

void Coordinator::on_peer_lost(const Peer& peer, const Status& reason) {
  forming_.on_peer_lost(peer, reason);
  std::vector<std::pair<uint64_t, Status>> lost;
  for (const auto& [key, job] : active_) {
    const MemberNode* node = job.find(peer.id);
    if (node == nullptr) continue;
    lost.emplace_back(
        key,
        make_status(StatusCode::JobFailed, "job '{}': lost node '{}' with rank {}: {}",
                    job.terms.name(), peer.name, fmt::join(node->ranks, ", "), reason.message()));
  }
  for (const auto& [key, status] : lost) fail_active(key, status);
}

void Coordinator::fail_active(uint64_t job_key, const Status& reason) {
  const auto position = active_.find(job_key);
  if (position == active_.end()) return;
  // Out of the map first: a message that cannot be sent must not find it again.
  const ActiveJob job = std::move(position->second);
  active_.erase(position);
  BRAID_LOG_WARN(LogFields{.job = job.terms.line()}, "job '{}' failed: {}", job.terms.name(),
                 reason.message());
  (void)send_to_all(control_plane_, job.nodes, make_job_failed(job_key, job.terms.name(), reason));
}

Coordinator::ActiveJob* Coordinator::find_member(const Peer& from, uint64_t job_key,
                                                 const proto::ControlMessage& message) {
  const auto position = active_.find(job_key);
  if (position == active_.end()) return nullptr;
  ActiveJob& job = position->second;
  if (job.find(from.id) != nullptr) return &job;
  refused_.refuse(from, message.body_type(), job.terms.label());
  return nullptr;
}

}  // namespace braid
