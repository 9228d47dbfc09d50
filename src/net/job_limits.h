// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>

#include "engine/link.h"

namespace braid {

// What each job's chunks may use of a link, on one I/O loop. Not thread-safe.
class JobLimits {
 public:
  // For jobs of which nothing was said.
  explicit JobLimits(LinkLimits usual) : usual_(usual) {}

  void set(uint64_t job_key, const LinkLimits& limits) {
    if (limits == LinkLimits{}) {
      of_job_.erase(job_key);
      return;
    }
    of_job_[job_key] = {limits.flows == 0 ? usual_.flows : limits.flows,
                        limits.window_bytes == 0 ? usual_.window_bytes : limits.window_bytes,
                        limits.weight};
  }
  const LinkLimits& of(uint64_t job_key) const {
    if (of_job_.empty()) return usual_;  // nearly always
    const auto found = of_job_.find(job_key);
    return found == of_job_.end() ? usual_ : found->second;
  }

 private:
  const LinkLimits usual_;
  std::unordered_map<uint64_t, LinkLimits> of_job_;
};

}  // namespace braid
