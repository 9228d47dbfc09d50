// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/job_turns.h"
#include "net/job_queue.h"

namespace braid {

// The queue of a link: a job's chunks in the order of its JobQueue, and jobs side by side, which
// share the link by bytes (see JobTurns). Nothing is allocated per chunk.
class FairQueue {
 public:
  bool empty() const { return size_ == 0; }
  // Whether there is a front(): not where all jobs with chunks were put aside.
  bool has_front() const { return jobs_.has_next(); }
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
  void put_aside() { jobs_.put_aside(); }
  void take_back_all() { jobs_.take_back_all(); }
  // The one that pop_front() takes; valid until the queue changes.
  const QueuedChunk& front() const { return jobs_.next_queue().front(); }
  // `weight`: of the chunk's job, at least 1.
  QueuedChunk pop_front(uint32_t weight = 1) {
    QueuedChunk chunk = jobs_.begin_turn().pop_front();
    // Chunks without bytes cost something too: else many of them could go before all others.
    jobs_.end_turn(chunk.chunk.header.bytes + sizeof(proto::ChunkHeader), weight);
    --size_;
    bytes_ -= chunk.chunk.header.bytes;
    return chunk;
  }

 private:
  // Returns where it goes.
  JobQueue& take_note_of(const QueuedChunk& chunk) {
    ++size_;
    bytes_ += chunk.chunk.header.bytes;
    return jobs_.queue_of(chunk.chunk.header.job_key);
  }

  JobTurns<JobQueue> jobs_;
  size_t size_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace braid
