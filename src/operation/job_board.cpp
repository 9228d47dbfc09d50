// SPDX-License-Identifier: Apache-2.0
#include "operation/job_board.h"

#include <utility>

#include "base/assert.h"

namespace braid {
namespace {

void add_ended(JobTotals::MessageEnds& totals, const JobNumbers::MessageEnds& ends) {
  totals.ended += ends.ended.get();
  totals.bytes += ends.bytes.get();
}

// What stays when the job has ended.
void add_done(JobTotals& totals, const JobNumbers& job) {
  totals.operations += job.operations.get();
  totals.operation_bytes += job.operation_bytes.get();
  totals.submit_ns += job.submit_ns.get();
  totals.ready_ns += job.ready_ns.get();
  totals.run_ns += job.run_ns.get();
  totals.steps += job.steps.get();
  totals.step_ns += job.step_ns.get();
  totals.exposed_ns += job.exposed_ns.get();
  add_ended(totals.sends, job.sends);
  add_ended(totals.receives, job.receives);
  for (const JobNumbers::Rank& rank : job.ranks) {
    JobTotals::Rank& own = totals.ranks[rank.rank];
    own.late_ns += rank.late_ns.get();
    own.wait_ns += rank.wait_ns.get();
  }
}

void add_present(JobTotals& totals, const JobNumbers& job) {
  totals.operations_pending += job.operations_pending.get();
  totals.sends.pending += job.sends.pending.get();
  totals.receives.pending += job.receives.pending.get();
  totals.result_memory_bytes += job.result_memory_bytes.get();
  totals.arena_memory_bytes += job.arena_memory_bytes.get();
  for (const JobNumbers::Rank& rank : job.ranks) totals.ranks[rank.rank].pid = rank.pid.get();
  for (WorkLoad& load : job.work.loads()) {
    WorkLoad& latest = totals.work[{load.rank, load.work}];
    if (load.told_ns >= latest.told_ns) latest = std::move(load);
  }
  const uint64_t set_bytes = job.planned_bytes.get();
  if (set_bytes == 0 || (totals.plan && totals.plan->set_bytes >= set_bytes)) return;
  totals.plan = {set_bytes,
                 job.plan.get(),
                 job.plan_groups.get(),
                 job.predicted_ns.get(),
                 job.iteration_ns.get(),
                 job.is_tuning.get() != 0};
}

}  // namespace

std::shared_ptr<JobNumbers> JobBoard::add(const std::string& name,
                                          const std::vector<uint32_t>& ranks) {
  auto numbers = std::make_shared<JobNumbers>(name, ranks);
  const std::lock_guard lock(mutex_);
  Jobs& same = jobs_[name];
  same.ended.name = name;
  same.running.push_back(numbers);
  return numbers;
}

void JobBoard::remove(const JobNumbers& numbers) {
  const std::lock_guard lock(mutex_);
  const auto same = jobs_.find(numbers.name);
  BRAID_ASSERT(same != jobs_.end(), "a job is removed once");
  std::erase_if(same->second.running, [&](const auto& one) { return one.get() == &numbers; });
  if (same->second.running.empty()) {
    jobs_.erase(same);
  } else {
    add_done(same->second.ended, numbers);
  }
}

std::vector<JobTotals> JobBoard::totals() const {
  std::vector<JobTotals> all;
  const std::lock_guard lock(mutex_);
  all.reserve(jobs_.size());
  for (const auto& [name, same] : jobs_) {
    JobTotals& totals = all.emplace_back(same.ended);
    for (const auto& job : same.running) {
      add_done(totals, *job);
      add_present(totals, *job);
    }
  }
  return all;
}

}  // namespace braid
