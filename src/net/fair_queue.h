// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "net/job_queue.h"

namespace braid {

// The queue of a link: a job's chunks in the order of its JobQueue, and jobs side by side. The next
// chunk is one of the job that has got the fewest bytes for its weight so far, so jobs that all
// have something to send get shares in proportion to their weights, whatever the sizes of their
// operations, and none waits behind another one's backlog (start-time fair queuing: Goyal, Vin,
// Cheng, IEEE/ACM ToN 1997). A job that had nothing to send saves up nothing. Nothing is allocated
// per chunk.
class FairQueue {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // Whether there is a front(): not where all jobs with chunks were put aside.
  bool has_front() const { return next() != jobs_.size(); }
  uint64_t bytes() const { return bytes_; }  // of all chunks

  void push_back(QueuedChunk chunk) {
    JobQueue& queue = take_note_of(chunk);
    queue.push_back(std::move(chunk));
  }
  // Before all others of its job.
  void push_front(QueuedChunk chunk) {
    JobQueue& queue = take_note_of(chunk);
    queue.push_front(std::move(chunk));
  }
  // The next chunk's job has to wait: front() is another one's until take_back_all().
  void put_aside() { jobs_[next()].is_aside = true; }
  void take_back_all() {
    for (Job& job : jobs_) job.is_aside = false;
  }
  // The one that pop_front() takes; valid until the queue changes.
  const QueuedChunk& front() const { return jobs_[next()].chunks.front(); }
  // `weight`: of the chunk's job, at least 1.
  QueuedChunk pop_front(uint32_t weight = 1) {
    BRAID_ASSERT(has_front(), "there is no next chunk");
    Job& job = jobs_[next()];
    served_ = job.served;
    QueuedChunk chunk = job.chunks.pop_front();
    // Chunks without bytes cost something too: else many of them could go before all others. What
    // is left of the division counts the next time, so small chunks cost as much as large ones.
    job.unserved += chunk.chunk.header.bytes + sizeof(proto::ChunkHeader);
    job.served += job.unserved / weight;
    job.unserved %= weight;
    --size_;
    bytes_ -= chunk.chunk.header.bytes;
    return chunk;
  }

 private:
  struct Job {
    uint64_t key = 0;
    // Bytes by weight; of a job that begins to send: as many as those who are sending.
    uint64_t served = 0;
    uint64_t unserved = 0;  // bytes that are not yet one by weight
    bool is_aside = false;
    JobQueue chunks;
  };

  // Returns where it goes.
  JobQueue& take_note_of(const QueuedChunk& chunk) {
    ++size_;
    bytes_ += chunk.chunk.header.bytes;
    return queue_of(chunk.chunk.header.job_key);
  }

  // jobs_.size(): none.
  size_t next() const {
    size_t best = jobs_.size();
    for (size_t at = 0; at < jobs_.size(); ++at) {
      if (jobs_[at].chunks.empty() || jobs_[at].is_aside) continue;
      if (best == jobs_.size() || jobs_[at].served < jobs_[best].served) best = at;
    }
    return best;
  }

  JobQueue& queue_of(uint64_t key) {
    Job* free = nullptr;
    for (Job& job : jobs_) {
      if (job.key == key) {
        if (job.chunks.empty()) job.served = std::max(job.served, served_);
        return job.chunks;
      }
      // One that would not come before anybody: what it was given is forgotten without harm.
      if (job.chunks.empty() && job.served <= served_) free = &job;
    }
    if (free == nullptr) free = &jobs_.emplace_back();
    free->key = key;
    free->is_aside = false;
    free->served = served_;
    free->unserved = 0;
    return free->chunks;
  }

  std::vector<Job> jobs_;  // as many as had chunks here at the same time
  uint64_t served_ = 0;    // of the job that was served last, before its chunk
  size_t size_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace braid
