// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/log.h"
#include "control/control_plane.h"
#include "loop/timer.h"
#include "messages/control_messages.h"
#include "messages/job_owner.h"

namespace braid {

// What all ranks of a job have said of it.
struct JobTerms {
  JobIdentity identity;
  uint32_t user = 0;  // of its first rank
  uint32_t world_size = 0;
  uint32_t weight = 1;

  const std::string& name() const { return identity.name; }
  JobLabel label() const { return {identity.name, user}; }
  LineJob line() const { return {identity.name, user}; }
};

// A job whose ranks are coming together.
struct FormingJob {
  struct Member {
    Peer peer;
    int64_t process_id = 0;
    std::string rack{};
  };
  JobTerms terms;
  uint32_t timeout_ms = 0;
  CutSettings cut;                     // of the first node
  std::map<uint32_t, Member> members;  // by rank
  std::unique_ptr<Timer> deadline;

  // The ranks that this node has brought.
  std::vector<uint32_t> ranks_of(NodeId node) const;
};

// Ranks for people: the first few, then how many more.
std::string name_ranks(const std::vector<uint32_t>& ranks);

// The jobs whose trainers named this node as their master, until all ranks are there. Ranks come
// together whose job has the same name and the same owner. A job that fails meanwhile is forgotten,
// and its ranks are told. Control loop only.
class FormingJobs {
 public:
  static constexpr size_t kJobsMax = 1024;
  static constexpr size_t kJobsPerUserMax = kJobsMax / 4;
  static constexpr uint32_t kWorldSizeMax = 65536;
  static constexpr uint64_t kContradictionMs = 10'000;

  // `on_complete`: all ranks are there; the job is no more one of these.
  FormingJobs(Loop& loop, ControlPlane& control_plane,
              std::function<void(const FormingJob&)> on_complete)
      : loop_(loop), control_plane_(control_plane), on_complete_(std::move(on_complete)) {}
  FormingJobs(const FormingJobs&) = delete;
  FormingJobs& operator=(const FormingJobs&) = delete;

  void on_join(const Peer& from, const proto::JoinJob& join);
  void on_peer_lost(const Peer& peer, const Status& reason);
  // Null: there is none of this name and owner.
  const FormingJob* find(const JobIdentity& identity) const;
  void fail(const JobIdentity& identity, const Status& reason);

 private:
  // Ranks that contradict each other fail a job at once; ranks that come a moment later are told,
  // too, instead of waiting for partners who have given up. A rank that was told and comes again is
  // a new attempt.
  struct Contradiction {
    Status reason;
    std::set<uint32_t> told;
    std::unique_ptr<Timer> expiry;
  };

  // Ok, or why the rank cannot join; the job is there then.
  Status admit(const JobIdentity& identity, const proto::JoinJob& join);
  Status check_room(uint32_t user) const;
  // Its first rank has come; the others have as long as that one is willing to wait.
  void begin(const JobIdentity& identity, const proto::JoinJob& first);
  void on_deadline(const JobIdentity& identity);
  const Status* find_contradiction(const JobIdentity& identity, uint32_t rank);
  void fail_contradictory(const FormingJob& job, const Peer& from, uint32_t rank,
                          const Status& reason);

  Loop& loop_;
  ControlPlane& control_plane_;
  const std::function<void(const FormingJob&)> on_complete_;
  std::unordered_map<JobIdentity, FormingJob> jobs_;
  std::unordered_map<JobIdentity, Contradiction> contradictions_;
};

}  // namespace braid
