// SPDX-License-Identifier: Apache-2.0
#include "telling/job_watch.h"

#include <algorithm>
#include <vector>

namespace braid {

void JobWatch::add(uint64_t job_key) {
  asked_at_ns_[job_key] = clock_.now_ns();
  if (!timer_.is_active())
    timer_.start_repeating(std::max<uint64_t>(1, every_ms_ / kLooksPerPeriod), [this] { look(); });
}

void JobWatch::remove(uint64_t job_key) {
  if (asked_at_ns_.erase(job_key) == 0) return;
  board_.remove(job_key);
  if (asked_at_ns_.empty()) timer_.stop();
}

void JobWatch::look() {
  const uint64_t now_ns = clock_.now_ns();
  std::vector<std::pair<uint64_t, uint64_t>> due;  // when it was asked about, and the job
  for (const auto& [job_key, asked_at_ns] : asked_at_ns_) {
    if (now_ns - asked_at_ns >= every_ms_ * 1'000'000) due.emplace_back(asked_at_ns, job_key);
  }
  std::ranges::sort(due);
  if (due.size() > kJobsAtOnce) due.resize(kJobsAtOnce);
  for (const auto& [asked_at_ns, job_key] : due) explain(job_key);
}

void JobWatch::explain(uint64_t job_key) {
  asked_at_ns_[job_key] = clock_.now_ns();
  const Status asked =
      explainer_.explain(job_key, std::nullopt,
                         lifetime_.guard([this, job_key](const Result<Explanation>& explanation) {
                           if (!asked_at_ns_.contains(job_key)) return;
                           if (explanation)
                             board_.set(job_key, *explanation);
                           else
                             board_.remove(job_key);
                         }));
  // What was found last is too old then.
  if (!asked) board_.remove(job_key);
}

}  // namespace braid
