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

// Who sees all jobs may ask about all of them.
std::optional<uid_t> limited(uid_t viewer) {
  return viewer == 0 || viewer == ::geteuid() ? std::nullopt : std::optional(viewer);
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

void JobManager::tell_plans(const std::string& job_name, uid_t user, PlansTold told) {
  std::vector<PlanBook::JsonMaker> makers;
  for (const auto& [key, job] : jobs_) {
    if ((job_name.empty() || job->name() == job_name) && may_see(user, *job))
      makers.push_back(plans_of(*job));
  }
  struct Made {
    std::string json = "[";
    uint64_t work_ns = 0;
  };
  auto made = std::make_shared<Made>();
  const auto tell = std::make_shared<PlansTold>(std::move(told));
  const bool is_taken = maker_->run(
      [makers = std::move(makers), made] {
        const SystemClock clock;
        const uint64_t begun_ns = clock.now_ns();
        for (const PlanBook::JsonMaker& make : makers) {
          if (made->json.size() > 1) made->json += ',';
          made->json += make();
        }
        made->json += ']';
        made->work_ns = clock.now_ns() - begun_ns;
      },
      lifetime_.guard([made, tell] { (*tell)(std::move(made->json), made->work_ns); }));
  if (is_taken) return;
  loop_.defer(lifetime_.guard([tell] {
    (*tell)(Status(StatusCode::ResourceExhausted,
                   "the daemon has too much to do to tell of plans: ask again later"),
            0);
  }));
}

// In parts, for a long text is much to copy at once.
ClientQueries::Send JobManager::json_answer(uid_t viewer,
                                            std::shared_ptr<const std::string> json) const {
  return [json = std::move(json), hidden = jobs_hidden_from(viewer)](ClientConnection& asker,
                                                                     uint32_t part) {
    constexpr size_t kBytes = PartedAnswers::kPartBytes;
    const std::string_view text = std::string_view(*json).substr(part * kBytes, kBytes);
    const bool has_more = (part + 1) * kBytes < json->size();
    flatbuffers::FlatBufferBuilder builder(text.size() + 128);
    const auto body =
        proto::CreateStatusReply(builder, builder.CreateString(text), hidden, has_more);
    builder.Finish(
        proto::CreateClientMessage(builder, proto::ClientBody::StatusReply, body.Union()));
    asker.send(builder);
    return has_more;
  };
}

ClientQueries::Send JobManager::refusal(Status reason) {
  return [this, reason = std::move(reason)](ClientConnection& asker, uint32_t) {
    refuse(asker, reason);
    return false;
  };
}

void JobManager::ask(ClientConnection& asker, ClientQueries::Question question) {
  // Questions wait, so what is in them does.
  if (question.job.size() > Session::kJobNameBytesMax) {
    return refuse(
        asker, make_status(StatusCode::InvalidArgument, "a job's name has {} bytes at most, not {}",
                           Session::kJobNameBytesMax, question.job.size()));
  }
  const uid_t user = asker.credentials().uid;
  const bool sees_all = user == ::geteuid();
  const Status taken = answers_->ask(asker.id(), user, sees_all ? ClientQueries::kSeesAll : user,
                                     std::move(question));
  if (!taken) refuse(asker, taken);
}

void JobManager::make_answer(uid_t viewer, const ClientQueries::Question& question,
                             const ClientQueries::Made& made) {
  const auto answer = [this, viewer](std::string json) {
    return json_answer(viewer, std::make_shared<const std::string>(std::move(json)));
  };
  switch (question.kind) {
    case ClientQueries::Kind::Status:
      if (!status_source_) return;
      return status_source_(viewer, [made, answer](StatusMaker make) {
        made([answer, make = std::move(make)] { return answer(make()); }, 0);
      });
    case ClientQueries::Kind::Plan:
      return tell_plans(
          question.job, viewer, [this, made, answer](Result<std::string> json, uint64_t work_ns) {
            const auto told = std::make_shared<Result<std::string>>(std::move(json));
            made([this, answer,
                  told] { return *told ? answer(std::move(**told)) : refusal(told->status()); },
                 work_ns);
          });
    case ClientQueries::Kind::Tune:
      return made(
          [this, viewer, answer, name = question.job] {
            return answer(describe_jobs(name, viewer, [this](const Job& job) {
              return job.tuning_json(coordinator_->tuning_json(job.key()));
            }));
          },
          0);
    case ClientQueries::Kind::Facts:
      return make_gathered(viewer, question.job, {0, limited(viewer)}, made);
    case ClientQueries::Kind::Timeline:
      return make_gathered(viewer, question.job, {question.steps, limited(viewer)}, made);
    case ClientQueries::Kind::Explanation:
      return make_explanation(viewer, question.job, made);
  }
}

void JobManager::make_gathered(uid_t viewer, const std::string& job_name,
                               NodeQueries::Question question, const ClientQueries::Made& made) {
  const Status is_asked =
      gather(job_name, viewer, question, [this, viewer, made](std::string json) {
        auto text = std::make_shared<const std::string>(std::move(json));
        made([this, viewer, text] { return json_answer(viewer, text); }, 0);
      });
  if (!is_asked) made([this, is_asked] { return refusal(is_asked); }, 0);
}

void JobManager::make_explanation(uid_t viewer, const std::string& job_name,
                                  const ClientQueries::Made& made) {
  const auto answer = [](const Result<Explanation>& explanation) -> ClientQueries::Send {
    return [text = explanation ? explanation_text(*explanation) : "",
            json = explanation ? to_json(*explanation) : "",
            error = explanation ? "" : explanation.status().message()](ClientConnection& asker,
                                                                       uint32_t) {
      flatbuffers::FlatBufferBuilder builder;
      const auto body =
          proto::CreateExplanationReplyDirect(builder, text.c_str(), json.c_str(), error.c_str());
      builder.Finish(
          proto::CreateClientMessage(builder, proto::ClientBody::ExplanationReply, body.Union()));
      asker.send(builder);
      return false;
    };
  };
  const Status asked =
      explain_job(job_name, viewer, [made, answer](const Result<Explanation>& explanation) {
        made([answer, explanation] { return answer(explanation); }, 0);
      });
  if (!asked) made([answer, asked] { return answer(asked); }, 0);
}

// What would hold up the loop is done where plans are made.
void JobManager::make_queries() {
  WorkThread& maker = *maker_;
  answers_ = std::make_unique<ClientQueries>(
      loop_, clock_, options_.session.quotas,
      [this](uint64_t client) {
        const auto connection = clients_.find(client);
        return connection == clients_.end() ? nullptr : connection->second;
      },
      [this](uid_t viewer, const ClientQueries::Question& question,
             const ClientQueries::Made& made) { make_answer(viewer, question, made); });
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

Status JobManager::gather_facts(const std::string& job_name, uid_t user,
                                const std::function<void(std::string json)>& gathered) {
  return gather(job_name, user, {0, limited(user)}, gathered);
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

PlanBook::JsonMaker JobManager::plans_of(const Job& job) const {
  return job.plans_json({options_.planning.streams, options_.cut.io_loops},
                        coordinator_->guard_readings(job.key()));
}

Explainer::Sources JobManager::explainer_sources() {
  return {[this](uint64_t job_key, NodeQueries::Gathered gathered) {
            const Job* job = find_job(job_key);
            if (job == nullptr) return Status(StatusCode::NotFound, "the job is over");
            return queries_->gather(*job, {0, job->user()}, std::move(gathered));
          },
          [this](uint64_t job_key) -> std::function<std::string()> {
            const Job* job = find_job(job_key);
            if (job == nullptr) return nullptr;
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
  return explainer_->explain(largest->key(), limited(user), std::move(explained));
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
  if (!may_ask) return refused_.refuse(from, message.body_type(), job->label());
  queries_->on_query(from, *job, query);
}

void JobManager::on_clock_query(const Peer& from, const proto::ControlMessage& message) {
  const proto::ClockQuery& query = *message.body_as_ClockQuery();
  const Job* job = find_job(query.job_key());
  if (job == nullptr) return;
  if (!is_of(from, *job)) return refused_.refuse(from, message.body_type(), job->label());
  queries_->on_clock_query(from, query);
}

}  // namespace braid
