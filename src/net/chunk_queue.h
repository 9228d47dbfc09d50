// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "engine/link.h"

namespace braid {

// A chunk in a link's queue.
struct QueuedChunk {
  OutgoingChunk chunk;
  bool was_sent = false;  // its bytes were given before, to a flow that has died: it must be
                          // settled, come what may
};

// Chunks that wait for a link, in order: a ring that grows and never shrinks while chunks pass, so
// nothing is allocated per chunk. Its length is bounded by what the job has in flight (`streams`
// units).
class ChunkQueue {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  void push_back(QueuedChunk chunk) {
    grow_if_full();
    at(size_++) = std::move(chunk);
  }
  void push_front(QueuedChunk chunk) {
    grow_if_full();
    head_ = (head_ + ring_.size() - 1) & (ring_.size() - 1);
    ++size_;
    at(0) = std::move(chunk);
  }
  const QueuedChunk& front() const {
    BRAID_ASSERT(size_ > 0, "an empty queue has no front");
    return ring_[head_];
  }
  QueuedChunk pop_front() {
    BRAID_ASSERT(size_ > 0, "pop from an empty queue");
    QueuedChunk chunk = std::exchange(at(0), QueuedChunk{});
    head_ = (head_ + 1) & (ring_.size() - 1);
    --size_;
    return chunk;
  }

 private:
  QueuedChunk& at(size_t index) { return ring_[(head_ + index) & (ring_.size() - 1)]; }

  void grow_if_full() {
    if (size_ < ring_.size()) return;
    std::vector<QueuedChunk> larger(ring_.empty() ? 64 : 2 * ring_.size());  // a power of two
    for (size_t i = 0; i < size_; ++i) larger[i] = std::move(at(i));
    ring_ = std::move(larger);
    head_ = 0;
  }

  std::vector<QueuedChunk> ring_;
  size_t head_ = 0;
  size_t size_ = 0;
};

}  // namespace braid
