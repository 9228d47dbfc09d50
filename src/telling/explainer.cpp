// SPDX-License-Identifier: Apache-2.0
#include "telling/explainer.h"

#include <algorithm>
#include <utility>

namespace braid {
namespace {

Result<JobFacts> facts_in(const std::string& json) {
  auto jobs = parse_job_facts('[' + json + ']');
  if (!jobs) return jobs.status();
  return std::move(jobs->front());
}

Result<Explanation> explain_texts(const std::string& before, const std::string& after,
                                  const std::string& plans) {
  const auto earlier = facts_in(before);
  if (!earlier) return earlier.status();
  const auto later = facts_in(after);
  if (!later) return later.status();
  auto jobs = parse_live_plans('[' + plans + ']');
  if (!jobs) return jobs.status();
  return explain(*earlier, *later, largest_set(std::move(jobs->front())));
}

}  // namespace

Status Explainer::explain(uint64_t job_key, std::optional<uid_t> user, Explained explained) {
  if (const auto found = looks_.find(job_key); found != looks_.end()) {
    if (found->second->askers.size() >= kAskersMax) {
      return make_status(StatusCode::ResourceExhausted,
                         "{} askers wait for this job's explanation already: ask again later",
                         kAskersMax);
    }
    found->second->askers.push_back(std::move(explained));
    return Status::ok();
  }
  if (looks_.size() >= kJobsMax) {
    return make_status(StatusCode::ResourceExhausted,
                       "{} jobs are being explained already: ask again later", kJobsMax);
  }
  const auto of_user = std::ranges::count_if(
      looks_, [&user](const auto& look) { return user && look.second->user == user; });
  if (of_user >= static_cast<std::ptrdiff_t>(kJobsOfUserMax)) {
    return make_status(StatusCode::ResourceExhausted,
                       "{} jobs are being explained to user {} already: ask again later",
                       kJobsOfUserMax, *user);
  }
  BRAID_RETURN_IF_ERROR(sources_.gather(
      job_key, lifetime_.guard([this, job_key](std::shared_ptr<const std::string> before) {
        Look& look = *looks_.at(job_key);
        look.before = std::move(before);
        look.pause.start_once(look_ms_, [this, job_key] { look_again(job_key); });
      })));
  Look& look = *(looks_[job_key] = std::make_unique<Look>(loop_));
  look.user = user;
  look.askers.push_back(std::move(explained));
  return Status::ok();
}

void Explainer::look_again(uint64_t job_key) {
  const Status asked = sources_.gather(
      job_key, lifetime_.guard([this, job_key](const std::shared_ptr<const std::string>& after) {
        compare(job_key, after);
      }));
  if (!asked) conclude(job_key, asked);
}

void Explainer::compare(uint64_t job_key, const std::shared_ptr<const std::string>& after) {
  const std::function<std::string()> plans = sources_.plans(job_key);
  if (!plans) return conclude(job_key, Status(StatusCode::NotFound, "the job is over"));
  auto answer = std::make_shared<std::optional<Result<Explanation>>>();
  const bool is_taken =
      worker_.run([before = looks_.at(job_key)->before, after, plans,
                   answer] { *answer = explain_texts(*before, *after, plans()); },
                  lifetime_.guard([this, job_key, answer] { conclude(job_key, **answer); }));
  if (!is_taken) {
    conclude(job_key, Status(StatusCode::ResourceExhausted,
                             "the daemon is too busy to explain the job: ask again later"));
  }
}

void Explainer::conclude(uint64_t job_key, const Result<Explanation>& explanation) {
  // An asker may ask again.
  const auto look = std::move(looks_.extract(job_key).mapped());
  for (const Explained& explained : look->askers) explained(explanation);
}

}  // namespace braid
