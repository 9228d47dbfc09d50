// SPDX-License-Identifier: Apache-2.0
#include "telling/job_facts.h"

#include <algorithm>
#include <utility>

#include "base/version.h"
#include "proto/ring.h"

namespace braid {
namespace {

// Fewer steps are told of a large job: all nodes together tell about this many.
constexpr size_t kStepsOfAllNodes = 4096;
constexpr size_t kStepsMin = 16;
constexpr size_t kPendingTold = 64;
constexpr size_t kEndedOfAllNodes = 4096;
constexpr size_t kOperationsOfAllNodes = 1024;
constexpr size_t kEndedMin = 64;
constexpr size_t kEndedNameBytes = 32 << 10;  // of all of them
constexpr size_t kWorkItemsTold = 3;

std::vector<NodeFacts::Step> latest_steps(const StepTimes& times, size_t nodes) {
  const size_t count = std::min(times.kept().size(), std::max(kStepsMin, kStepsOfAllNodes / nodes));
  std::vector<NodeFacts::Step> steps;
  for (size_t i = times.kept().size() - count; i < times.kept().size(); ++i) {
    const StepTimes::Ended& step = times.kept()[i];
    steps.push_back({step.step, step.step_ns, step.before_ns, step.backward_ns, step.wait_ns});
  }
  return steps;
}

std::vector<NodeFacts::Pending> pending_facts(const OperationLog& operations, uint64_t now_ns) {
  std::vector<NodeFacts::Pending> facts;
  for (OperationLog::Pending& one : operations.oldest_pending(kPendingTold)) {
    facts.push_back({std::move(one.tensor), one.step, to_string(one.collective), one.tensors,
                     one.bytes, now_ns - std::min(now_ns, one.submitted_ns), one.is_on_its_way,
                     std::move(one.ranks)});
  }
  return facts;
}

std::vector<NodeFacts::Message> message_facts(const MessageTable& messages, uint64_t now_ns) {
  std::vector<PendingMessage> oldest = messages.pending();
  const size_t count = std::min(kPendingTold, oldest.size());
  std::ranges::partial_sort(oldest, oldest.begin() + static_cast<ptrdiff_t>(count), {},
                            &PendingMessage::submitted_ns);
  std::vector<NodeFacts::Message> facts;
  for (size_t i = 0; i < count; ++i) {
    const PendingMessage& one = oldest[i];
    const int64_t peer =
        one.peer == proto::kAnyRank ? NodeFacts::Message::kAnyRank : int64_t{one.peer};
    facts.push_back({one.is_send, one.rank, peer, one.tag, one.bytes,
                     now_ns - std::min(now_ns, one.submitted_ns), one.is_on_its_way});
  }
  return facts;
}

std::vector<NodeFacts::Ended> ended_facts(const OperationLog& operations, size_t nodes) {
  const size_t most = std::max(kEndedMin, kEndedOfAllNodes / nodes);
  std::vector<NodeFacts::Ended> facts;
  size_t bytes = 0;
  for (const OperationLog::Ended& one : operations.latest_ended(most)) {
    bytes += one.tensor->size();
    if (bytes > kEndedNameBytes) break;
    facts.push_back({*one.tensor, one.step});
  }
  return facts;
}

std::vector<NodeFacts::Operation> operation_facts(const OperationLog& operations, size_t nodes,
                                                  uint64_t now_ns) {
  std::vector<NodeFacts::Operation> facts;
  size_t bytes = 0;
  for (OperationLog::Ended& one :
       operations.latest_ended(std::max(kEndedMin, kOperationsOfAllNodes / nodes))) {
    bytes += one.tensor->size() + one.wait_ns.size() * sizeof(uint64_t);
    if (bytes > kEndedNameBytes) break;
    if (one.wait_ns.empty()) continue;
    facts.push_back({*one.tensor, one.step, to_string(one.collective),
                     now_ns - std::min(now_ns, one.end_ns), std::move(one.wait_ns)});
  }
  return facts;
}

NodeFacts::Work work_facts(WorkLoad load, uint64_t now_ns) {
  NodeFacts::Work facts;
  facts.rank = load.rank;
  facts.work = std::move(load.work);
  facts.told_ago_ns = now_ns - std::min(now_ns, load.told_ns);
  facts.updates = load.updates;
  facts.interval_seconds = load.interval_seconds;
  facts.seconds = load.seconds;
  facts.wait_seconds = load.wait_seconds;
  facts.input_wait_seconds = load.input_wait_seconds;
  facts.planned_seconds = load.planned_seconds;
  facts.makespan_seconds = load.makespan_seconds;
  facts.bound_seconds = load.bound_seconds;
  facts.items_more = load.items_more;
  for (WorkLoad::Item& item : load.items) {
    if (facts.items.size() == kWorkItemsTold) {
      ++facts.items_more;
      continue;
    }
    facts.items.push_back({std::move(item.name), item.seconds, item.least_seconds});
  }
  return facts;
}

}  // namespace

NodeFacts job_facts(const Job& job, uint64_t now_ns) {
  const Membership& membership = job.membership();
  const size_t nodes = membership.nodes.size();
  NodeFacts facts;
  facts.at_ns = now_ns;
  facts.world_size = job.world_size();
  facts.ranks = membership.local_ranks;
  facts.planned_bytes = job.planned_bytes();
  if (const StepTimes* times = job.plans().step_times()) {
    facts.steps = latest_steps(*times, nodes);
    if (const auto ended_ns = times->last_end_ns()) facts.last_step_ago_ns = now_ns - *ended_ns;
  }
  for (size_t i = 0; i < facts.ranks.size(); ++i) {
    const NotFiniteSteps& seen = job.plans().not_finite()[i];
    if (seen.steps == 0) continue;
    facts.not_finite.push_back(
        {facts.ranks[i], seen.steps, seen.first_step, seen.last_step, seen.first_tensor});
  }
  for (WorkLoad& load : job.numbers().work.loads())
    facts.work.push_back(work_facts(std::move(load), now_ns));
  if (job.operations() != nullptr) {
    const OperationLog& operations = job.operations()->log();
    facts.operations_pending = operations.pending();
    facts.messages_pending = job.messages().unfinished();
    facts.messages = message_facts(job.messages(), now_ns);
    facts.pending = pending_facts(operations, now_ns);
    facts.ended = ended_facts(operations, nodes);
    if (facts.planned_bytes == 0) facts.operations = operation_facts(operations, nodes, now_ns);
  }
  facts.epoch = membership.epoch;
  for (uint32_t i = 0; i < facts.ranks.size(); ++i) {
    if (job.plans().holds_submissions_of(i)) facts.held.push_back(facts.ranks[i]);
    const Session* session = job.sessions()[i];
    facts.pids.push_back(session == nullptr ? -1 : session->credentials().pid);
  }
  for (uint8_t i = 0; i < kCollectiveCount; ++i)
    facts.collectives[to_string(static_cast<Collective>(i))] = job.numbers().collectives[i].get();
  facts.job_bytes = job.numbers().operation_bytes.get();
  return facts;
}

TimelineSource job_timeline_source(const Job& job, uint64_t now_ns) {
  const Membership& membership = job.membership();
  TimelineSource source;
  source.told_ns = now_ns;
  source.head.version = kBraidVersion;
  source.head.job = membership.name;
  source.head.epoch = membership.epoch;
  source.head.world_size = job.world_size();
  source.head.ranks = membership.local_ranks;
  for (const MemberNode& node : membership.nodes) source.peers[node.peer.id] = node.peer.name;
  MessageLog::Names messages;
  if (job.operations() != nullptr) {
    source.unfinished = job.operations()->log().unfinished_spans();
    const auto spans = job.messages().unfinished_spans();
    source.unfinished.insert(source.unfinished.end(), spans.begin(), spans.end());
    messages = job.messages().names();
  }
  source.name_of_tensor = [names = job.names(), messages = std::move(messages)](uint64_t hash) {
    const auto message = messages.find(hash);
    return message == messages.end() ? names->find(hash) : message->second;
  };
  source.work = job.numbers().work.spans();
  return source;
}

bool share_a_process(const Job& one, const Job& other) {
  const auto has_process = [&other](pid_t pid) {
    return std::ranges::any_of(other.sessions(), [pid](const Session* session) {
      return session != nullptr && session->credentials().pid == pid;
    });
  };
  // 0: a process that this one cannot see, as in another container.
  return std::ranges::any_of(one.sessions(), [&](const Session* session) {
    return session != nullptr && session->credentials().pid != 0 &&
           has_process(session->credentials().pid);
  });
}

}  // namespace braid
