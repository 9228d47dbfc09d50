// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "coordinator/coordinator.h"
#include "explain/node_facts.h"
#include "gpu/gpu_watch.h"
#include "job/job_table.h"
#include "metrics/status.h"
#include "telling/explainer.h"
#include "telling/job_timelines.h"
#include "telling/job_watch.h"
#include "telling/node_queries.h"

namespace braid {

struct TellingOptions {
  // What bounds the jobs whose first rank is on this node, every so often; it outlives the telling.
  FindingsBoard* findings = nullptr;  // none: nobody wants to know
  uint64_t explain_every_ms = 60'000;
  std::string timeline_directory;  // of the timelines of jobs that failed; empty: none is written
  PlanBook::Circumstances circumstances{};  // of plans that are told
  std::string planner = "first";            // of the jobs that this node coordinates
  const GpuWatch* gpus = nullptr;           // it outlives the telling; none: they are not watched
};

// The questions about this node's jobs, and their answers as JSON or structs. Each has a viewer: a
// user sees its own jobs; root and the daemon's own user see all. Control loop only.
class JobQuestions {
 public:
  // All outlive it. `maker`: makes what would hold up the loop.
  JobQuestions(const JobServices& services, const JobTable& jobs, const Coordinator& coordinator,
               WorkThread& maker, TellingOptions options);
  ~JobQuestions() { lifetime_.end(); }

  std::vector<DaemonStatus::Job> statuses(uid_t viewer) const;
  uint32_t hidden_from(uid_t viewer) const;  // jobs
  // This node's GPUs, with the trainers that the viewer may see.
  void add_gpus(DaemonStatus& status, uid_t viewer) const;
  // The tuning of all jobs of the name; `job_name` empty: of all jobs. A JSON array.
  std::string tuning(const std::string& job_name, uid_t viewer) const;
  // The plans of the same jobs, a JSON array that is made on another thread. Comes once, later;
  // with the time that this has taken.
  using PlansTold = std::function<void(Result<std::string> json, uint64_t work_ns)>;
  void plans(const std::string& job_name, uid_t viewer, PlansTold told);
  // What all nodes of these jobs know of their steps, as parse_job_facts() reads it, or of their
  // latest steps' timeline (`timeline_steps` not 0). `gathered` comes once, maybe at once.
  // ResourceExhausted: too many have asked.
  Status gather(const std::string& job_name, uid_t viewer, uint32_t timeline_steps,
                const std::function<void(std::string json)>& gathered);
  // Why the steps of the job of this name take what they take; where the viewer may see several, it
  // is the one with the most planned bytes. `explained` comes once, later. NotFound: there is none.
  Status explain(const std::string& job_name, uid_t viewer, Explainer::Explained explained);
  // This node's NodeTimeline of the latest steps of one job of this name, 1 to
  // NodeQueries::kStepsMax, as JSON. Nothing: there is no such job, or timelines are off, or too
  // many are asked for. Comes once, later.
  void timeline(const std::string& job_name, uid_t viewer, uint32_t steps, NodeQueries::Told told);

  void on_job_began(const Job& job);
  void on_job_failed(const Job& job, const Status& reason) { timelines_.write_failed(job, reason); }
  void on_job_over(uint64_t key);
  // What other nodes ask and answer. False: the message is something else.
  bool on_control_message(const Peer& from, const proto::ControlMessage& message);
  uint64_t messages_refused() const { return refused_.count(); }

 private:
  std::vector<const Job*> visible(const std::string& job_name, uid_t viewer) const;
  NodeQueries::Sources query_sources();
  Explainer::Sources explainer_sources();
  void tell_facts(uint64_t job_key, NodeQueries::Told told_facts);
  NodeFacts facts_of(const Job& job, const std::vector<FlowStatus>& flows) const;
  PlanBook::JsonMaker plans_of(const Job& job) const;
  void on_facts_query(const Peer& from, const proto::ControlMessage& message);
  void on_clock_query(const Peer& from, const proto::ControlMessage& message);
  bool is_self(const Peer& node) const;

  const JobServices& services_;
  const JobTable& jobs_;
  const Coordinator& coordinator_;
  WorkThread& maker_;
  const TellingOptions options_;
  JobTimelines timelines_;
  NodeQueries queries_;
  Explainer explainer_;
  std::optional<JobWatch> watch_;  // nothing: nobody wants to know
  RefusedSenders refused_;
  Lifetime lifetime_;  // of callbacks that may come after the end
};

}  // namespace braid
