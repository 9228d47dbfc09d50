// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "engine/link.h"

namespace braid {

// A chunk that was not acknowledged for a while and is sent a second time, over another flow.
// Whichever copy is acknowledged first counts. UCX has let go of the first copy's memory when the
// second one is made, so the source hears of the second one's end only: when that is settled,
// nothing reads the bytes any more. What becomes of the first copy is only taken note of. A second
// copy that gets stuck as well may be the original of another TwiceSent. I/O loop only.
class TwiceSent final : public ChunkSource, public std::enable_shared_from_this<TwiceSent> {
 public:
  explicit TwiceSent(OutgoingChunk original) : original_(std::move(original)) {}

  // What stands in the chunk's place on the flow that has it, and what goes over another one.
  OutgoingChunk first() {
    OutgoingChunk first = copy();
    first.is_repeated = true;
    return first;
  }
  OutgoingChunk second() {
    OutgoingChunk second = copy();
    second.is_resent = true;
    return second;
  }

  std::span<const uint8_t> payload_of(const OutgoingChunk& chunk) override {
    // The first one's flow has died: the second is on its way, or in the queue. And that one needs
    // not go again when the first has come through.
    if (chunk.is_repeated || was_first_acknowledged_) return {};
    return original_.source->payload_of(original_);
  }

  void on_chunk_settled(const OutgoingChunk& chunk, bool acknowledged) override {
    if (chunk.is_repeated) {
      was_first_acknowledged_ = was_first_acknowledged_ || acknowledged;
      return;
    }
    // Let go of first: the first copy may stay for long, and the source should not.
    const OutgoingChunk original = std::exchange(original_, OutgoingChunk{});
    original.source->on_chunk_settled(original, acknowledged || was_first_acknowledged_);
  }

 private:
  // The original is the last of its copies, which is not repeated yet.
  OutgoingChunk copy() {
    OutgoingChunk copy = original_;
    copy.source = shared_from_this();
    return copy;
  }

  OutgoingChunk original_;
  bool was_first_acknowledged_ = false;
};

}  // namespace braid
