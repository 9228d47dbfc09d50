// SPDX-License-Identifier: Apache-2.0
#include "job/facts_queries.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "messages/control_messages.h"

namespace braid {
namespace {

// Of names that may be no UTF-8.
std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Status FactsQueries::gather(const Job& job, Gathered gathered) {
  if (gatherings_.size() >= kGatheringsMax) {
    return make_status(StatusCode::ResourceExhausted,
                       "{} questions about jobs wait for their answers already: ask again later",
                       kGatheringsMax);
  }
  const uint64_t question = ++last_question_;
  auto& gathering = gatherings_[question] = std::make_unique<Gathering>(loop_);
  gathering->job_key = job.key();
  gathering->job_name = job.name();
  for (const MemberNode& node : job.membership().nodes) gathering->nodes.push_back(node.peer);
  // A coordinator without ranks does not know the job's steps: then nodes ask each other.
  const NodeId coordinator = job.coordinator().id;
  gathering->is_asked_of_coordinator =
      coordinator != control_plane_.self().id && job.has_member(coordinator);
  gathering->coordinator = coordinator;
  gathering->gathered = std::move(gathered);
  gathering->deadline.start_once(
      gathering->is_asked_of_coordinator ? kCoordinatorTimeoutMs : kAnswerTimeoutMs,
      [this, question] { conclude(question); });
  ask(*gathering, question);
  return Status::ok();
}

void FactsQueries::ask(Gathering& gathering, uint64_t question) {
  const NodeId self = control_plane_.self().id;
  gathering.awaited.push_back(self);
  const bool asks_nodes = !gathering.is_asked_of_coordinator;
  for (const Peer& node : gathering.nodes) {
    if (node.id == self || (!asks_nodes && node.id != gathering.coordinator)) continue;
    auto message = make_facts_query(gathering.job_key, question, !asks_nodes);
    // Who cannot be asked is missing.
    if (control_plane_.send(node.id, message)) gathering.awaited.push_back(node.id);
  }
  tell_(gathering.job_key, lifetime_.guard([this, question, self](std::optional<std::string> json) {
    on_answer(question, self, std::move(json));
  }));
}

void FactsQueries::on_query(const Peer& from, const Job& job, const proto::FactsQuery& query) {
  const uint64_t job_key = job.key(), question = query.question();
  const NodeId to = from.id;
  if (query.of_all_nodes()) {
    // Who gets no answer tells what it knows itself.
    const Status asked = gather(job, [this, to, job_key, question](const std::string& json) {
      reply(to, job_key, question, json);
    });
    if (!asked) BRAID_LOG_WARN("node '{}' gets no answer: {}", from.name, asked.message());
    return;
  }
  tell_(job_key, lifetime_.guard([this, to, job_key, question](std::optional<std::string> json) {
    if (json) reply(to, job_key, question, *json);
  }));
}

void FactsQueries::reply(NodeId to, uint64_t job_key, uint64_t question, const std::string& json) {
  auto message = make_facts_reply(job_key, question, json);
  if (const Status sent = control_plane_.send(to, message); !sent)
    BRAID_LOG_INFO("an answer about a job is lost: {}", sent.message());
}

void FactsQueries::on_reply(const Peer& from, const proto::FactsReply& reply) {
  const auto found = gatherings_.find(reply.question());
  if (found == gatherings_.end() || found->second->job_key != reply.job_key()) return;
  Gathering& gathering = *found->second;
  if (!std::ranges::count(gathering.awaited, from.id)) return;
  std::string json = reply.json()->str();
  if (gathering.is_asked_of_coordinator) {
    gathering.all_told = std::move(json);
    return conclude(reply.question());
  }
  // What is no JSON must not make the whole answer none.
  const bool is_good = json.size() <= kFactsBytesMax && nlohmann::json::accept(json);
  on_answer(reply.question(), from.id, is_good ? std::optional(std::move(json)) : std::nullopt);
}

void FactsQueries::on_answer(uint64_t question, NodeId from, std::optional<std::string> json) {
  const auto found = gatherings_.find(question);
  if (found == gatherings_.end()) return;
  Gathering& gathering = *found->second;
  std::erase(gathering.awaited, from);
  if (json) gathering.told[from] = std::move(*json);
  if (gathering.awaited.empty()) conclude(question);
}

void FactsQueries::conclude(uint64_t question) {
  auto gathering = std::move(gatherings_.extract(question).mapped());
  gathering->deadline.stop();
  if (gathering->all_told) return gathering->gathered(std::move(*gathering->all_told));
  std::string nodes, missing;
  for (const Peer& node : gathering->nodes) {
    const auto told = gathering->told.find(node.id);
    const bool is_told = told != gathering->told.end();
    std::string& list = is_told ? nodes : missing;
    if (!list.empty()) list += ',';
    list += is_told ? told->second : json_string(node.name);
  }
  gathering->gathered(fmt::format(R"({{"job":{},"nodes":[{}],"missing":[{}]}})",
                                  json_string(gathering->job_name), nodes, missing));
}

}  // namespace braid
