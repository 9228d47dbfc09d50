// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collective/local_step.h"
#include "collective/operation_run.h"

namespace braid {

// A small all-reduce as one node runs it: it sends its part (its ranks' inputs, reduced) to every
// other node, and folds all parts in the order of the ring, so all nodes get the same bits. Parts
// are sent before anybody has said that it is ready for them, so they carry the signature: what
// belongs to something else is not taken, and the neighbours' comparison ends the job. When all
// parts are there, all nodes have submitted the same. I/O loop only.
class DirectRun final : public ChunkSource, public std::enable_shared_from_this<DirectRun> {
 public:
  explicit DirectRun(Operation operation);

  const OperationKey& key() const { return operation_.key; }
  bool has_begun() const { return has_begun_; }
  // Makes this node's part and sends it.
  void begin(OperationHost& host);
  // begin() comes first.
  ChunkVerdict accept(NodeId from, const proto::ChunkHeader& header,
                      std::span<const uint8_t> payload);

  // All parts are in: the result is final; nothing reads it or the inputs. Others may still wait
  // for this node's part, which the run keeps until it is sent.
  bool is_done() const { return missing_ == 0; }
  bool is_finished() const { return is_finished_; }
  // It lets go of the job's memory.
  void finish() {
    is_finished_ = true;
    operation_.memory.reset();
  }
  // The operation is over: its chunks have no bytes any more.
  void abandon();

  std::span<const uint8_t> chunk_bytes(const OutgoingChunk& chunk) override;
  void on_chunk_settled(const OutgoingChunk& chunk, bool acknowledged) override;

 private:
  uint8_t* part(uint32_t place) { return parts_.get() + place * stride_; }
  void fold();

  Operation operation_;
  std::shared_ptr<const Ring> ring_;
  const uint64_t bytes_;
  const uint64_t stride_;  // from one part to the next
  LocalStep step_;
  const std::unique_ptr<uint8_t[]> parts_;  // one after the other, in the order of the ring
  std::vector<bool> has_part_;
  uint32_t missing_;
  bool has_begun_ = false;
  bool is_finished_ = false;
  bool is_abandoned_ = false;
};

}  // namespace braid
