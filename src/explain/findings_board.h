// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "explain/explanation.h"

namespace braid {

// What bounds the jobs that this node looks after, for its metrics. Any thread.
class FindingsBoard {
 public:
  // One cause of one job.
  struct Entry {
    std::string job;
    std::string cause;  // as to_string() has it
    std::string node;   // that it is about; empty: none
    std::string rank;   // the same
    double ratio = 0;   // of a step, that it costs
  };

  // Takes the place of what was there of this job.
  void set(uint64_t job_key, const Explanation& explanation);
  // The job is over, or there is nothing to say of it. What is not there is ignored.
  void remove(uint64_t job_key);
  // One for each name of a job, cause, node and rank: the one that costs most.
  std::vector<Entry> entries() const;

 private:
  mutable Mutex mutex_;
  std::map<uint64_t, std::vector<Entry>> jobs_ BRAID_GUARDED_BY(mutex_);  // by key
};

}  // namespace braid
