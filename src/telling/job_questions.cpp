// SPDX-License-Identifier: Apache-2.0
#include "telling/job_questions.h"

#include <algorithm>

#include <unistd.h>

#include "base/processor_time.h"
#include "telling/gpu_ranks.h"
#include "telling/job_facts.h"
#include "telling/job_status.h"

namespace braid {
namespace {

bool sees_all(uid_t viewer) { return viewer == 0 || viewer == ::geteuid(); }

// Names and processes of a job are nobody else's business.
bool may_see(uid_t viewer, const Job& job) { return sees_all(viewer) || viewer == job.user(); }

// Who sees all jobs may ask about all of them.
std::optional<uid_t> limited(uid_t viewer) {
  return sees_all(viewer) ? std::nullopt : std::optional(viewer);
}

NodeFacts::Flow flow_facts(const FlowStatus& flow) {
  NodeFacts::Flow facts;
  facts.peer = flow.peer;
  facts.io_loop = flow.io_loop;
  facts.flow = flow.flow;
  facts.rail = flow.rail;
  facts.state = flow.state;
  facts.bytes_sent = flow.bytes_sent;
  facts.bytes_per_second = flow.bytes_per_second;
  facts.segments_resent = flow.segments_resent;
  facts.failures = flow.failures;
  facts.error = flow.error;
  facts.failed_ago_ns = flow.failed_ago_ns;
  facts.replaced_ago_ns = flow.replaced_ago_ns;
  return facts;
}

bool is_of(const Peer& node, const Job& job) {
  return job.has_member(node.id) || job.coordinator().id == node.id;
}

void append(std::string& json, std::string_view element) {
  json += json.empty() ? '[' : ',';
  json += element;
}

}  // namespace

JobQuestions::JobQuestions(const JobServices& services, const JobTable& jobs,
                           const Coordinator& coordinator, WorkThread& maker,
                           TellingOptions options)
    : services_(services),
      jobs_(jobs),
      coordinator_(coordinator),
      maker_(maker),
      options_(std::move(options)),
      timelines_(services, maker, options_.timeline_directory),
      queries_(services.loop, services.clock, services.control_plane, maker, query_sources()),
      explainer_(services.loop, maker, explainer_sources()) {
  if (options_.findings != nullptr) {
    watch_.emplace(services.loop, services.clock, explainer_, *options_.findings,
                   options_.explain_every_ms);
  }
}

NodeQueries::Sources JobQuestions::query_sources() {
  return {
      [this](const Job& job, NodeQueries::Told told) { tell_facts(job.key(), std::move(told)); },
      [this](const Job& job, const TimelineSpan& span, NodeQueries::Told told) {
        timelines_.tell(job, span, std::move(told));
      },
      [this](const Job& job, uint32_t steps) { return timelines_.window(job, steps); }};
}

Explainer::Sources JobQuestions::explainer_sources() {
  return {[this](uint64_t job_key, NodeQueries::Gathered gathered) {
            const Job* job = jobs_.find(job_key);
            if (job == nullptr) return Status(StatusCode::NotFound, "the job is over");
            return queries_.gather(*job, {0, job->user()}, std::move(gathered));
          },
          [this](uint64_t job_key) -> std::function<std::string()> {
            const Job* job = jobs_.find(job_key);
            if (job == nullptr) return nullptr;
            return plans_of(*job);
          }};
}

std::vector<const Job*> JobQuestions::visible(const std::string& job_name, uid_t viewer) const {
  std::vector<const Job*> visible;
  for (const auto& [key, job] : jobs_.all()) {
    if ((job_name.empty() || job->name() == job_name) && may_see(viewer, *job))
      visible.push_back(job.get());
  }
  return visible;
}

std::vector<DaemonStatus::Job> JobQuestions::statuses(uid_t viewer) const {
  std::vector<DaemonStatus::Job> statuses;
  for (const auto& [key, job] : jobs_.all()) {
    if (!may_see(viewer, *job)) continue;
    statuses.push_back(job_status(*job));
    job->look_at_arenas();
  }
  return statuses;
}

uint32_t JobQuestions::hidden_from(uid_t viewer) const {
  return static_cast<uint32_t>(jobs_.size() - visible("", viewer).size());
}

void JobQuestions::add_gpus(DaemonStatus& status, uid_t viewer) const {
  if (options_.gpus == nullptr) return;
  GpuReport report = options_.gpus->report();
  status.gpus = with_ranks(std::move(report.gpus), visible("", viewer));
  status.gpus_silent_seconds = report.silent_seconds;
}

std::string JobQuestions::tuning(const std::string& job_name, uid_t viewer) const {
  std::string json;
  for (const Job* job : visible(job_name, viewer))
    append(json, job_tuning(*job, coordinator_.tuning_json(job->key())));
  return json.empty() ? "[]" : json + ']';
}

void JobQuestions::plans(const std::string& job_name, uid_t viewer, PlansTold told) {
  std::vector<PlanBook::JsonMaker> makers;
  for (const Job* job : visible(job_name, viewer)) makers.push_back(plans_of(*job));
  struct Made {
    std::string json;
    uint64_t work_ns = 0;
  };
  auto made = std::make_shared<Made>();
  const auto tell = std::make_shared<PlansTold>(std::move(told));
  const bool is_taken = maker_.run(
      [makers = std::move(makers), made] {
        const SystemClock clock;
        const uint64_t begun_ns = clock.now_ns();
        for (const PlanBook::JsonMaker& make : makers) append(made->json, make());
        made->json += makers.empty() ? "[]" : "]";
        made->work_ns = clock.now_ns() - begun_ns;
      },
      lifetime_.guard([made, tell] { (*tell)(std::move(made->json), made->work_ns); }));
  if (is_taken) return;
  services_.loop.defer(lifetime_.guard([tell] {
    (*tell)(Status(StatusCode::ResourceExhausted,
                   "the daemon is too busy to tell of plans: ask again later"),
            0);
  }));
}

PlanBook::JsonMaker JobQuestions::plans_of(const Job& job) const {
  return job.plans().json_maker(options_.circumstances,
                                {job.membership().sample_every_steps, job.coordinator().name,
                                 coordinator_.guard_readings(job.key())});
}

// As soon as the nodes of each job have told.
Status JobQuestions::gather(const std::string& job_name, uid_t viewer, uint32_t timeline_steps,
                            const std::function<void(std::string json)>& gathered) {
  struct Answer {
    std::string json;
    size_t awaited = 0;
  };
  const std::vector<const Job*> asked = visible(job_name, viewer);
  if (asked.empty()) {
    gathered("[]");
    return Status::ok();
  }
  auto answer = std::make_shared<Answer>();
  for (const Job* job : asked) {
    ++answer->awaited;
    // What was gathered for one that is refused is dropped: it is never the last one that is
    // awaited.
    BRAID_RETURN_IF_ERROR(
        queries_.gather(*job, {timeline_steps, limited(viewer)},
                        [answer, gathered](const std::shared_ptr<const std::string>& json) {
                          append(answer->json, *json);
                          if (--answer->awaited == 0) gathered(std::move(answer->json) + ']');
                        }));
  }
  return Status::ok();
}

Status JobQuestions::explain(const std::string& job_name, uid_t viewer,
                             Explainer::Explained explained) {
  const std::vector<const Job*> jobs = visible(job_name, viewer);
  const auto largest = std::ranges::max_element(jobs, {}, &Job::planned_bytes);
  if (job_name.empty() || largest == jobs.end())
    return make_status(StatusCode::NotFound, "no job '{}' of yours runs on this node", job_name);
  return explainer_.explain((*largest)->key(), limited(viewer), std::move(explained));
}

void JobQuestions::timeline(const std::string& job_name, uid_t viewer, uint32_t steps,
                            NodeQueries::Told told) {
  const std::vector<const Job*> jobs = visible(job_name, viewer);
  if (job_name.empty() || jobs.empty()) {
    services_.loop.defer([told = std::move(told)]() mutable { told(std::nullopt); });
    return;
  }
  const Job& job = *jobs.front();
  const auto window = timelines_.window(job, std::clamp(steps, 1U, NodeQueries::kStepsMax));
  timelines_.tell(job, {0, window.begin_ns, window.end_ns, NodeQueries::kTimelineBytesMax},
                  std::move(told));
}

void JobQuestions::tell_facts(uint64_t job_key, NodeQueries::Told told_facts) {
  services_.transport.query_flows(lifetime_.guard(
      [this, job_key, told_facts = std::move(told_facts)](const std::vector<FlowStatus>& flows) {
        const Job* job = jobs_.find(job_key);
        if (job == nullptr) return told_facts(std::nullopt);
        told_facts(to_json(facts_of(*job, flows)));
      }));
}

NodeFacts JobQuestions::facts_of(const Job& job, const std::vector<FlowStatus>& flows) const {
  NodeFacts facts = job_facts(job, services_.clock.now_ns());
  facts.node = services_.control_plane.self().name;
  facts.address = services_.control_plane.self().address;
  if (is_self(job.coordinator())) facts.planner = options_.planner;
  for (const auto& [key, other] : jobs_.all()) {
    // Subgroups of the job are jobs of the same processes.
    if (other.get() != &job && !share_a_process(*other, job))
      facts.other_jobs_bytes += other->numbers().operation_bytes.get();
  }
  for (const RailStatus& rail : services_.transport.rails()) {
    facts.rails.push_back(rail.name);
    if (!rail.is_up) facts.rails_down.push_back(rail.name);
  }
  for (const FlowStatus& flow : flows) {
    if (flow.outgoing) facts.flows.push_back(flow_facts(flow));
  }
  if (options_.gpus != nullptr) facts.gpus = with_ranks(options_.gpus->report().gpus, {&job});
  const ProcessorTime time = processor_time();
  facts.processor_ns = time.ran_ns;
  facts.processor_wait_ns = time.waited_ns;
  return facts;
}

// One node looks after each job.
void JobQuestions::on_job_began(const Job& job) {
  if (watch_ && is_self(job.membership().nodes.front().peer)) watch_->add(job.key());
}

void JobQuestions::on_job_over(uint64_t key) {
  if (watch_) watch_->remove(key);
}

bool JobQuestions::on_control_message(const Peer& from, const proto::ControlMessage& message) {
  switch (message.body_type()) {
    case proto::ControlBody::FactsQuery:
      on_facts_query(from, message);
      return true;
    case proto::ControlBody::FactsReply:
      queries_.on_reply(from, *message.body_as_FactsReply());
      return true;
    case proto::ControlBody::ClockQuery:
      on_clock_query(from, message);
      return true;
    case proto::ControlBody::ClockReply:
      queries_.on_clock_reply(from, *message.body_as_ClockReply());
      return true;
    default:
      return false;
  }
}

// All nodes of a job may ask each other; for all of them only its coordinator is asked.
void JobQuestions::on_facts_query(const Peer& from, const proto::ControlMessage& message) {
  const proto::FactsQuery& query = *message.body_as_FactsQuery();
  const Job* job = jobs_.find(query.job_key());
  if (job == nullptr) return;
  const bool may_ask = is_of(from, *job) && (is_self(job->coordinator()) || !query.of_all_nodes());
  if (!may_ask) return refused_.refuse(from, message.body_type(), job->label());
  queries_.on_query(from, *job, query);
}

void JobQuestions::on_clock_query(const Peer& from, const proto::ControlMessage& message) {
  const proto::ClockQuery& query = *message.body_as_ClockQuery();
  const Job* job = jobs_.find(query.job_key());
  if (job == nullptr) return;
  if (!is_of(from, *job)) return refused_.refuse(from, message.body_type(), job->label());
  queries_.on_clock_query(from, query);
}

bool JobQuestions::is_self(const Peer& node) const {
  return node.id == services_.control_plane.self().id;
}

}  // namespace braid
