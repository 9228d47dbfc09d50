// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/lifetime.h"
#include "control/control_plane.h"
#include "job/session.h"
#include "loop/timer.h"
#include "messages/control_messages.h"

namespace braid {

// The trainers of this node that wait for their jobs to begin: finds their coordinators, and asks
// these to let them join. A session that fails here is told why. Control loop only.
class JoiningTrainers {
 public:
  // A coordinator's daemon that cannot be reached yet may just be starting: so long it is tried
  // again.
  static constexpr uint32_t kRetryForMs = 10'000;
  static constexpr uint32_t kRetryEveryMs = 250;
  // Past a trainer's own timeout, so that the coordinator's explanation comes first.
  static constexpr uint32_t kGraceMs = 3'000;

  struct Options {
    uint16_t control_port = 0;         // of coordinators whose port trainers do not name
    bool listens_on_loopback = false;  // this node's address is a loopback address
    std::string why_own_host_only;     // see config/rails.h; empty: other nodes reach this one
    CutSettings cut;                   // of this node's engines
    std::string rack;
  };

  JoiningTrainers(Loop& loop, const Clock& clock, ControlPlane& control_plane, Options options)
      : loop_(loop), clock_(clock), control_plane_(control_plane), options_(std::move(options)) {}

  // PermissionDenied: those of its job that wait here already run as another user.
  Status check_user(const Session& session) const;
  void add(Session& session);
  // The trainer has gone; its coordinator is told if the trainer waits here.
  void remove(const Session& session, const Status& reason);
  // The job begins with these ranks: those of them that wait for it wait no more.
  std::vector<Session*> take(NodeId coordinator, const JobIdentity& job,
                             std::span<const uint32_t> ranks);
  void fail(NodeId coordinator, const JobIdentity& job, const Status& reason);
  void fail_all(const Status& reason);
  void on_peer_lost(const Peer& peer, const Status& reason);
  size_t jobs() const;  // that trainers wait for

 private:
  struct Joining {
    Joining(Loop& loop, Session& waiting) : session(waiting), timer(loop) {}
    Session& session;
    NodeId coordinator = 0;  // once JoinJob was sent
    uint64_t retry_until_ms = 0;
    uint64_t give_up_ms = 0;
    Timer timer;
  };

  void find_coordinator(uint64_t id);
  void join(uint64_t id, const Result<Peer>& coordinator);
  void give_up(uint64_t id, const Status& reason);
  // Where a coordinator's daemon listens.
  struct Place {
    std::string host;
    uint16_t port = 0;
  };
  Place place_of(const Session& session) const;
  bool is_this_node(const Place& master) const;
  Status check_coordinator(const Session& session, const Peer& found) const;
  std::string why_ranks_are_missing(const Session& session) const;

  Loop& loop_;
  const Clock& clock_;
  ControlPlane& control_plane_;
  const Options options_;
  std::unordered_map<uint64_t, Joining> joining_;  // numbered as they came
  uint64_t last_id_ = 0;
  Lifetime lifetime_;  // of callbacks that may come after the end
};

}  // namespace braid
