// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.h"

namespace braid {

// A queue for each job, and whose turn it is. The next turn is the job's that has got the least for
// its weight so far. So jobs that all wait for something get shares in proportion to their weights,
// whatever their turns cost, and none waits behind another one's backlog (start-time fair queuing:
// Goyal, Vin, Cheng, IEEE/ACM ToN 1997). A job that waited for nothing saves up nothing. `Queue` is
// a container of the user's: this only asks whether it is empty(). Nothing is allocated per turn.
template <typename Queue>
class JobTurns {
 public:
  // Where something of the job is put. Good until the next call.
  Queue& queue_of(uint64_t job_key) {
    Job* free = nullptr;
    for (Job& job : jobs_) {
      if (job.key == job_key) {
        if (job.queue.empty()) job.served = std::max(job.served, served_);
        return job.queue;
      }
      // An empty queue that is not ahead of anyone: its balance can be dropped.
      if (job.queue.empty() && job.served <= served_) free = &job;
    }
    if (free == nullptr) free = &jobs_.emplace_back();
    free->key = job_key;
    free->is_aside = false;
    free->served = served_;
    free->unserved = 0;
    return free->queue;
  }
  // What waits of a job, if it is known here.
  Queue* find(uint64_t job_key) {
    const auto found = std::find_if(jobs_.begin(), jobs_.end(),
                                    [job_key](const Job& job) { return job.key == job_key; });
    return found == jobs_.end() ? nullptr : &found->queue;
  }

  // Whether there is a next turn: not where all jobs that wait were put aside.
  bool has_next() const { return next() != jobs_.size(); }
  const Queue& next_queue() const { return jobs_[next()].queue; }
  // The next job has to wait: the turn is another one's until take_back_all().
  void put_aside() { jobs_[next()].is_aside = true; }
  void take_back_all() {
    for (Job& job : jobs_) job.is_aside = false;
  }

  // The next job's turn, to take something out of its queue; end_turn() follows.
  Queue& begin_turn() {
    BRAID_ASSERT(has_next(), "there is no next turn");
    turn_ = next();
    return jobs_[turn_].queue;
  }
  // `weight`: the job's, at least 1. What is left of the division counts the next time, so cheap
  // turns cost as much as dear ones.
  void end_turn(uint64_t cost, uint32_t weight = 1) {
    Job& job = jobs_[turn_];
    served_ = job.served;
    job.unserved += cost;
    job.served += job.unserved / weight;
    job.unserved %= weight;
  }

 private:
  struct Job {
    uint64_t key = 0;
    uint64_t served = 0;    // cost by weight; of a job that comes: as much as those who wait have
    uint64_t unserved = 0;  // cost that is not yet one by weight
    bool is_aside = false;
    Queue queue;
  };

  // jobs_.size(): none.
  size_t next() const {
    size_t best = jobs_.size();
    for (size_t at = 0; at < jobs_.size(); ++at) {
      if (jobs_[at].queue.empty() || jobs_[at].is_aside) continue;
      if (best == jobs_.size() || jobs_[at].served < jobs_[best].served) best = at;
    }
    return best;
  }

  std::vector<Job> jobs_;  // as many as waited at the same time
  uint64_t served_ = 0;    // of the job whose turn was the last one, before that turn
  size_t turn_ = 0;
};

}  // namespace braid
