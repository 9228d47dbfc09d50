// SPDX-License-Identifier: Apache-2.0
#include "coordinator/forming_jobs.h"

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "coordinator/member_messages.h"

namespace braid {
namespace {

CutSettings cut_of(const proto::JoinJob& join) {
  return {join.unit_bytes(), join.chunk_bytes(), join.io_loops()};
}

// Ok, or what the rank says otherwise than those before it.
Status check_agreement(const FormingJob& job, const Peer& from, const proto::JoinJob& join) {
  if (job.members.empty()) return Status::ok();
  const auto& [other_rank, member] = *job.members.begin();
  const std::string& other = member.peer.name;
  const auto disagree = [&, rank = other_rank](std::string_view about, uint32_t one,
                                               uint32_t another) {
    return make_status(StatusCode::Mismatch,
                       "job '{}': ranks disagree about the {}: rank {} (node '{}') says {}, rank "
                       "{} (node '{}') says {}",
                       job.terms.name(), about, rank, other, one, join.rank(), from.name, another);
  };
  if (join.world_size() != job.terms.world_size)
    return disagree("world size", job.terms.world_size, join.world_size());
  if (join.weight() != job.terms.weight)
    return disagree("weight (BRAID_JOB_WEIGHT)", job.terms.weight, join.weight());
  const CutSettings cut = cut_of(join);
  if (cut == job.cut) return Status::ok();
  return make_status(
      StatusCode::Mismatch,
      "job '{}': nodes are configured differently: node '{}' has collective.unit_bytes {}, "
      "transport.chunk_bytes {} and {} I/O loops, node '{}' has {}, {} and {}; give all "
      "nodes the same",
      job.terms.name(), other, job.cut.unit_bytes, job.cut.chunk_bytes, job.cut.io_loops, from.name,
      cut.unit_bytes, cut.chunk_bytes, cut.io_loops);
}

Status check_numbers(const proto::JoinJob& join) {
  if (join.world_size() == 0 || join.world_size() > FormingJobs::kWorldSizeMax ||
      join.rank() >= join.world_size()) {
    return make_status(StatusCode::InvalidArgument, "rank {} of world size {} makes no sense",
                       join.rank(), join.world_size());
  }
  if (join.weight() != 0 && join.weight() <= kJobWeightMax) return Status::ok();
  return make_status(StatusCode::InvalidArgument, "weight {} makes no sense; right are 1 to {}",
                     join.weight(), kJobWeightMax);
}

}  // namespace

std::string name_ranks(const std::vector<uint32_t>& ranks) {
  constexpr size_t kNamed = 8;
  if (ranks.size() <= kNamed) return fmt::format("{}", fmt::join(ranks, ", "));
  return fmt::format("{} and {} more", fmt::join(ranks.begin(), ranks.begin() + kNamed, ", "),
                     ranks.size() - kNamed);
}

std::vector<uint32_t> FormingJob::ranks_of(NodeId node) const {
  std::vector<uint32_t> ranks;
  for (const auto& [rank, member] : members) {
    if (member.peer.id == node) ranks.push_back(rank);
  }
  return ranks;
}

const FormingJob* FormingJobs::find(const JobIdentity& identity) const {
  const auto position = jobs_.find(identity);
  return position == jobs_.end() ? nullptr : &position->second;
}

void FormingJobs::on_join(const Peer& from, const proto::JoinJob& join) {
  const std::string name = join.name()->str();
  const uint32_t rank = join.rank();
  const auto owner = parse_job_owner(join.owner());
  const JobIdentity identity{name, owner ? *owner : JobOwner{}};
  const LogFields fields{.job = {name, join.user()}, .rank = rank, .peer = from.name};
  if (const Status admitted = owner ? admit(identity, join) : owner.status(); !admitted) {
    BRAID_LOG_WARN(fields, "job '{}': rank {} on node '{}' refused: {}", name, rank, from.name,
                   admitted.message());
    return tell(control_plane_, from, make_job_failed(0, name, admitted, identity.owner));
  }
  FormingJob& job = jobs_.at(identity);
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
  BRAID_LOG_INFO(fields, "job '{}': rank {} on node '{}' joined ({} of {})", name, rank, from.name,
                 job.members.size(), job.terms.world_size);
  if (job.members.size() < job.terms.world_size) return;
  const FormingJob complete = std::move(job);
  jobs_.erase(identity);
  on_complete_(complete);
}

Status FormingJobs::admit(const JobIdentity& identity, const proto::JoinJob& join) {
  BRAID_RETURN_IF_ERROR(check_numbers(join));
  if (const Status* reason = find_contradiction(identity, join.rank())) return *reason;
  if (jobs_.contains(identity)) return Status::ok();
  BRAID_RETURN_IF_ERROR(check_room(join.user()));
  begin(identity, join);
  return Status::ok();
}

Status FormingJobs::check_room(uint32_t user) const {
  if (jobs_.size() >= kJobsMax) {
    return make_status(StatusCode::ResourceExhausted, "{} jobs are being formed here already",
                       kJobsMax);
  }
  const auto of_user = std::count_if(jobs_.begin(), jobs_.end(), [user](const auto& job) {
    return job.second.terms.user == user;
  });
  if (static_cast<size_t>(of_user) < kJobsPerUserMax) return Status::ok();
  return make_status(StatusCode::ResourceExhausted,
                     "{} jobs of user {} are being formed here already; no user can have more",
                     of_user, user);
}

void FormingJobs::begin(const JobIdentity& identity, const proto::JoinJob& first) {
  FormingJob& job = jobs_[identity];
  job.terms = {identity, first.user(), first.world_size(), first.weight()};
  job.timeout_ms = first.timeout_ms();
  job.cut = cut_of(first);
  job.deadline = std::make_unique<Timer>(loop_);
  job.deadline->start_once(job.timeout_ms, [this, identity] { on_deadline(identity); });
}

void FormingJobs::on_deadline(const JobIdentity& identity) {
  const FormingJob& late = jobs_.at(identity);
  std::vector<uint32_t> missing;
  for (uint32_t rank = 0; rank < late.terms.world_size; ++rank) {
    if (!late.members.contains(rank)) missing.push_back(rank);
  }
  fail(identity, make_status(StatusCode::DeadlineExceeded,
                             "job '{}': {} of {} ranks joined within {} ms; missing: rank {} "
                             "(ranks belong together if they have the same token, BRAID_JOB_TOKEN, "
                             "or no token and the same user)",
                             identity.name, late.members.size(), late.terms.world_size,
                             late.timeout_ms, name_ranks(missing)));
}

void FormingJobs::on_peer_lost(const Peer& peer, const Status& reason) {
  std::vector<std::pair<JobIdentity, std::vector<uint32_t>>> lost;
  for (const auto& [identity, job] : jobs_) {
    if (auto ranks = job.ranks_of(peer.id); !ranks.empty())
      lost.emplace_back(identity, std::move(ranks));
  }
  for (const auto& [identity, ranks] : lost) {
    fail(identity, make_status(StatusCode::JobFailed,
                               "job '{}': lost node '{}' with rank {} before the job began: {}",
                               identity.name, peer.name, fmt::join(ranks, ", "), reason.message()));
  }
}

void FormingJobs::fail(const JobIdentity& identity, const Status& reason) {
  const auto position = jobs_.find(identity);
  if (position == jobs_.end()) return;
  const FormingJob job = std::move(position->second);
  jobs_.erase(position);
  BRAID_LOG_WARN(LogFields{.job = job.terms.line()}, "{}", reason.message());
  std::set<NodeId> told;
  for (const auto& [rank, member] : job.members) {
    if (!told.insert(member.peer.id).second) continue;
    tell(control_plane_, member.peer,
         make_job_failed(0, job.terms.name(), reason, job.terms.identity.owner));
  }
}

void FormingJobs::fail_contradictory(const FormingJob& job, const Peer& from, uint32_t rank,
                                     const Status& reason) {
  const JobIdentity identity = job.terms.identity;
  if (contradictions_.size() < kJobsMax) {
    Contradiction& contradiction = contradictions_[identity];
    contradiction.reason = reason;
    contradiction.told = {rank};
    for (const auto& [member_rank, member] : job.members) contradiction.told.insert(member_rank);
    contradiction.expiry = std::make_unique<Timer>(loop_);
    contradiction.expiry->start_once(kContradictionMs,
                                     [this, identity] { contradictions_.erase(identity); });
  }
  // Told as well, although it may be no member.
  tell(control_plane_, from, make_job_failed(0, identity.name, reason, identity.owner));
  fail(identity, reason);
}

const Status* FormingJobs::find_contradiction(const JobIdentity& identity, uint32_t rank) {
  const auto position = contradictions_.find(identity);
  if (position == contradictions_.end()) return nullptr;
  if (position->second.told.insert(rank).second) return &position->second.reason;
  contradictions_.erase(position);
  return nullptr;
}

}  // namespace braid
