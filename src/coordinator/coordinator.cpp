// SPDX-License-Identifier: Apache-2.0
#include "coordinator/coordinator.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/log.h"
#include "base/random.h"
#include "coordinator/racks.h"
#include "engine/early_limits.h"
#include "planner/algorithm_sizes.h"

namespace braid {
namespace {

constexpr uint32_t kReadyTimeoutMs = 30'000;

// The missing ranks of a forming job for people: the first few, then how many more.
std::string describe_missing(const std::vector<uint32_t>& missing) {
  constexpr size_t kNamed = 8;
  if (missing.size() <= kNamed) return fmt::format("{}", fmt::join(missing, ", "));
  return fmt::format("{} and {} more", fmt::join(missing.begin(), missing.begin() + kNamed, ", "),
                     missing.size() - kNamed);
}

CutSettings cut_of(const proto::JoinJob& join) {
  return {join.unit_bytes(), join.chunk_bytes(), join.io_loops()};
}

}  // namespace

bool Coordinator::on_control_message(const Peer& from, const proto::ControlMessage& message) {
  switch (message.body_type()) {
    case proto::ControlBody::JoinJob:
      on_join(from, *message.body_as_JoinJob());
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
    case proto::ControlBody::OperationOverdue: {
      const auto& overdue = *message.body_as_OperationOverdue();
      if (find_member(from, overdue.job_key(), message) != nullptr) on_overdue(overdue);
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
    planning_of(*planned_job, *job).on_control_message(from.id, message);
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

PlanDirector& Coordinator::planning_of(uint64_t job_key, ActiveJob& active) {
  ActiveJob* job = &active;
  if (job->planning == nullptr) {
    std::vector<NodeId> nodes;
    for (const MemberNode& node : job->nodes) nodes.push_back(node.peer.id);
    PlanningOptions planning = planning_;
    planning.tuning.ranks_per_node = job->world_size / static_cast<uint32_t>(nodes.size());
    for (TransferSettings* settings : {&planning.tuning.defaults, &planning.tuning.usual}) {
      settings->direct_bytes = job->algorithms.direct_bytes;
      settings->two_hops_bytes = job->algorithms.two_hops_bytes;
      settings->halving_bytes = job->algorithms.halving_bytes;
      settings->is_hierarchical = job->algorithms.is_hierarchical;
    }
    job->planning =
        std::make_unique<PlanDirector>(loop_, job->label(), job_key, std::move(nodes), planning,
                                       [this](NodeId to, ControlBuffer message) {
                                         // One that cannot be reached is lost, and the job with it.
                                         (void)control_plane_.send(to, message);
                                       });
  }
  return *job->planning;
}

Algorithms Coordinator::algorithms_of(const std::vector<MemberNode>& nodes,
                                      const CutSettings& cut) const {
  const auto count = static_cast<uint32_t>(nodes.size());
  AlgorithmSizes sizes = algorithm_sizes(count, assumed_hop_cost(round_trip_to(nodes)));
  sizes.direct_bytes = std::min<uint64_t>(sizes.direct_bytes, cut.chunk_bytes);
  // Links to all nodes would be there for these alone.
  if (count > kDirectNodesMax) sizes.two_hops_bytes = 0;

  Algorithms algorithms{algorithms_.direct_bytes.value_or(sizes.direct_bytes),
                        algorithms_.halving_bytes.value_or(sizes.halving_bytes),
                        algorithms_.is_hierarchical,
                        algorithms_.two_hops_bytes.value_or(sizes.two_hops_bytes)};
  if (count > kDirectNodesMax) algorithms.direct_bytes = 0;
  if (count < kHalvingNodesMin) algorithms.halving_bytes = 0;
  if (count < kTwoHopsNodesMin || count > kTwoHopsNodesMax) algorithms.two_hops_bytes = 0;
  if (!nodes_per_rack(nodes)) algorithms.is_hierarchical = false;
  return algorithms;
}

double Coordinator::round_trip_to(const std::vector<MemberNode>& nodes) const {
  uint64_t longest_ns = 0;
  if (planning_.planner == nullptr) return 0;
  for (const MemberNode& node : nodes)
    longest_ns = std::max(longest_ns, control_plane_.round_trip_ns(node.peer.id).value_or(0));
  return static_cast<double>(longest_ns) / 1e9;
}

void Coordinator::tell_of_cut(const ActiveJob& job) const {
  const auto nodes = static_cast<uint32_t>(job.nodes.size());
  const uint64_t direct_bytes = algorithms_.direct_bytes.value_or(0);
  if (nodes < 2 || nodes > kDirectNodesMax || direct_bytes <= direct_bytes_max(nodes)) return;
  BRAID_LOG_WARN(
      LogFields{.job = {job.name, job.user}},
      "job '{}': collective.direct_bytes is {}, and {} is used: among {} nodes larger all-reduces "
      "cannot be direct, because a late node must keep the parts of all others (4 MiB / ({} - 1)²)",
      job.name, direct_bytes, direct_bytes_max(nodes), nodes, nodes);
}

void Coordinator::on_join(const Peer& from, const proto::JoinJob& join) {
  const std::string name = join.name()->str();
  const uint32_t rank = join.rank();
  const auto owner = parse_job_owner(join.owner());
  auto refuse = [&](const Status& reason) {
    BRAID_LOG_WARN(LogFields{.job = {name, join.user()}, .rank = rank, .peer = from.name},
                   "job '{}': rank {} on node '{}' refused: {}", name, rank, from.name,
                   reason.message());
    send(from, make_job_failed(0, name, reason, owner ? *owner : JobOwner{}));
  };
  if (!owner) return refuse(owner.status());
  const JobIdentity identity{name, *owner};
  if (join.world_size() == 0 || join.world_size() > kWorldSizeMax || rank >= join.world_size()) {
    return refuse(make_status(StatusCode::InvalidArgument,
                              "rank {} of world size {} makes no sense", rank, join.world_size()));
  }
  if (join.weight() == 0 || join.weight() > kJobWeightMax) {
    return refuse(make_status(StatusCode::InvalidArgument,
                              "weight {} makes no sense; right are 1 to {}", join.weight(),
                              kJobWeightMax));
  }
  if (const Status* reason = find_contradiction(identity, rank)) return refuse(*reason);
  if (!forming_.contains(identity)) {
    if (const Status room = check_room(join.user()); !room) return refuse(room);
    begin_forming(identity, join);
  }
  FormingJob& job = forming_.at(identity);
  if (const Status agreed = check_agreement(job, from, join); !agreed)
    return fail_contradictory(job, from, rank, agreed);
  if (const auto other = job.members.find(rank); other != job.members.end()) {
    const Status reason = make_status(
        StatusCode::AlreadyExists,
        "job '{}': rank {} was given twice: node '{}' (process {}) and node '{}' (process {})",
        name, rank, other->second.peer.name, other->second.process_id, from.name,
        join.process_id());
    return fail_contradictory(job, from, rank, reason);
  }
  const std::string rack = join.rack() == nullptr ? std::string() : join.rack()->str();
  job.members[rank] = {from, join.process_id(), rack};
  BRAID_LOG_INFO(LogFields{.job = {name, join.user()}, .rank = rank, .peer = from.name},
                 "job '{}': rank {} on node '{}' joined ({} of {})", name, rank, from.name,
                 job.members.size(), job.world_size);
  if (job.members.size() == job.world_size) start(job);
}

void Coordinator::begin_forming(const JobIdentity& identity, const proto::JoinJob& first) {
  FormingJob& job = forming_[identity];
  job.identity = identity;
  job.user = first.user();
  job.world_size = first.world_size();
  job.timeout_ms = first.timeout_ms();
  job.weight = first.weight();
  job.cut = cut_of(first);
  job.deadline = std::make_unique<Timer>(loop_);
  job.deadline->start_once(job.timeout_ms, [this, identity] {
    const FormingJob& late = forming_.at(identity);
    std::vector<uint32_t> missing;
    for (uint32_t r = 0; r < late.world_size; ++r) {
      if (!late.members.contains(r)) missing.push_back(r);
    }
    fail_forming(
        identity,
        make_status(
            StatusCode::DeadlineExceeded,
            "job '{}': {} of {} ranks joined within {} ms; missing: rank {} (ranks belong together "
            "if they have the same token, BRAID_JOB_TOKEN, or no token and the same user)",
            identity.name, late.members.size(), late.world_size, late.timeout_ms,
            describe_missing(missing)));
  });
}

Status Coordinator::check_room(uint32_t user) const {
  if (forming_.size() >= kFormingJobsMax) {
    return make_status(StatusCode::ResourceExhausted, "{} jobs are being formed here already",
                       kFormingJobsMax);
  }
  const auto of_user = std::count_if(forming_.begin(), forming_.end(),
                                     [user](const auto& job) { return job.second.user == user; });
  if (static_cast<size_t>(of_user) < kFormingJobsPerUserMax) return Status::ok();
  return make_status(StatusCode::ResourceExhausted,
                     "{} jobs of user {} are being formed here already; no user can have more",
                     of_user, user);
}

Status Coordinator::check_agreement(const FormingJob& job, const Peer& from,
                                    const proto::JoinJob& join) {
  if (job.members.empty()) return Status::ok();
  const uint32_t other_rank = job.members.begin()->first;
  const Peer& other = job.members.begin()->second.peer;
  const auto disagree = [&](std::string_view about, uint32_t one, uint32_t another) {
    return make_status(StatusCode::Mismatch,
                       "job '{}': ranks disagree about the {}: rank {} (node '{}') says {}, rank "
                       "{} (node '{}') says {}",
                       job.identity.name, about, other_rank, other.name, one, join.rank(),
                       from.name, another);
  };
  if (join.world_size() != job.world_size)
    return disagree("world size", job.world_size, join.world_size());
  if (join.weight() != job.weight)
    return disagree("weight (BRAID_JOB_WEIGHT)", job.weight, join.weight());
  const CutSettings cut = cut_of(join);
  if (cut == job.cut) return Status::ok();
  return make_status(
      StatusCode::Mismatch,
      "job '{}': nodes are configured differently: node '{}' has collective.unit_bytes {}, "
      "transport.chunk_bytes {} and {} I/O loops, node '{}' has {}, {} and {}; give all "
      "nodes the same",
      job.identity.name, other.name, job.cut.unit_bytes, job.cut.chunk_bytes, job.cut.io_loops,
      from.name, cut.unit_bytes, cut.chunk_bytes, cut.io_loops);
}

void Coordinator::start(FormingJob& forming) {
  ActiveJob job;
  job.name = forming.identity.name;
  job.owner = forming.identity.owner;
  job.user = forming.user;
  job.key = random_u64();
  job.world_size = forming.world_size;
  job.weight = forming.weight;
  // Members are visited by rank, so nodes come out in the order of their lowest rank.
  std::unordered_map<NodeId, size_t> place;
  for (const auto& [rank, member] : forming.members) {
    const auto [known, is_new] = place.try_emplace(member.peer.id, job.nodes.size());
    if (is_new) job.nodes.push_back({member.peer, {}, member.rack});
    job.nodes[known->second].ranks.push_back(rank);
  }
  order_by_racks(job.nodes);
  job.algorithms = algorithms_of(job.nodes, forming.cut);
  if (epochs_.size() >= kEpochsRemembered && !epochs_.contains(job.name)) epochs_.clear();
  const uint32_t epoch = ++epochs_[job.name];
  BRAID_LOG_INFO(LogFields{.job = {job.name, job.user}},
                 "job '{}': all {} ranks on {} nodes joined, epoch {}", job.name, job.world_size,
                 job.nodes.size(), epoch);
  BRAID_LOG_DEBUG(
      "job '{}': round trips of up to {:.2f} ms; all-reduces are direct up to {} bytes, go by two "
      "hops up to {}, by halving up to {}, and {} above",
      job.name, round_trip_to(job.nodes) * 1e3, job.algorithms.direct_bytes,
      job.algorithms.two_hops_bytes, job.algorithms.halving_bytes,
      job.algorithms.is_hierarchical ? "by racks" : "around the ring");
  tell_of_cut(job);
  const uint64_t key = job.key;
  job.deadline = std::make_unique<Timer>(loop_);
  job.deadline->start_once(kReadyTimeoutMs, [this, key] {
    const ActiveJob& late = active_.at(key);
    std::vector<std::string> waiting;
    for (const MemberNode& node : late.nodes) {
      if (!late.nodes_ready.contains(node.peer.id)) waiting.push_back(node.peer.name);
    }
    fail_active(
        key, make_status(StatusCode::DeadlineExceeded, "job '{}': not ready within {} ms: node {}",
                         late.name, kReadyTimeoutMs, fmt::join(waiting, ", ")));
  });
  forming_.erase(JobIdentity(forming.identity));  // `forming` is gone from here on
  const auto& active = active_.emplace(key, std::move(job)).first->second;
  // It names all nodes: for many of them it is long, and making it for each would take long.
  const Status sent =
      send_to_all(active.nodes, make_job_start(active.name, active.world_size, epoch, key,
                                               active.nodes, active.algorithms, active.weight,
                                               active.owner, planning_.guard.every_steps));
  if (!sent) fail_active(key, sent);
}

void Coordinator::on_ready(const Peer& from, ActiveJob& job) {
  job.nodes_ready.insert(from.id);
  if (job.nodes_ready.size() < job.nodes.size()) return;
  job.deadline.reset();
  (void)send_to_all(job.nodes, make_job_go(job.key));
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
  const auto job = forming_.find(identity);
  if (job == forming_.end()) return;
  const bool is_member =
      std::any_of(job->second.members.begin(), job->second.members.end(),
                  [&](const auto& member) { return member.second.peer.id == from.id; });
  if (!is_member) return refused_.refuse(from, message.body_type(), job->second.label());
  fail_forming(identity, reason);
}

void Coordinator::on_rank_left(const Peer& from, const proto::ControlMessage& message) {
  const proto::RankLeft& left = *message.body_as_RankLeft();
  ActiveJob* job = find_member(from, left.job_key(), message);
  if (job == nullptr) return;
  const auto node = std::find_if(job->nodes.begin(), job->nodes.end(),
                                 [&](const MemberNode& n) { return n.peer.id == from.id; });
  if (std::find(node->ranks.begin(), node->ranks.end(), left.rank()) == node->ranks.end())
    return refused_.refuse(from, message.body_type(), job->label());
  job->ranks_left.insert(left.rank());
  if (job->ranks_left.size() < job->world_size) return await_leavers(*job);
  BRAID_LOG_INFO(LogFields{.job = {job->name, job->user}}, "job '{}': all ranks have left",
                 job->name);
  (void)send_to_all(job->nodes, make_job_ended(job->key));
  active_.erase(left.job_key());
}

void Coordinator::await_leavers(ActiveJob& job) {
  const uint64_t key = job.key;
  job.deadline = std::make_unique<Timer>(loop_);
  job.deadline->start_once(leave_timeout_ms_, [this, key] {
    const ActiveJob& late = active_.at(key);
    std::vector<uint32_t> staying;
    for (uint32_t rank = 0; rank < late.world_size; ++rank) {
      if (!late.ranks_left.contains(rank)) staying.push_back(rank);
    }
    fail_active(key, make_status(StatusCode::DeadlineExceeded,
                                 "job '{}': rank {} has not left within {} ms after the others had "
                                 "(collective.leave_timeout_ms): the job is ended without it",
                                 late.name, describe_missing(staying), leave_timeout_ms_));
  });
}

void Coordinator::on_overdue(const proto::OperationOverdue& overdue) {
  ActiveJob& job = active_.at(overdue.job_key());
  if (job.investigation != nullptr) return;  // the first one speaks for the job: it ends it
  const uint64_t job_key = job.key;
  job.investigation = std::make_unique<Investigation>(
      loop_, overdue, job.nodes, [this, job_key](const Status& reason) {
        loop_.defer(lifetime_.guard([this, job_key, reason] { fail_active(job_key, reason); }));
      });
  (void)send_to_all(job.nodes, make_operation_query(job.investigation->key()));
}

void Coordinator::on_peer_lost(const Peer& peer, const Status& reason) {
  std::unordered_map<JobIdentity, std::vector<uint32_t>> forming;  // its ranks by job
  for (const auto& [identity, job] : forming_) {
    for (const auto& [rank, member] : job.members) {
      if (member.peer.id == peer.id) forming[identity].push_back(rank);
    }
  }
  for (const auto& [identity, ranks] : forming) {
    fail_forming(identity,
                 make_status(StatusCode::JobFailed,
                             "job '{}': lost node '{}' with rank {} before the job began: {}",
                             identity.name, peer.name, fmt::join(ranks, ", "), reason.message()));
  }
  std::vector<uint64_t> active;
  for (const auto& [key, job] : active_) {
    for (const MemberNode& node : job.nodes) {
      if (node.peer.id == peer.id) active.push_back(key);
    }
  }
  for (const uint64_t key : active) {
    const ActiveJob& job = active_.at(key);
    const auto node = std::find_if(job.nodes.begin(), job.nodes.end(),
                                   [&](const MemberNode& n) { return n.peer.id == peer.id; });
    fail_active(key,
                make_status(StatusCode::JobFailed, "job '{}': lost node '{}' with rank {}: {}",
                            job.name, peer.name, fmt::join(node->ranks, ", "), reason.message()));
  }
}

void Coordinator::fail_forming(const JobIdentity& identity, const Status& reason) {
  const auto job = forming_.find(identity);
  if (job == forming_.end()) return;
  BRAID_LOG_WARN(LogFields{.job = {identity.name, job->second.user}}, "{}", reason.message());
  std::set<NodeId> told;
  for (const auto& [rank, member] : job->second.members) {
    if (told.insert(member.peer.id).second)
      send(member.peer, make_job_failed(0, identity.name, reason, identity.owner));
  }
  forming_.erase(JobIdentity(identity));
}

void Coordinator::fail_contradictory(const FormingJob& job, const Peer& from, uint32_t rank,
                                     const Status& reason) {
  const JobIdentity identity = job.identity;
  if (contradictions_.size() < kFormingJobsMax) {
    Contradiction& contradiction = contradictions_[identity];
    contradiction.reason = reason;
    contradiction.told = {rank};
    for (const auto& [member_rank, member] : job.members) contradiction.told.insert(member_rank);
    contradiction.expiry = std::make_unique<Timer>(loop_);
    contradiction.expiry->start_once(kContradictionMs,
                                     [this, identity] { contradictions_.erase(identity); });
  }
  // Told as well, although it may be no member.
  send(from, make_job_failed(0, identity.name, reason, identity.owner));
  fail_forming(identity, reason);
}

const Status* Coordinator::find_contradiction(const JobIdentity& identity, uint32_t rank) {
  const auto position = contradictions_.find(identity);
  if (position == contradictions_.end()) return nullptr;
  if (position->second.told.insert(rank).second) return &position->second.reason;
  contradictions_.erase(position);
  return nullptr;
}

void Coordinator::fail_active(uint64_t job_key, const Status& reason) {
  const auto position = active_.find(job_key);
  if (position == active_.end()) return;
  // Out of the map first: a message that cannot be sent must not find it again.
  const ActiveJob job = std::move(position->second);
  active_.erase(position);
  BRAID_LOG_WARN(LogFields{.job = {job.name, job.user}}, "job '{}' failed: {}", job.name,
                 reason.message());
  (void)send_to_all(job.nodes, make_job_failed(job_key, job.name, reason));
}

Status Coordinator::send_to_all(const std::vector<MemberNode>& nodes, ControlBuffer message) {
  // The control plane keeps the bytes of what goes to this node itself, so that comes last.
  const Peer& self = control_plane_.self();
  bool has_self = false;
  for (const MemberNode& node : nodes) {
    if (node.peer.id == self.id)
      has_self = true;
    else
      BRAID_RETURN_IF_ERROR(send(node.peer, message));
  }
  return has_self ? send(self, message) : Status::ok();
}

Status Coordinator::send(const Peer& to, ControlBuffer& message) {
  Status sent = control_plane_.send(to.id, message);
  if (sent || sent.code() == StatusCode::InvalidArgument) return sent;
  // The control plane reports the peer as lost, and its jobs end with it.
  BRAID_LOG_WARN(LogFields{.peer = to.name}, "cannot tell node '{}': {}", to.name, sent.message());
  return Status::ok();
}

Coordinator::ActiveJob* Coordinator::find_member(const Peer& from, uint64_t job_key,
                                                 const proto::ControlMessage& message) {
  const auto position = active_.find(job_key);
  if (position == active_.end()) return nullptr;
  for (const MemberNode& node : position->second.nodes) {
    if (node.peer.id == from.id) return &position->second;
  }
  refused_.refuse(from, message.body_type(), position->second.label());
  return nullptr;
}

}  // namespace braid
