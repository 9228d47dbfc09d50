// SPDX-License-Identifier: Apache-2.0
// What a node tells of a job when somebody asks why its steps take what they take.
#include <algorithm>

#include "base/version.h"
#include "job/job.h"

namespace braid {
namespace {

// Of a large job less steps are told: all nodes together tell this many, about.
constexpr size_t kStepsOfAllNodes = 4096;
constexpr size_t kStepsMin = 16;

std::vector<NodeFacts::Step> latest_steps(const StepTimes& times, size_t nodes) {
  const size_t count = std::min(times.kept().size(), std::max(kStepsMin, kStepsOfAllNodes / nodes));
  std::vector<NodeFacts::Step> steps;
  for (size_t i = times.kept().size() - count; i < times.kept().size(); ++i) {
    const StepTimes::Ended& step = times.kept()[i];
    steps.push_back(
        {step.step, step.step_ns, step.exposed_ns, step.before_ns, step.backward_ns, step.wait_ns});
  }
  return steps;
}

}  // namespace

NodeFacts Job::facts(uint64_t now_ns) const {
  NodeFacts facts;
  facts.at_ns = now_ns;
  facts.world_size = world_size();
  facts.ranks = membership_.local_ranks;
  facts.planned_bytes = numbers_->planned_bytes.get();
  if (const StepTimes* times = plans_.step_times()) {
    facts.steps = latest_steps(*times, membership_.nodes.size());
    if (const auto ended_ns = times->last_end_ns()) facts.last_step_ago_ns = now_ns - *ended_ns;
  }
  for (size_t i = 0; i < facts.ranks.size(); ++i) {
    const NotFiniteSteps& seen = plans_.not_finite()[i];
    if (seen.steps == 0) continue;
    facts.not_finite.push_back(
        {facts.ranks[i], seen.steps, seen.first_step, seen.last_step, seen.first_tensor});
  }
  facts.operations = numbers_->operations.get();
  facts.operations_pending = operations_pending();
  facts.job_bytes = result_bytes();
  return facts;
}

TimelineSource Job::timeline_source(uint64_t now_ns) const {
  TimelineSource source;
  source.told_ns = now_ns;
  source.head.version = kBraidVersion;
  source.head.job = membership_.name;
  source.head.epoch = membership_.epoch;
  source.head.world_size = world_size();
  source.head.ranks = membership_.local_ranks;
  for (const MemberNode& node : membership_.nodes) source.peers[node.peer.id] = node.peer.name;
  source.name_of_tensor = [names = names_](uint64_t hash) { return names->find(hash); };
  if (operations_ != nullptr) source.unfinished = operations_->unfinished_spans();
  return source;
}

bool Job::shares_process_with(const Job& other) const {
  const auto has_process = [](const Job& job, pid_t pid) {
    return std::ranges::any_of(job.sessions_, [pid](const Session* session) {
      return session != nullptr && session->credentials().pid == pid;
    });
  };
  // 0: a process that this one cannot see, as in another container.
  return std::ranges::any_of(sessions_, [&](const Session* session) {
    return session != nullptr && session->credentials().pid != 0 &&
           has_process(other, session->credentials().pid);
  });
}

}  // namespace braid
