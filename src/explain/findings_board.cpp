// SPDX-License-Identifier: Apache-2.0
#include "explain/findings_board.h"

#include <algorithm>
#include <tuple>

namespace braid {

void FindingsBoard::set(uint64_t job_key, const Explanation& explanation) {
  std::vector<Entry> entries;
  for (const Finding& finding : explanation.findings) {
    // In a job that stands still it would be more than all.
    const double ratio = std::min(1.0, finding.seconds_per_step / explanation.step_seconds);
    entries.push_back({explanation.job, std::string(to_string(finding.cause)), finding.node,
                       finding.rank ? std::to_string(*finding.rank) : "", ratio});
  }
  const MutexLock lock(mutex_);
  jobs_[job_key] = std::move(entries);
}

void FindingsBoard::remove(uint64_t job_key) {
  const MutexLock lock(mutex_);
  jobs_.erase(job_key);
}

std::vector<FindingsBoard::Entry> FindingsBoard::entries() const {
  std::vector<Entry> all;
  {
    const MutexLock lock(mutex_);
    for (const auto& [key, entries] : jobs_) all.insert(all.end(), entries.begin(), entries.end());
  }
  const auto labels = [](const Entry& entry) {
    return std::tie(entry.job, entry.cause, entry.node, entry.rank);
  };
  std::ranges::sort(all, [&](const Entry& one, const Entry& other) {
    return std::tuple(labels(one), -one.ratio) < std::tuple(labels(other), -other.ratio);
  });
  const auto is_repeated = [&](const Entry& one, const Entry& other) {
    return labels(one) == labels(other);
  };
  all.erase(std::unique(all.begin(), all.end(), is_repeated), all.end());
  return all;
}

}  // namespace braid
