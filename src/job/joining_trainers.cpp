// SPDX-License-Identifier: Apache-2.0
#include "job/joining_trainers.h"

#include <algorithm>
#include <unordered_set>

#include "base/local_host.h"
#include "base/log.h"
#include "base/socket_address.h"

namespace braid {

// Between nodes user numbers may differ, as containers have it; on one node they don't.
Status JoiningTrainers::check_user(const Session& session) const {
  for (const auto& [id, joining] : joining_) {
    const Session& other = joining.session;
    if (other.request().identity != session.request().identity ||
        other.credentials().uid == session.credentials().uid)
      continue;
    return make_status(StatusCode::PermissionDenied,
                       "job '{}': user {} cannot be rank {} of it on this node: the ranks that are "
                       "here already run as user {}, and all of a node run as one",
                       session.job_name(), session.credentials().uid, session.rank(),
                       other.credentials().uid);
  }
  return Status::ok();
}

void JoiningTrainers::add(Session& session) {
  Joining& joining = joining_.try_emplace(++last_id_, loop_, session).first->second;
  const uint64_t now_ms = clock_.now_ms();
  joining.give_up_ms = now_ms + session.request().timeout_ms;
  joining.retry_until_ms = now_ms + std::min(session.request().timeout_ms, kRetryForMs);
  find_coordinator(last_id_);
}

void JoiningTrainers::find_coordinator(uint64_t id) {
  const Session& session = joining_.at(id).session;
  const Place master = place_of(session);
  if (is_this_node(master)) return join(id, control_plane_.self());
  control_plane_.connect_for(
      session.credentials().uid, master.host, master.port,
      lifetime_.guard([this, id](const Result<Peer>& peer) { join(id, peer); }));
}

// As braid_master() gives it: "10.0.0.1", "10.0.0.1:45123", "2001:db8::1" or "[2001:db8::1]:45123".
JoiningTrainers::Place JoiningTrainers::place_of(const Session& session) const {
  const std::string& master = session.request().master_address;
  const auto place = parse_host_port(master);
  if (!place) return {master, options_.control_port};
  return {place->host, place->port != 0 ? place->port : options_.control_port};
}

// Another port of this host is that of another daemon: two users have one each.
bool JoiningTrainers::is_this_node(const Place& master) const {
  if (master.port != options_.control_port && master.port != control_plane_.self().port)
    return false;
  if (is_loopback_host(master.host)) return !options_.listens_on_loopback;
  return is_local_host(master.host);
}

void JoiningTrainers::join(uint64_t id, const Result<Peer>& coordinator) {
  const auto position = joining_.find(id);
  if (position == joining_.end()) return;  // it has gone meanwhile
  Joining& joining = position->second;
  const Session& session = joining.session;
  if (!coordinator) {
    const bool may_come_up = coordinator.status().code() == StatusCode::Unavailable;
    if (may_come_up && clock_.now_ms() < joining.retry_until_ms)
      return joining.timer.start_once(kRetryEveryMs, [this, id] { find_coordinator(id); });
    const char* name = session.request().master_node == 0 ? "MASTER_ADDR " : "";
    return give_up(id, coordinator.status().with_context(fmt::format(
                           "job '{}': cannot reach the coordinator's braidd at {}{}",
                           session.job_name(), name, session.request().master_address)));
  }
  if (const Status right = check_coordinator(session, *coordinator); !right)
    return give_up(id, right);
  auto message = make_join_job(session.job_name(), session.world_size(), session.rank(),
                               session.credentials().pid, session.request().timeout_ms,
                               options_.cut, session.request().weight, options_.rack,
                               session.request().identity.owner, session.credentials().uid);
  if (const Status sent = control_plane_.send(coordinator->id, message); !sent)
    return give_up(id, sent);
  joining.coordinator = coordinator->id;
  const uint64_t now_ms = clock_.now_ms();
  const uint64_t left_ms = joining.give_up_ms > now_ms ? joining.give_up_ms - now_ms : 0;
  const Status late = make_status(StatusCode::DeadlineExceeded,
                                  "job '{}': its coordinator, node '{}', does not answer",
                                  session.job_name(), coordinator->name);
  joining.timer.start_once(left_ms + kGraceMs, [this, id, late] { give_up(id, late); });
}

// An address that several nodes have leads each of them to itself.
Status JoiningTrainers::check_coordinator(const Session& session, const Peer& found) const {
  if (session.request().master_node == 0 || session.request().master_node == found.id)
    return Status::ok();
  const std::string master = place_of(session).host;
  const bool is_self = found.id == control_plane_.self().id;
  if (is_self && is_loopback_host(master)) {
    return make_status(
        StatusCode::Unavailable,
        "job '{}': the braidd of rank 0 is on another node than this one ('{}') and serves its own "
        "host only: set control.cluster_key_file on all nodes, and a control.listen that other "
        "nodes reach (auto is one)",
        session.job_name(), found.name);
  }
  if (is_self) {
    const std::string interface = own_interface_of(master);
    return make_status(StatusCode::Unavailable,
                       "job '{}': the braidd of rank 0 is to be reached at {}, but that is also an "
                       "address of this node ('{}'){}: set node.address and transport.rails of "
                       "both nodes to a network that they share; this node has {}",
                       session.job_name(), master, found.name,
                       interface.empty() ? "" : ", on its interface " + interface,
                       own_interfaces());
  }
  return make_status(
      StatusCode::Unavailable,
      "job '{}': at {} is node '{}', which is not the braidd that rank 0 found on "
      "its node: that one was restarted meanwhile, or several nodes have the address",
      session.job_name(), master, found.name);
}

// Each node takes a loopback address for itself, so ranks of several nodes never meet.
std::string JoiningTrainers::why_ranks_are_missing(const Session& session) const {
  const Place master = place_of(session);
  if (!is_loopback_host(master.host)) return {};
  if (!options_.why_own_host_only.empty()) {
    return fmt::format("; the braidd of node '{}' serves its own host only, for {}",
                       control_plane_.self().name, options_.why_own_host_only);
  }
  return fmt::format(
      "; their master is {}, which each node takes for another node: if the missing ranks are on "
      "other nodes, give all ranks the address of rank 0's node",
      master.host);
}

void JoiningTrainers::give_up(uint64_t id, const Status& reason) {
  const auto joining = joining_.extract(id);
  Session& session = joining.mapped().session;
  BRAID_LOG_WARN(session.log_fields(), "{}", reason.message());
  session.fail(reason);
}

void JoiningTrainers::remove(const Session& session, const Status& reason) {
  const auto position = std::find_if(joining_.begin(), joining_.end(), [&](const auto& entry) {
    return &entry.second.session == &session;
  });
  if (position == joining_.end()) return;
  const NodeId coordinator = position->second.coordinator;
  joining_.erase(position);
  if (coordinator == 0) return;
  auto message = make_fail_job(
      0, session.job_name(),
      make_status(StatusCode::JobFailed,
                  "job '{}': lost rank {} on node '{}' before the job began: {}",
                  session.job_name(), session.rank(), control_plane_.self().name, reason.message()),
      session.request().identity.owner);
  // If the coordinator has gone, the job has failed.
  (void)control_plane_.send(coordinator, message);
}

std::vector<Session*> JoiningTrainers::take(NodeId coordinator, const JobIdentity& job,
                                            std::span<const uint32_t> ranks) {
  std::vector<Session*> taken;
  for (const uint32_t rank : ranks) {
    const auto found = std::find_if(joining_.begin(), joining_.end(), [&](const auto& entry) {
      const Joining& joining = entry.second;
      return joining.coordinator == coordinator && joining.session.rank() == rank &&
             joining.session.request().identity == job;
    });
    if (found == joining_.end()) continue;
    taken.push_back(&found->second.session);
    joining_.erase(found);
  }
  return taken;
}

void JoiningTrainers::fail(NodeId coordinator, const JobIdentity& job, const Status& reason) {
  std::erase_if(joining_, [&](const auto& entry) {
    Session& session = entry.second.session;
    if (entry.second.coordinator != coordinator || session.request().identity != job) return false;
    Status told = reason;
    if (reason.code() == StatusCode::DeadlineExceeded)
      told = {reason.code(), reason.message() + why_ranks_are_missing(session), reason.cause()};
    BRAID_LOG_WARN(session.log_fields(), "job '{}': rank {}: {}", job.name, session.rank(),
                   told.message());
    session.fail(told);
    return true;
  });
}

void JoiningTrainers::fail_all(const Status& reason) {
  for (auto& [id, joining] : joining_) joining.session.fail(reason);
}

void JoiningTrainers::on_peer_lost(const Peer& peer, const Status& reason) {
  std::erase_if(joining_, [&](const auto& entry) {
    if (entry.second.coordinator != peer.id) return false;
    Session& session = entry.second.session;
    session.fail(make_status(StatusCode::Unavailable,
                             "job '{}': lost its coordinator, node '{}': {}", session.job_name(),
                             peer.name, reason.message()));
    return true;
  });
}

size_t JoiningTrainers::jobs() const {
  std::unordered_set<JobIdentity> jobs;
  for (const auto& [id, joining] : joining_) jobs.insert(joining.session.request().identity);
  return jobs.size();
}

}  // namespace braid
