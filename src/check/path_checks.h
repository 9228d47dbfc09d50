// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/lifetime.h"
#include "check/path_facts.h"
#include "check/path_meter.h"
#include "control/control_plane.h"
#include "loop/timer.h"
#include "net/transport.h"

namespace braid {

// Checks of the way between this node and others, before a job: this node's, which an operator asks
// for, and its part in those of others, who ask it. They go the way of jobs: over the control
// plane, whose handshake proves the cluster key on both sides, and over the links that jobs use.
// What a node may ask of this one is bounded: PathMeter::kMillisecondsMax of sending to the asker,
// one after the other. Control loop only.
class PathChecks {
 public:
  static constexpr size_t kChecksMax = 64;

  struct Options {
    // Its name, address and port are the control plane's, the time and the rails of the moment.
    PathEnd self;
    uint32_t window_bytes = 0;  // of a flow
    // A link was opened that no job uses, and should close some time.
    std::function<void()> link_opened;
  };
  struct Request {
    uint32_t user = 0;  // who asks
    std::string host;
    uint16_t port = 0;          // 0: this daemon's own
    uint32_t milliseconds = 0;  // of each of four measurements; 0: none is made
  };
  using Done = std::function<void(const PathFacts&)>;

  // Made before the I/O loops run, and destroyed when they do not any more. All but the options
  // outlives it; `worker` reads what the kernel knows.
  PathChecks(Loop& loop, const std::vector<IoLoop>& io_loops, ControlPlane& control_plane,
             Transport& transport, WorkThread& worker, Options options);
  ~PathChecks();

  // `done` comes once, later, within 45 s. ResourceExhausted: kChecksMax are under way.
  Status check(Request request, Done done);
  // False: the message is neither a question nor an answer of a check.
  bool on_control_message(const Peer& from, const proto::ControlMessage& message);

 private:
  struct Check;
  struct Asked;
  using Answer = std::function<void(Result<std::string> json)>;

  PathEnd describe_self() const;
  uint64_t wall_ns() const;

  // As the one who asks, in this order.
  void on_connected(Check& check, const Result<Peer>& peer);
  void ask_facts(Check& check);
  void look_both_ways(Check& check);
  void measure_next(Check& check);
  void take_rate(Check& check, PathRate rate);
  void finish(Check& check);
  void fail(Check& check, const std::string& error);
  void ask(const Check& check, proto::PathQuestion what, Answer answer);
  void on_reply(const Peer& from, const proto::PathReply& reply);

  // As the one who is asked.
  void on_query(const Peer& from, const proto::PathQuery& query);
  void reply(NodeId to, uint64_t question, const Result<std::string>& json);

  // Whether this node reaches the peer where the peer says that it is.
  void look(const Peer& peer, std::function<void(const PathBack&)> seen);

  Loop& loop_;
  ControlPlane& control_plane_;
  Transport& transport_;
  const Options options_;
  PathMeter meter_;
  uint64_t numbers_ = 0;
  std::map<uint64_t, std::unique_ptr<Check>> checks_;  // under way
  std::map<uint64_t, std::unique_ptr<Asked>> asked_;   // of other nodes, by question
  size_t being_answered_ = 0;                          // of other nodes' questions
  Lifetime lifetime_;
};

}  // namespace braid
