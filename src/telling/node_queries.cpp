// SPDX-License-Identifier: Apache-2.0
#include "telling/node_queries.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "messages/control_messages.h"

namespace braid {
namespace {

struct Deadlines {
  uint32_t of_nodes_ms;
  uint32_t of_coordinator_ms;  // of all nodes, through the coordinator
};
constexpr Deadlines kFactsDeadlines{2000, 2500};
constexpr Deadlines kTimelineDeadlines{6000, 7000};
// What the coordinator says of all nodes, with room for what stands around their own words.
constexpr size_t kFactsBytesOfAllMax = 64 << 20;
constexpr size_t kTimelineAnswerBytesMax = NodeQueries::kTimelineBytesOfAllMax + (1 << 20);

// JSON of names that may be no UTF-8.
std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

struct NodeQueries::Answers {
  struct Told {
    std::string name;
    int64_t offset_ns = 0;
    uint64_t error_ns = 0;
    std::optional<std::string> json;
  };
  bool is_timeline = false;
  std::string job;
  uint64_t first_step = 0;
  std::vector<Told> nodes;

  std::string join() const {
    std::string told, missing;
    for (const Told& node : nodes) {
      // What is no JSON must not make the whole answer none.
      const bool is_good = node.json && nlohmann::json::accept(*node.json);
      std::string& list = is_good ? told : missing;
      if (!list.empty()) list += ',';
      if (!is_good) {
        list += json_string(node.name);
      } else if (is_timeline) {
        list += fmt::format(R"({{"offset_ns":{},"error_ns":{},"timeline":)", node.offset_ns,
                            node.error_ns);
        list += *node.json;
        list += '}';
      } else {
        list += *node.json;
      }
    }
    const std::string first =
        is_timeline ? fmt::format(R"("first_step":{},)", first_step) : std::string();
    return fmt::format(R"({{"job":{},{}"nodes":[{}],"missing":[{}]}})", json_string(job), first,
                       told, missing);
  }
};

// Nobody takes the places of all others.
Status NodeQueries::check_user(const Question& question) const {
  size_t gatherings = 0, timelines = 0;
  for (const auto& [number, other] : gatherings_) {
    if (!question.user || other->question.user != question.user) continue;
    ++gatherings;
    timelines += other->question.is_timeline() ? 1 : 0;
  }
  if (question.is_timeline() && timelines >= kTimelinesOfUserMax) {
    return make_status(StatusCode::ResourceExhausted,
                       "{} timelines are being made for user {} already: ask again later",
                       kTimelinesOfUserMax, *question.user);
  }
  if (gatherings >= kGatheringsOfUserMax) {
    return make_status(StatusCode::ResourceExhausted,
                       "{} questions about jobs of user {} wait for their answers already: ask "
                       "again later",
                       kGatheringsOfUserMax, *question.user);
  }
  return Status::ok();
}

Status NodeQueries::gather(const Job& job, Question question, Gathered gathered) {
  const auto timelines = static_cast<size_t>(std::ranges::count_if(
      gatherings_, [](const auto& other) { return other.second->question.is_timeline(); }));
  if (question.is_timeline() && timelines >= kTimelinesMax) {
    return make_status(StatusCode::ResourceExhausted,
                       "{} timelines are being made already: ask again later", kTimelinesMax);
  }
  if (gatherings_.size() >= kGatheringsMax) {
    return make_status(StatusCode::ResourceExhausted,
                       "{} questions about jobs wait for their answers already: ask again later",
                       kGatheringsMax);
  }
  BRAID_RETURN_IF_ERROR(check_user(question));
  const uint64_t number = ++last_question_;
  auto& gathering = gatherings_[number] = std::make_unique<Gathering>(loop_);
  gathering->number = number;
  gathering->question = question;
  gathering->job_key = job.key();
  gathering->job_name = job.name();
  for (const MemberNode& node : job.membership().nodes)
    gathering->nodes.emplace_back().peer = node.peer;
  if (question.is_timeline()) {
    gathering->window = sources_.window(job, question.timeline_steps);
    gathering->bytes_max =
        std::min(kTimelineBytesMax, kTimelineBytesOfAllMax / gathering->nodes.size());
  } else {
    gathering->bytes_max = kFactsBytesMax;
  }
  // A coordinator without ranks does not know the job's steps: then nodes ask each other.
  const NodeId coordinator = job.coordinator().id;
  gathering->is_asked_of_coordinator =
      coordinator != control_plane_.self().id && job.has_member(coordinator);
  gathering->coordinator = coordinator;
  gathering->gathered = std::move(gathered);
  const Deadlines& deadlines = question.is_timeline() ? kTimelineDeadlines : kFactsDeadlines;
  gathering->deadline.start_once(
      gathering->is_asked_of_coordinator ? deadlines.of_coordinator_ms : deadlines.of_nodes_ms,
      [this, number] { conclude(number); });
  ask(*gathering, job);
  return Status::ok();
}

void NodeQueries::ask(Gathering& gathering, const Job& job) {
  const NodeId self = control_plane_.self().id;
  for (Node& node : gathering.nodes) {
    if (node.peer.id == self) {
      node.is_awaited = true;
    } else if (!gathering.is_asked_of_coordinator || node.peer.id == gathering.coordinator) {
      ask_other(gathering, node);
    }
  }
  ask_self(gathering, job);
}

void NodeQueries::ask_self(Gathering& gathering, const Job& job) {
  Told told = lifetime_.guard([this, question = gathering.number,
                               self = control_plane_.self().id](std::optional<std::string> json) {
    on_answer(question, self, std::move(json));
  });
  if (!gathering.question.is_timeline()) return sources_.facts(job, std::move(told));
  const Window& window = gathering.window;
  sources_.timeline(job, {0, window.begin_ns, window.end_ns, gathering.bytes_max}, std::move(told));
}

// Who cannot be asked is missing.
void NodeQueries::ask_other(Gathering& gathering, Node& node) {
  if (gathering.question.is_timeline() && !gathering.is_asked_of_coordinator) {
    node.is_awaited = ask_clock(gathering, node);
    return;
  }
  std::optional<TimelineSpan> timeline;
  if (gathering.question.is_timeline()) timeline = {gathering.question.timeline_steps};
  auto message = make_facts_query(gathering.job_key, gathering.number,
                                  gathering.is_asked_of_coordinator, timeline);
  node.is_awaited = control_plane_.send(node.peer.id, message).is_ok();
}

bool NodeQueries::ask_clock(Gathering& gathering, Node& node) {
  ++node.rounds_asked;
  node.asked_ns = clock_.now_ns();
  auto message = make_clock_query(gathering.job_key, gathering.number, node.asked_ns);
  return control_plane_.send(node.peer.id, message).is_ok();
}

void NodeQueries::on_clock_query(const Peer& from, const proto::ClockQuery& query) {
  const uint64_t received_ns = clock_.now_ns();
  auto message = make_clock_reply(query, received_ns, clock_.now_ns());
  if (const Status sent = control_plane_.send(from.id, message); !sent)
    BRAID_LOG_INFO("an answer with this node's time is lost: {}", sent.message());
}

void NodeQueries::on_clock_reply(const Peer& from, const proto::ClockReply& reply) {
  const uint64_t got_ns = clock_.now_ns();
  Gathering* gathering = find(reply.question(), reply.job_key());
  if (gathering == nullptr || !gathering->question.is_timeline()) return;
  Node* node = find_awaited(*gathering, from.id);
  if (node == nullptr || node->asked_ns == 0 || node->asked_ns != reply.asked_ns()) return;
  node->clock.add(node->asked_ns, reply.received_ns(), reply.answered_ns(), got_ns);
  node->asked_ns = 0;
  const bool is_asked = node->rounds_asked < ClockOffset::kRounds
                            ? ask_clock(*gathering, *node)
                            : node->clock.rounds() != 0 && ask_timeline(*gathering, *node);
  if (!is_asked) drop(*gathering, *node);
}

bool NodeQueries::ask_timeline(Gathering& gathering, Node& node) {
  const auto there = [&node](uint64_t ns) { return ns == 0 ? 0 : node.clock.there(ns); };
  const TimelineSpan span{0, there(gathering.window.begin_ns), there(gathering.window.end_ns),
                          gathering.bytes_max};
  auto message = make_facts_query(gathering.job_key, gathering.number, false, span);
  return control_plane_.send(node.peer.id, message).is_ok();
}

void NodeQueries::on_query(const Peer& from, const Job& job, const proto::FactsQuery& query) {
  const NodeId to = from.id;
  const uint64_t job_key = job.key(), question = query.question();
  const auto timeline = timeline_of(query);
  if (query.of_all_nodes()) {
    // Who gets no answer tells what it knows itself.
    const uint32_t steps = timeline ? std::clamp(timeline->steps, 1U, kStepsMax) : 0;
    const Status asked =
        gather(job, {steps, job.user()},
               [this, to, job_key, question](std::shared_ptr<const std::string> json) {
                 reply(to, job_key, question, std::move(json));
               });
    if (!asked)
      BRAID_LOG_WARN(LogFields{.job = {job.name(), job.user()}, .peer = from.name},
                     "node '{}' gets no answer: {}", from.name, asked.message());
    return;
  }
  if (!timeline) return sources_.facts(job, reply_to(to, job_key, question));
  TimelineSpan span = *timeline;
  span.bytes_max = std::min<uint64_t>(span.bytes_max, kTimelineBytesMax);
  sources_.timeline(job, span, reply_to(to, job_key, question));
}

NodeQueries::Told NodeQueries::reply_to(NodeId to, uint64_t job_key, uint64_t question) {
  return lifetime_.guard([this, to, job_key, question](std::optional<std::string> json) {
    if (json) reply(to, job_key, question, std::make_shared<const std::string>(std::move(*json)));
  });
}

void NodeQueries::reply(NodeId to, uint64_t job_key, uint64_t question,
                        std::shared_ptr<const std::string> json) {
  answers_.send(std::move(json), [this, to, job_key, question](const PartedAnswers::Part& part) {
    auto message = make_facts_reply(job_key, question, part.text, part.number, part.parts);
    const Status sent = control_plane_.send(to, message);
    if (!sent) BRAID_LOG_INFO("an answer about a job is lost: {}", sent.message());
    return sent.is_ok();
  });
}

NodeQueries::Gathering* NodeQueries::find(uint64_t question, uint64_t job_key) {
  const auto found = gatherings_.find(question);
  return found == gatherings_.end() || found->second->job_key != job_key ? nullptr
                                                                         : found->second.get();
}

NodeQueries::Node* NodeQueries::find_awaited(Gathering& gathering, NodeId id) {
  const auto node = std::ranges::find_if(gathering.nodes, [id](const Node& candidate) {
    return candidate.peer.id == id && candidate.is_awaited;
  });
  return node == gathering.nodes.end() ? nullptr : &*node;
}

void NodeQueries::on_reply(const Peer& from, const proto::FactsReply& reply) {
  Gathering* gathering = find(reply.question(), reply.job_key());
  if (gathering == nullptr || from.id == control_plane_.self().id) return;
  Node* node = find_awaited(*gathering, from.id);
  if (node == nullptr) return;
  const bool is_of_all = gathering->is_asked_of_coordinator;
  const size_t of_all_max =
      gathering->question.is_timeline() ? kTimelineAnswerBytesMax : kFactsBytesOfAllMax;
  PartedText& coming = is_of_all ? gathering->all_coming : node->coming;
  switch (coming.add(reply.json()->string_view(), reply.part(), reply.parts(),
                     is_of_all ? of_all_max : gathering->bytes_max)) {
    case PartedText::Outcome::NeedsMore:
      return;
    case PartedText::Outcome::Refused:
      return drop(*gathering, *node);
    case PartedText::Outcome::Complete:
      break;
  }
  if (!is_of_all) return on_answer(gathering->number, from.id, coming.take());
  gathering->all_told = coming.take();
  conclude(gathering->number);
}

// It is not waited for any more.
void NodeQueries::drop(Gathering& gathering, Node& node) {
  on_answer(gathering.number, node.peer.id, std::nullopt);
}

void NodeQueries::on_answer(uint64_t question, NodeId from, std::optional<std::string> json) {
  const auto found = gatherings_.find(question);
  if (found == gatherings_.end()) return;
  if (Node* node = find_awaited(*found->second, from); node != nullptr) {
    node->is_awaited = false;
    node->told = std::move(json);
  }
  if (std::ranges::none_of(found->second->nodes, &Node::is_awaited)) conclude(question);
}

void NodeQueries::conclude(uint64_t question) {
  auto gathering = std::move(gatherings_.extract(question).mapped());
  gathering->deadline.stop();
  if (gathering->all_told)
    return gathering->gathered(
        std::make_shared<const std::string>(std::move(*gathering->all_told)));
  auto answers = std::make_shared<Answers>();
  answers->is_timeline = gathering->question.is_timeline();
  answers->job = gathering->job_name;
  answers->first_step = gathering->window.first_step;
  for (Node& node : gathering->nodes) {
    const bool is_self = node.peer.id == control_plane_.self().id;
    answers->nodes.push_back({node.peer.name, node.clock.offset_ns(),
                              is_self ? 0 : node.clock.error_ns(), std::move(node.told)});
  }
  auto joined = std::make_shared<std::string>();
  const auto join = [answers, joined] { *joined = answers->join(); };
  const auto tell = lifetime_.guard([gathered = gathering->gathered, joined] { gathered(joined); });
  if (joiner_.run(join, tell)) return;
  // Too much else is to be done there.
  join();
  loop_.defer(tell);
}

}  // namespace braid
