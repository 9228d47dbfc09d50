// SPDX-License-Identifier: Apache-2.0
#include "check/path_checks.h"

#include <algorithm>
#include <array>
#include <utility>

#include <time.h>

#include "base/log.h"
#include "base/printable.h"
#include "base/socket_address.h"
#include "check/path_rails.h"

namespace braid {
namespace {

using proto::PathQuestion;

// The other node answers at once.
constexpr uint32_t kAnswerMs = 5'000;
// It connects and opens flows, 5 s at most for each, at the same time.
constexpr uint32_t kBackMs = 12'000;
// For others whose measurements go first, beside the time of the measurement itself.
constexpr uint32_t kTurnMs = 6'000;
constexpr size_t kQuestionsMax = 128;  // of other nodes, at a time
constexpr size_t kRailsMax = 256;

std::vector<std::string> addresses_of(const PathEnd& end) {
  std::vector<std::string> addresses;
  for (const PathEnd::Rail& rail : end.rails) addresses.push_back(rail.address);
  return addresses;
}

std::vector<std::string> addresses_of(const proto::PathQuery& query) {
  std::vector<std::string> addresses;
  if (query.addresses() == nullptr) return addresses;
  for (const auto* address : *query.addresses()) {
    if (addresses.size() < kRailsMax) addresses.push_back(address->str());
  }
  return addresses;
}

flatbuffers::FlatBufferBuilder make_query(uint64_t question, PathQuestion what,
                                          uint32_t milliseconds, const PathEnd& self) {
  flatbuffers::FlatBufferBuilder builder;
  const auto query = proto::CreatePathQuery(builder, question, what, milliseconds,
                                            builder.CreateVectorOfStrings(addresses_of(self)));
  builder.Finish(
      proto::CreateControlMessage(builder, proto::ControlBody::PathQuery, query.Union()));
  return builder;
}

}  // namespace

struct PathChecks::Check {
  uint64_t number = 0;
  Request request;
  Done done;
  Peer peer;
  PathFacts facts;
  size_t looks_awaited = 0;
  size_t measured = 0;  // of the four
};

// A question to another node, until it is answered.
struct PathChecks::Asked {
  explicit Asked(Loop& loop) : deadline(loop) {}
  NodeId node = 0;
  Answer answer;
  Timer deadline;
};

PathChecks::PathChecks(Loop& loop, const std::vector<IoLoop>& io_loops, ControlPlane& control_plane,
                       Transport& transport, WorkThread& worker, Options options)
    : loop_(loop),
      control_plane_(control_plane),
      transport_(transport),
      options_(std::move(options)),
      meter_(loop, io_loops, transport, worker,
             {options_.self.flows_per_link, options_.window_bytes, options_.self.chunk_bytes}) {}

PathChecks::~PathChecks() { lifetime_.end(); }

PathEnd PathChecks::describe_self() const {
  PathEnd self = options_.self;
  const Peer& peer = control_plane_.self();
  self.name = peer.name;
  self.address = peer.address;
  self.port = peer.port;
  self.wall_ns = wall_ns();
  for (const RailStatus& rail : transport_.rails())
    self.rails.push_back(describe_rail(rail.name, rail.is_up, peer.address));
  return self;
}

uint64_t PathChecks::wall_ns() const {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// --- who asks ---

Status PathChecks::check(Request request, Done done) {
  BRAID_ASSERT_IN_LOOP(loop_);
  if (checks_.size() >= kChecksMax) {
    return make_status(StatusCode::ResourceExhausted,
                       "{} checks are under way on this node, and it takes no more: check again "
                       "when some have ended",
                       checks_.size());
  }
  const uint64_t number = ++numbers_;
  auto& check = *(checks_[number] = std::make_unique<Check>());
  check.number = number;
  if (request.port == 0) request.port = control_plane_.self().port;
  check.facts.asked = host_and_port(request.host, request.port);
  check.request = std::move(request);
  check.done = std::move(done);
  control_plane_.connect_for(
      check.request.user, check.request.host, check.request.port,
      lifetime_.guard([this, &check](const Result<Peer>& peer) { on_connected(check, peer); }));
  return Status::ok();
}

void PathChecks::on_connected(Check& check, const Result<Peer>& peer) {
  if (!peer) return fail(check, peer.status().message());
  if (peer->id == control_plane_.self().id) {
    return fail(check, fmt::format("{} is this node itself: name the other nodes of the job",
                                   check.facts.asked));
  }
  check.peer = *peer;
  check.facts.here = describe_self();
  BRAID_LOG_INFO(LogFields{.peer = peer->name}, "user {} checks the way to node '{}' ({})",
                 check.request.user, peer->name, host_and_port(peer->address, peer->port));
  ask_facts(check);
}

void PathChecks::ask_facts(Check& check) {
  const uint64_t asked_ns = wall_ns();
  ask(check, PathQuestion::Facts, [this, &check, asked_ns](const Result<std::string>& json) {
    const uint64_t answered_ns = wall_ns();
    auto there = json ? parse_path_end(*json) : json.status();
    if (!there) return fail(check, there.status().message());
    PathFacts& facts = check.facts;
    facts.there = std::move(*there);
    const uint64_t between_ns = answered_ns > asked_ns ? answered_ns - asked_ns : 0;
    facts.clock_ahead_ns =
        static_cast<int64_t>(facts.there.wall_ns) - static_cast<int64_t>(asked_ns + between_ns / 2);
    facts.clock_error_ns = between_ns / 2;
    facts.round_trip_ns = control_plane_.round_trip_ns(check.peer.id).value_or(0);
    look_both_ways(check);
  });
}

void PathChecks::look_both_ways(Check& check) {
  check.looks_awaited = 2;
  const auto seen = [this, &check] {
    if (--check.looks_awaited == 0) measure_next(check);
  };
  look(check.peer, [&check, seen](const PathBack& back) {
    check.facts.to_there = back;
    seen();
  });
  ask(check, PathQuestion::Back, [&check, seen](const Result<std::string>& json) {
    const auto back = json ? parse_path_back(*json) : json.status();
    if (back) {
      check.facts.to_here = *back;
    } else {
      check.facts.to_here.control = back.status().message();
    }
    seen();
  });
}

void PathChecks::measure_next(Check& check) {
  PathFacts& facts = check.facts;
  const bool is_open = facts.to_there.flows.empty() && facts.to_here.flows.empty() &&
                       facts.to_there.control.empty() && facts.to_here.control.empty();
  constexpr size_t kMeasurements = 4;
  if (!is_open || check.request.milliseconds == 0 || check.measured == kMeasurements)
    return finish(check);
  const bool is_one_flow = check.measured < 2;
  const bool is_to_there = check.measured % 2 == 0;
  if (is_to_there) {
    return meter_.measure(
        {check.peer, is_one_flow, check.request.milliseconds, addresses_of(facts.there)},
        lifetime_.guard([this, &check](const PathRate& rate) { take_rate(check, rate); }));
  }
  ask(check, is_one_flow ? PathQuestion::OneFlow : PathQuestion::AllFlows,
      [this, &check](const Result<std::string>& json) {
        auto rate = json ? parse_path_rate(*json) : json.status();
        PathRate failed;
        failed.error = rate.status().message();
        take_rate(check, rate ? std::move(*rate) : failed);
      });
}

void PathChecks::take_rate(Check& check, PathRate rate) {
  PathFacts& facts = check.facts;
  const std::array<std::optional<PathRate>*, 4> rates = {&facts.one_to_there, &facts.one_to_here,
                                                         &facts.all_to_there, &facts.all_to_here};
  *rates.at(check.measured++) = std::move(rate);
  measure_next(check);
}

void PathChecks::fail(Check& check, const std::string& error) {
  check.facts.error = error;
  finish(check);
}

void PathChecks::finish(Check& check) {
  const auto ended = std::move(checks_.extract(check.number).mapped());
  ended->done(ended->facts);
}

void PathChecks::ask(const Check& check, PathQuestion what, Answer answer) {
  const Peer& peer = check.peer;
  const uint32_t milliseconds = check.request.milliseconds;
  const uint64_t question = ++numbers_;
  auto& asked = *(asked_[question] = std::make_unique<Asked>(loop_));
  asked.node = peer.id;
  asked.answer = std::move(answer);
  const uint32_t deadline_ms = what == PathQuestion::Facts  ? kAnswerMs
                               : what == PathQuestion::Back ? kBackMs
                                                            : milliseconds + kTurnMs;
  auto end = [this, question](const Status& why) {
    const auto ended = std::move(asked_.extract(question).mapped());
    ended->answer(why);
  };
  auto query = make_query(question, what, milliseconds, check.facts.here);
  if (const Status sent = control_plane_.send(peer.id, query); !sent) {
    asked.deadline.start_once(0, [end, sent] { end(sent); });
    return;
  }
  asked.deadline.start_once(deadline_ms, [end, name = peer.name, deadline_ms] {
    end(make_status(StatusCode::DeadlineExceeded,
                    "node '{}' has not answered a question of this check within {} ms: it is "
                    "overloaded, or its braidd is older than such checks (then upgrade it)",
                    name, deadline_ms));
  });
}

void PathChecks::on_reply(const Peer& from, const proto::PathReply& reply) {
  const auto found = asked_.find(reply.question());
  if (found == asked_.end() || found->second->node != from.id) return;  // too late, or not asked
  const auto ended = std::move(asked_.extract(found).mapped());
  if (reply.error()->size() == 0) return ended->answer(reply.json()->str());
  ended->answer(make_status(StatusCode::Unavailable, "node '{}': {}", from.name,
                            printable_lines(reply.error()->str())));
}

// --- who is asked ---

bool PathChecks::on_control_message(const Peer& from, const proto::ControlMessage& message) {
  switch (message.body_type()) {
    case proto::ControlBody::PathQuery:
      on_query(from, *message.body_as_PathQuery());
      return true;
    case proto::ControlBody::PathReply:
      on_reply(from, *message.body_as_PathReply());
      return true;
    default:
      return false;
  }
}

void PathChecks::on_query(const Peer& from, const proto::PathQuery& query) {
  const uint64_t question = query.question();
  if (being_answered_ >= kQuestionsMax) {
    return reply(from.id, question,
                 make_status(StatusCode::ResourceExhausted,
                             "too many others check it at the same time: check again later"));
  }
  const auto told = lifetime_.guard([this, to = from.id, question](const auto& facts) {
    --being_answered_;
    reply(to, question, to_json(facts));
  });
  switch (query.what()) {
    case PathQuestion::Facts:
      return reply(from.id, question, to_json(describe_self()));
    case PathQuestion::Back:
      ++being_answered_;
      return look(from, told);
    case PathQuestion::OneFlow:
    case PathQuestion::AllFlows:
      ++being_answered_;
      return meter_.measure(
          {from, query.what() == PathQuestion::OneFlow, query.milliseconds(), addresses_of(query)},
          told);
  }
  reply(from.id, question,
        make_status(StatusCode::Protocol, "a question that it does not know: upgrade it"));
}

void PathChecks::reply(NodeId to, uint64_t question, const Result<std::string>& json) {
  flatbuffers::FlatBufferBuilder builder;
  const auto body = proto::CreatePathReplyDirect(builder, question, json ? json->c_str() : "",
                                                 json ? "" : json.status().message().c_str());
  builder.Finish(proto::CreateControlMessage(builder, proto::ControlBody::PathReply, body.Union()));
  (void)control_plane_.send(to, builder);  // an asker that is lost waits no more
}

// --- both ---

void PathChecks::look(const Peer& peer, std::function<void(const PathBack&)> seen) {
  struct Looks {
    PathBack back;
    size_t awaited = 2;
    std::function<void(const PathBack&)> seen;
    void note() {
      if (--awaited == 0) seen(back);
    }
  };
  const auto looks = std::make_shared<Looks>();
  looks->seen = std::move(seen);
  control_plane_.connect_anew(
      peer.address, peer.port, lifetime_.guard([looks, id = peer.id](const Result<Peer>& found) {
        if (!found) {
          looks->back.control = found.status().message();
        } else if (found->id != id) {
          looks->back.control = fmt::format(
              "another node, '{}', answers there: node.address of both must differ", found->name);
        }
        looks->note();
      }));
  transport_.open_link(peer.id, lifetime_.guard([this, looks](const Status& opened) {
    if (!opened) looks->back.flows = opened.message();
    if (opened) options_.link_opened();
    looks->note();
  }));
}

}  // namespace braid
