// SPDX-License-Identifier: Apache-2.0
// What a node's jobs tell tools: to whom, and of which jobs.
#include <algorithm>

#include <unistd.h>

#include "base/processor_time.h"
#include "job/job_manager.h"

namespace braid {
namespace {

NodeFacts::Flow told(const FlowStatus& flow) {
  NodeFacts::Flow told;
  told.peer = flow.peer;
  told.io_loop = flow.io_loop;
  told.flow = flow.flow;
  told.rail = flow.rail;
  told.state = flow.state;
  told.bytes_sent = flow.bytes_sent;
  told.bytes_per_second = flow.bytes_per_second;
  told.failures = flow.failures;
  told.error = flow.error;
  told.failed_ago_ns = flow.failed_ago_ns;
  told.replaced_ago_ns = flow.replaced_ago_ns;
  return told;
}

}  // namespace

bool JobManager::may_see(uid_t user, const Job& job) {
  return user == 0 || user == ::geteuid() || user == job.user();
}

std::string JobManager::describe_jobs(
    const std::string& job_name, uid_t user,
    const std::function<std::string(const Job&)>& describe) const {
  std::string json = "[";
  for (const auto& [key, job] : jobs_) {
    if ((!job_name.empty() && job->name() != job_name) || !may_see(user, *job)) continue;
    if (json.size() > 1) json += ',';
    json += describe(*job);
  }
  return json + ']';
}

std::string JobManager::plans_json(const std::string& job_name, uid_t user) const {
  return describe_jobs(job_name, user, [this](const Job& job) { return plans_of(job); });
}

void JobManager::answer(ClientConnection& asker, std::string_view json, bool has_more) {
  flatbuffers::FlatBufferBuilder builder(json.size() + 128);
  const auto text = builder.CreateString(json);
  const auto body =
      proto::CreateStatusReply(builder, text, jobs_hidden_from(asker.credentials().uid), has_more);
  builder.Finish(proto::CreateClientMessage(builder, proto::ClientBody::StatusReply, body.Union()));
  asker.send(builder);
}

void JobManager::answer_in_parts(uint64_t client, std::string json) {
  answers_->send(std::make_shared<const std::string>(std::move(json)),
                 [this, client](const PartedAnswers::Part& part) {
                   const auto connection = clients_.find(client);
                   if (connection == clients_.end()) return false;
                   answer(*connection->second, part.text, !part.is_last());
                   return true;
                 });
}

// What would hold up the loop is done where plans are made.
void JobManager::make_queries() {
  WorkThread& maker =
      options_.planning.worker != nullptr ? *options_.planning.worker : services_->worker;
  answers_ = std::make_unique<PartedAnswers>(loop_);
  timelines_ = std::make_unique<JobTimelines>(*services_, maker, options_.timeline_directory);
  NodeQueries::Sources sources;
  sources.facts = [this](const Job& job, NodeQueries::Told told) {
    tell_facts(job.key(), std::move(told));
  };
  sources.timeline = [this](const Job& job, const TimelineSpan& span, NodeQueries::Told told) {
    timelines_->tell(job, span, std::move(told));
  };
  sources.window = [this](const Job& job, uint32_t steps) {
    return timelines_->window(job, steps);
  };
  queries_ = std::make_unique<NodeQueries>(loop_, clock_, services_->control_plane, maker,
                                           std::move(sources));
  explainer_ = std::make_unique<Explainer>(loop_, maker, explainer_sources());
  if (options_.findings == nullptr) return;
  watch_ = std::make_unique<JobWatch>(loop_, clock_, *explainer_, *options_.findings,
                                      options_.explain_every_ms);
}

void JobManager::job_timeline(const std::string& job_name, uid_t user, uint32_t steps,
                              NodeQueries::Told told) {
  const auto found = std::ranges::find_if(jobs_, [&job_name, user](const auto& job) {
    return job.second->name() == job_name && may_see(user, *job.second);
  });
  if (found == jobs_.end()) {
    loop_.defer([told = std::move(told)]() mutable { told(std::nullopt); });
    return;
  }
  const Job& job = *found->second;
  const auto window = timelines_->window(job, std::clamp(steps, 1U, NodeQueries::kStepsMax));
  timelines_->tell(job, {0, window.begin_ns, window.end_ns, NodeQueries::kTimelineBytesMax},
                   std::move(told));
}

void JobManager::tell_facts(uint64_t job_key, NodeQueries::Told told_facts) {
  services_->transport.query_flows(lifetime_.guard(
      [this, job_key, told_facts = std::move(told_facts)](const std::vector<FlowStatus>& flows) {
        const Job* job = find_job(job_key);
        if (job == nullptr) return told_facts(std::nullopt);
        told_facts(to_json(facts_of(*job, flows)));
      }));
}

NodeFacts JobManager::facts_of(const Job& job, const std::vector<FlowStatus>& flows) const {
  NodeFacts facts = job.facts(clock_.now_ns());
  facts.node = services_->control_plane.self().name;
  facts.address = services_->control_plane.self().address;
  if (job.coordinator().id == services_->control_plane.self().id) {
    const Planner* planner = options_.planning.planner;
    facts.planner = planner == nullptr ? "first" : planner->name();
  }
  for (const auto& [key, other] : jobs_) {
    // Subgroups of the job are jobs of the same processes.
    if (other.get() != &job && !other->shares_process_with(job))
      facts.other_jobs_bytes += other->result_bytes();
  }
  for (const RailStatus& rail : services_->transport.rails()) {
    facts.rails.push_back(rail.name);
    if (!rail.is_up) facts.rails_down.push_back(rail.name);
  }
  for (const FlowStatus& flow : flows) {
    if (flow.outgoing) facts.flows.push_back(told(flow));
  }
  const ProcessorTime time = processor_time();
  facts.processor_ns = time.ran_ns;
  facts.processor_wait_ns = time.waited_ns;
  return facts;
}

void JobManager::answer_gathered(ClientConnection& asker, const std::string& job_name,
                                 NodeQueries::Question question) {
  const uint64_t client = asker.id();
  const Status is_asked =
      gather(job_name, asker.credentials().uid, question,
             [this, client](std::string json) { answer_in_parts(client, std::move(json)); });
  if (!is_asked) refuse(asker, is_asked);
}

Status JobManager::gather_facts(const std::string& job_name, uid_t user,
                                const std::function<void(std::string json)>& gathered) {
  return gather(job_name, user, {}, gathered);
}

// As soon as the nodes of each job have told.
Status JobManager::gather(const std::string& job_name, uid_t user, NodeQueries::Question question,
                          const std::function<void(std::string json)>& gathered) {
  struct Answer {
    std::string json;
    size_t awaited = 0;
  };
  std::vector<const Job*> asked;
  for (const auto& [key, job] : jobs_) {
    if ((job_name.empty() || job->name() == job_name) && may_see(user, *job))
      asked.push_back(job.get());
  }
  if (asked.empty()) {
    gathered("[]");
    return Status::ok();
  }
  auto answer_so_far = std::make_shared<Answer>();
  for (const Job* job : asked) {
    ++answer_so_far->awaited;
    // What was gathered for one that is refused is dropped: it is never the last one that is
    // awaited.
    BRAID_RETURN_IF_ERROR(queries_->gather(
        *job, question, [answer_so_far, gathered](const std::shared_ptr<const std::string>& json) {
          answer_so_far->json += answer_so_far->json.empty() ? '[' : ',';
          answer_so_far->json += *json;
          if (--answer_so_far->awaited == 0) gathered(std::move(answer_so_far->json) + ']');
        }));
  }
  return Status::ok();
}

std::string JobManager::plans_of(const Job& job) const {
  return job.plans_json({options_.planning.streams, options_.cut.io_loops},
                        coordinator_->guard_readings(job.key()));
}

Explainer::Sources JobManager::explainer_sources() {
  return {[this](uint64_t job_key, NodeQueries::Gathered gathered) {
            const Job* job = find_job(job_key);
            if (job == nullptr) return Status(StatusCode::NotFound, "the job is over");
            return queries_->gather(*job, {}, std::move(gathered));
          },
          [this](uint64_t job_key) -> std::optional<std::string> {
            const Job* job = find_job(job_key);
            if (job == nullptr) return std::nullopt;
            return plans_of(*job);
          }};
}

Status JobManager::explain_job(const std::string& name, uid_t user,
                               Explainer::Explained explained) {
  const Job* largest = nullptr;
  for (const auto& [key, job] : jobs_) {
    if (job->name() != name || !may_see(user, *job)) continue;
    if (largest == nullptr || job->planned_bytes() > largest->planned_bytes()) largest = job.get();
  }
  if (largest == nullptr)
    return make_status(StatusCode::NotFound, "no job '{}' of yours runs on this node", name);
  return explainer_->explain(largest->key(), std::move(explained));
}

void JobManager::answer_explanation(ClientConnection& asker, const std::string& job_name) {
  const auto answer_to = [](ClientConnection& connection, const Result<Explanation>& explanation) {
    flatbuffers::FlatBufferBuilder builder;
    const std::string text = explanation ? explanation_text(*explanation) : "";
    const std::string json = explanation ? to_json(*explanation) : "";
    const std::string error = explanation ? "" : explanation.status().message();
    const auto body =
        proto::CreateExplanationReplyDirect(builder, text.c_str(), json.c_str(), error.c_str());
    builder.Finish(
        proto::CreateClientMessage(builder, proto::ClientBody::ExplanationReply, body.Union()));
    connection.send(builder);
  };
  const Status asked =
      explain_job(job_name, asker.credentials().uid,
                  [this, client = asker.id(), answer_to](const Result<Explanation>& explanation) {
                    const auto connection = clients_.find(client);
                    if (connection != clients_.end()) answer_to(*connection->second, explanation);
                  });
  if (!asked) answer_to(asker, asked);
}

bool JobManager::is_of(const Peer& node, const Job& job) {
  return job.has_member(node.id) || job.coordinator().id == node.id;
}

// All nodes of a job may ask each other; for all of them only its coordinator is asked.
void JobManager::on_facts_query(const Peer& from, const proto::ControlMessage& message) {
  const proto::FactsQuery& query = *message.body_as_FactsQuery();
  const Job* job = find_job(query.job_key());
  if (job == nullptr) return;
  const bool is_coordinated_here = job->coordinator().id == services_->control_plane.self().id;
  const bool may_ask = is_of(from, *job) && (is_coordinated_here || !query.of_all_nodes());
  if (!may_ask) return refused_.refuse(from, message.body_type(), job->name());
  queries_->on_query(from, *job, query);
}

void JobManager::on_clock_query(const Peer& from, const proto::ControlMessage& message) {
  const proto::ClockQuery& query = *message.body_as_ClockQuery();
  const Job* job = find_job(query.job_key());
  if (job == nullptr) return;
  if (!is_of(from, *job)) return refused_.refuse(from, message.body_type(), job->name());
  queries_->on_clock_query(from, query);
}

}  // namespace braid
