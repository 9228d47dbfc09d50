// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/peer.h"
#include "proto/chunk.h"

namespace braid {

class ChunkSource;

// A chunk that waits for a flow with room, or is on its way. Plain data: a link's queue holds
// thousands.
struct OutgoingChunk {
  proto::ChunkHeader header{};          // flow_token and sequence are filled in by the flow
  std::shared_ptr<ChunkSource> source;  // kept alive until the chunk is settled
  bool is_repeated = false;             // a newer copy of it goes over another flow
  bool is_resent = false;               // it has gone over another flow before
  uint64_t urgency = 0;                 // of a job's chunks in the queue, the largest goes first
};

// Who made a chunk. I/O loop only.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  // Called when a flow is about to send the chunk (again, if the flow it went out on has died):
  // returns its bytes, which stay valid until on_chunk_settled, and unchanged until the peer has
  // them: what is sent again after that may be anything. An empty span drops
  // the chunk silently (its operation is over); if its bytes were given before, to a flow that has
  // died, on_chunk_settled(false) follows.
  virtual std::span<const uint8_t> payload_of(const OutgoingChunk& chunk) = 0;
  // Exactly once per submitted chunk whose bytes were given: the peer has acknowledged it and no
  // flow reads the memory any more, or (acknowledged = false) the link is gone.
  virtual void on_chunk_settled(const OutgoingChunk& chunk, bool acknowledged) = 0;
};

// What may be done with a chunk's bytes as they come, before the whole of it is here.
struct ChunkIntake {
  enum class How : uint8_t {
    Whole,  // nothing: they are kept, and go to on_chunk() together
    Store,  // each byte goes to its place from store_at on
    Fold,   // pieces go to fold()
  };
  How how = How::Whole;
  uint8_t* store_at = nullptr;  // Store: where the chunk's first byte belongs

  bool operator==(const ChunkIntake&) const = default;
};

// Takes what arrives. I/O loop only; called while a transport reads: it must not open or close
// flows.
class ChunkSink {
 public:
  // Pieces but the last one are multiples of so many bytes: whole elements, whole vectors.
  static constexpr size_t kPieceBytes = 64;

  virtual ~ChunkSink() = default;
  // `payload` is valid during the call only. The chunk is acknowledged when the call returns,
  // whatever the sink did with it.
  virtual void on_chunk(NodeId from, const proto::ChunkHeader& header,
                        std::span<const uint8_t> payload) = 0;

  // How the bytes of a chunk whose header has come may be taken in. Store and Fold hold until the
  // loop's callback returns: a transport that has more bytes later asks again. If the answer is
  // another one then (the chunk has come over another flow, its operation is over), the transport
  // drops all that is still to come of the chunk. Storing and folding a chunk's bytes again changes
  // nothing, so a chunk of which a part was taken in may come anew.
  virtual ChunkIntake intake(NodeId /*from*/, const proto::ChunkHeader& /*header*/) { return {}; }
  // Fold, in order: the bytes of the chunk that begin at `offset`, a multiple of kPieceBytes.
  virtual void fold(NodeId /*from*/, const proto::ChunkHeader& /*header*/, uint32_t /*offset*/,
                    std::span<const uint8_t> /*piece*/) {}
  // All bytes were stored or folded, and the answer is still the same: the chunk is here, and
  // acknowledged when the call returns.
  virtual void on_chunk_taken(NodeId /*from*/, const proto::ChunkHeader& /*header*/) {}
};

// All flows from this I/O loop to one other node's. Chunks are pulled from one queue by whichever
// flow has room.
class Link {
 public:
  virtual ~Link() = default;
  // Never fails: if the link is gone, the chunk is settled as not acknowledged (deferred, not from
  // within the call).
  virtual void submit(OutgoingChunk chunk) = 0;
};

// How much of each link a job's chunks may use.
struct LinkLimits {
  uint32_t flows = 0;         // so many of the flows that are open; 0: TransportOptions' number
  uint32_t window_bytes = 0;  // of unacknowledged bytes per flow; 0: TransportOptions' number
  uint32_t weight = 1;  // where jobs share a link, each gets bytes in proportion to its weight
  bool operator==(const LinkLimits&) const = default;
};

// An I/O loop's view of the transport.
class Links {
 public:
  virtual ~Links() = default;
  // For the job's chunks from now on, on every link of this loop; what is on its way stays there.
  // LinkLimits{}: the job is as every other one again, which is how it has to end.
  virtual void limit(uint64_t job_key, const LinkLimits& limits) = 0;
  // nullptr if no link to `peer` was opened or it is lost. The pointer is good until lost()
  // changes, and then until the loop's callback returns.
  virtual Link* find(NodeId peer) = 0;
  // How many links were lost so far.
  uint64_t lost() const { return lost_; }

 protected:
  void note_lost() { ++lost_; }

 private:
  uint64_t lost_ = 0;
};

}  // namespace braid
