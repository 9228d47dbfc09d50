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
constexpr size_t kPendingTold = 64;
constexpr size_t kEndedOfAllNodes = 4096;
constexpr size_t kOperationsOfAllNodes = 1024;
constexpr size_t kEndedMin = 64;
constexpr size_t kEndedNameBytes = 32 << 10;  // of all of them

std::vector<NodeFacts::Step> latest_steps(const StepTimes& times, size_t nodes) {
  const size_t count = std::min(times.kept().size(), std::max(kStepsMin, kStepsOfAllNodes / nodes));
  std::vector<NodeFacts::Step> steps;
  for (size_t i = times.kept().size() - count; i < times.kept().size(); ++i) {
    const StepTimes::Ended& step = times.kept()[i];
    steps.push_back({step.step, step.step_ns, step.before_ns, step.backward_ns, step.wait_ns});
  }
  return steps;
}

std::vector<NodeFacts::Pending> pending_facts(const OperationTable& operations, uint64_t now_ns) {
  std::vector<NodeFacts::Pending> facts;
  for (OperationTable::Pending& one : operations.oldest_pending(kPendingTold)) {
    facts.push_back({std::move(one.tensor), one.step, to_string(one.collective), one.tensors,
                     one.bytes, now_ns - std::min(now_ns, one.submitted_ns), one.is_on_its_way,
                     std::move(one.ranks)});
  }
  return facts;
}

std::vector<NodeFacts::Ended> ended_facts(const OperationTable& operations, size_t nodes) {
  const size_t most = std::max(kEndedMin, kEndedOfAllNodes / nodes);
  std::vector<NodeFacts::Ended> facts;
  size_t bytes = 0;
  for (const OperationTable::Ended& one : operations.latest_ended(most)) {
    bytes += one.tensor->size();
    if (bytes > kEndedNameBytes) break;
    facts.push_back({*one.tensor, one.step});
  }
  return facts;
}

std::vector<NodeFacts::Operation> operation_facts(const OperationTable& operations, size_t nodes,
                                                  uint64_t now_ns) {
  std::vector<NodeFacts::Operation> facts;
  size_t bytes = 0;
  for (OperationTable::Ended& one :
       operations.latest_ended(std::max(kEndedMin, kOperationsOfAllNodes / nodes))) {
    bytes += one.tensor->size() + one.wait_ns.size() * sizeof(uint64_t);
    if (bytes > kEndedNameBytes) break;
    if (one.wait_ns.empty()) continue;
    facts.push_back({*one.tensor, one.step, to_string(one.collective),
                     now_ns - std::min(now_ns, one.end_ns), std::move(one.wait_ns)});
  }
  return facts;
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
  facts.operations_pending = operations_pending();
  if (operations_ != nullptr) {
    facts.pending = pending_facts(*operations_, now_ns);
    facts.ended = ended_facts(*operations_, membership_.nodes.size());
    if (facts.planned_bytes == 0)
      facts.operations = operation_facts(*operations_, membership_.nodes.size(), now_ns);
  }
  facts.epoch = membership_.epoch;
  for (uint32_t i = 0; i < facts.ranks.size(); ++i) {
    if (plans_.holds_submissions_of(i)) facts.held.push_back(facts.ranks[i]);
    facts.pids.push_back(sessions_[i] == nullptr ? -1 : sessions_[i]->credentials().pid);
  }
  for (uint8_t i = 0; i < kCollectiveCount; ++i)
    facts.collectives[to_string(static_cast<Collective>(i))] = numbers_->collectives[i].get();
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
