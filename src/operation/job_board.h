// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operation/job_numbers.h"
#include "operation/placed_work.h"

namespace braid {

// What the jobs of one name have done on this node.
struct JobTotals {
  struct Rank {
    uint64_t late_ns = 0;
    uint64_t wait_ns = 0;
    uint64_t pid = 0;  // of its trainer now; 0: not known
  };
  struct Plan {
    uint64_t set_bytes = 0;
    uint64_t number = 0;
    uint64_t groups = 0;
    uint64_t predicted_ns = 0;  // 0: not known, as the next one
    uint64_t iteration_ns = 0;
    bool is_tuning = false;
  };

  struct MessageEnds {
    uint64_t ended = 0;
    uint64_t bytes = 0;
    uint64_t pending = 0;
  };

  std::string name;
  uint64_t operations = 0;
  uint64_t operation_bytes = 0;
  uint64_t submit_ns = 0;
  uint64_t ready_ns = 0;
  uint64_t run_ns = 0;
  uint64_t steps = 0;
  uint64_t step_ns = 0;
  uint64_t exposed_ns = 0;
  MessageEnds sends;
  MessageEnds receives;
  std::map<uint32_t, Rank> ranks;
  uint64_t operations_pending = 0;
  uint64_t result_memory_bytes = 0;
  uint64_t arena_memory_bytes = 0;
  std::optional<Plan> plan;  // nothing: there are no planned tensors
  // Of each rank and work, what was told last.
  std::map<std::pair<uint32_t, std::string>, WorkLoad> work;
};

// The numbers of all jobs that have ranks on this node, for its metrics. Jobs may have the same
// name: they are those of several users, or subgroups of one job. What they have done is added up,
// and what one that has ended has done stays with the name as long as another has it, so no sum
// ever becomes less; the plan is that of the job with the largest set. Any thread; the lock is held
// when a job begins or ends, and while totals() looks.
class JobBoard {
 public:
  std::shared_ptr<JobNumbers> add(const std::string& name, const std::vector<uint32_t>& ranks);
  // The job is over. Its numbers change no more.
  void remove(const JobNumbers& numbers);
  // By name.
  std::vector<JobTotals> totals() const;

 private:
  struct Jobs {
    std::vector<std::shared_ptr<const JobNumbers>> running;
    JobTotals ended;
  };

  mutable std::mutex mutex_;
  std::map<std::string, Jobs> jobs_;  // by name
};

}  // namespace braid
