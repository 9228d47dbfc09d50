// SPDX-License-Identifier: Apache-2.0
#include "job/job_table.h"

#include <algorithm>
#include <vector>

namespace braid {

Job* JobTable::find(uint64_t key) const {
  const auto position = jobs_.find(key);
  return position == jobs_.end() ? nullptr : position->second.get();
}

Job& JobTable::add(std::unique_ptr<Job> job) {
  Job& added = *job;
  jobs_[added.key()] = std::move(job);
  return added;
}

void JobTable::remove(uint64_t key) {
  jobs_.erase(key);
  on_removed_(key);
}

void JobTable::remove_closed() {
  if (std::ranges::none_of(jobs_, [](const auto& job) { return job.second->is_closed(); })) return;
  loop_.defer(lifetime_.guard([this] {
    std::vector<uint64_t> closed;
    for (const auto& [key, job] : jobs_) {
      if (job->is_closed()) closed.push_back(key);
    }
    for (const uint64_t key : closed) remove(key);
  }));
}

void JobTable::clear() {
  lifetime_.end();
  jobs_.clear();
}

size_t JobTable::running() const {
  return static_cast<size_t>(
      std::ranges::count_if(jobs_, [](const auto& job) { return job.second->is_running(); }));
}

size_t JobTable::starting() const {
  return static_cast<size_t>(
      std::ranges::count_if(jobs_, [](const auto& job) { return job.second->is_starting(); }));
}

size_t JobTable::operations_pending() const {
  size_t pending = 0;
  for (const auto& [key, job] : jobs_) pending += job->operations_pending();
  return pending;
}

std::unordered_set<NodeId> JobTable::targets() const {
  std::unordered_set<NodeId> targets;
  for (const auto& [key, job] : jobs_) {
    for (const MemberNode* node : job->membership().targets()) targets.insert(node->peer.id);
  }
  return targets;
}

}  // namespace braid
