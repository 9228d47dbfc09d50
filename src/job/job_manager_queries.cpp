// SPDX-License-Identifier: Apache-2.0
// What a node's jobs tell tools: to whom, and of which jobs.
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
  return describe_jobs(job_name, user, [this](const Job& job) {
    return job.plans_json({options_.planning.streams, options_.cut.io_loops},
                          coordinator_->guard_readings(job.key()));
  });
}

void JobManager::answer(ClientConnection& asker, const std::string& json) {
  flatbuffers::FlatBufferBuilder builder;
  const auto text = builder.CreateString(json);
  const auto body =
      proto::CreateStatusReply(builder, text, jobs_hidden_from(asker.credentials().uid));
  builder.Finish(proto::CreateClientMessage(builder, proto::ClientBody::StatusReply, body.Union()));
  asker.send(builder);
}

void JobManager::tell_facts(uint64_t job_key, FactsQueries::Told told_facts) {
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

void JobManager::answer_facts(ClientConnection& asker, const std::string& job_name) {
  const uint64_t client = asker.id();
  const Status is_asked =
      gather_facts(job_name, asker.credentials().uid, [this, client](const std::string& json) {
        const auto connection = clients_.find(client);
        if (connection != clients_.end()) answer(*connection->second, json);
      });
  if (!is_asked) refuse(asker, is_asked);
}

// As soon as the nodes of each job have told.
Status JobManager::gather_facts(const std::string& job_name, uid_t user,
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
    BRAID_RETURN_IF_ERROR(facts_->gather(*job, [answer_so_far, gathered](const std::string& json) {
      answer_so_far->json += (answer_so_far->json.empty() ? "" : ",") + json;
      if (--answer_so_far->awaited == 0) gathered('[' + answer_so_far->json + ']');
    }));
  }
  return Status::ok();
}

// All nodes of a job may ask each other; for all of them only its coordinator is asked.
void JobManager::on_facts_query(const Peer& from, const proto::ControlMessage& message) {
  const proto::FactsQuery& query = *message.body_as_FactsQuery();
  const Job* job = find_job(query.job_key());
  if (job == nullptr) return;
  const bool is_coordinated_here = job->coordinator().id == services_->control_plane.self().id;
  const bool may_ask = (job->has_member(from.id) || job->coordinator().id == from.id) &&
                       (is_coordinated_here || !query.of_all_nodes());
  if (!may_ask) return refused_.refuse(from, message.body_type(), job->name());
  facts_->on_query(from, *job, query);
}

}  // namespace braid
