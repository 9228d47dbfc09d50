// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "net/chunk_queue.h"

namespace braid {

// The chunks of one job that wait for a link: first those that a dead flow gave back, then the most
// urgent, in order of arrival where they are equally urgent. That none waits for ever, each time
// that kOvertakingBytesMax went before others a chunk of those that have waited longest goes.
//
// Chunks of one urgency stand in a lane. There are as many lanes as operations of the job have
// chunks here, and what a chunk costs does not depend on how many chunks there are. Lanes are used
// again, so nothing is allocated per chunk.
class JobQueue {
 public:
  static constexpr uint64_t kOvertakingBytesMax = 4 << 20;

  bool empty() const { return lanes_used_ == 0 && returned_.empty(); }

  void push_back(QueuedChunk chunk) {
    ChunkQueue& lane = lane_of(chunk.chunk.urgency);
    lane.push_back(std::move(chunk));
  }
  // Before all others.
  void push_front(QueuedChunk chunk) { returned_.push_front(std::move(chunk)); }
  const QueuedChunk& front() const {
    return returned_.empty() ? lanes_[next()].chunks.front() : returned_.front();
  }
  QueuedChunk pop_front() {
    if (!returned_.empty()) return returned_.pop_front();
    const size_t at = next();
    Lane& lane = lanes_[at];
    QueuedChunk chunk = lane.chunks.pop_front();
    const bool was_overtaken = overtaking_bytes_ >= kOvertakingBytesMax;
    overtaking_bytes_ =
        was_overtaken || lanes_used_ == 1
            ? 0
            : overtaking_bytes_ + chunk.chunk.header.bytes + sizeof(proto::ChunkHeader);
    lane.served = ++turns_;
    if (lane.chunks.empty()) {
      const auto emptied = lanes_.begin() + static_cast<std::ptrdiff_t>(at);
      std::rotate(emptied, emptied + 1, end());
      --lanes_used_;
    }
    return chunk;
  }

 private:
  struct Lane {
    uint64_t urgency = 0;
    uint64_t served = 0;  // the turn in which it gave a chunk, or came to be
    ChunkQueue chunks;
  };
  using Lanes = std::vector<Lane>;

  Lanes::iterator end() { return lanes_.begin() + static_cast<std::ptrdiff_t>(lanes_used_); }

  size_t next() const {
    BRAID_ASSERT(lanes_used_ > 0, "an empty queue has no front");
    if (overtaking_bytes_ < kOvertakingBytesMax) return lanes_used_ - 1;
    const auto longest =
        std::min_element(lanes_.begin(), lanes_.begin() + static_cast<std::ptrdiff_t>(lanes_used_),
                         [](const Lane& a, const Lane& b) { return a.served < b.served; });
    return static_cast<size_t>(longest - lanes_.begin());
  }

  ChunkQueue& lane_of(uint64_t urgency) {
    const auto at =
        std::lower_bound(lanes_.begin(), end(), urgency,
                         [](const Lane& lane, uint64_t wanted) { return lane.urgency < wanted; });
    if (at != end() && at->urgency == urgency) return at->chunks;
    const auto place = at - lanes_.begin();
    if (lanes_used_ == lanes_.size()) lanes_.emplace_back();
    ++lanes_used_;
    std::rotate(lanes_.begin() + place, end() - 1, end());
    Lane& lane = lanes_[static_cast<size_t>(place)];
    lane.urgency = urgency;
    lane.served = ++turns_;
    return lane.chunks;
  }

  ChunkQueue returned_;  // by flows that have died
  Lanes lanes_;          // the first lanes_used_ by urgency, the others empty
  size_t lanes_used_ = 0;
  uint64_t overtaking_bytes_ = 0;  // went since a chunk of the lane that had waited longest
  uint64_t turns_ = 0;
};

}  // namespace braid
