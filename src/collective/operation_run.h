// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "collective/collective_run.h"
#include "collective/engine.h"
#include "collective/local_step.h"
#include "collective/unit.h"

namespace braid {

// An operation that goes around the ring. I/O loop only.
class OperationRun final : public CollectiveRun {
 public:
  OperationRun(Operation operation, const EngineOptions& options, OperationHost& host);

  const OperationKey& key() const override { return operation_.key; }
  uint64_t urgency() const override { return operation_.urgency; }
  size_t units() const override { return units_.size(); }
  const UnitState& unit(size_t index) const override { return units_[index]; }
  bool starts_here(size_t index) const override;

  bool is_local() const { return ring_.nodes == 1; }
  bool is_ready() const override { return is_ready_; }
  void set_ready() override { is_ready_ = true; }
  void begin_unit(size_t index) override;

  ChunkVerdict accept(NodeId from, const proto::ChunkHeader& header,
                      std::span<const uint8_t> payload) override;

  // One node only: reduces or copies up to `bytes_max` (a multiple of 64). True when nothing is
  // left.
  bool work(uint64_t bytes_max);

  bool is_done() const override;
  bool is_retired() const override { return is_done() && sends_left_ == 0; }

  void abandon() override { host_ = nullptr; }
  bool is_abandoned() const override { return host_ == nullptr; }

  std::span<const uint8_t> chunk_bytes(const OutgoingChunk& chunk) override;
  void on_chunk_settled(const OutgoingChunk& chunk, bool acknowledged) override;

 private:
  bool is_reduced() const;   // has a reduce-scatter phase
  bool is_gathered() const;  // has an all-gather phase
  uint32_t next() const { return (ring_.self + 1) % ring_.nodes; }
  uint32_t previous() const { return (ring_.self + ring_.nodes - 1) % ring_.nodes; }
  uint32_t first_segment() const { return is_reduced() ? previous() : ring_.self; }
  // Is the chunk sent from where the trainer put it? Then its bytes are in one piece.
  const uint8_t* input_to_send(proto::Phase phase, uint32_t segment, const Extent& extent) const;
  uint64_t count_input_sends(uint32_t unit) const;

  UnitState make_unit(uint32_t unit);
  UnitState* find_unit(uint32_t unit);
  bool is_possible(proto::Phase phase, const proto::ChunkHeader& header) const;
  void prepare(UnitState& unit, const proto::ChunkHeader& header, const Extent& extent);
  void pass_on(const UnitState& unit, proto::Phase phase, uint32_t segment, uint32_t chunk);
  void submit(const UnitState& unit, proto::Phase phase, uint32_t segment, uint32_t chunk);
  void chunk_is_in(UnitState& unit);
  void finish_if_complete(UnitState& unit);

  Operation operation_;
  const Ring& ring_;
  const Partition partition_;
  const uint32_t io_loops_;
  OperationHost* host_;
  LocalStep step_;
  std::vector<UnitState> units_;
  uint32_t first_unit_ = 0;  // of this loop; the others follow at distances of io_loops

  bool is_ready_ = false;
  uint64_t remaining_ = 0;  // chunks of all units (one node: bytes)
  uint64_t sends_left_ =
      0;  // chunks to send that are not yet acknowledged; never 0 again once a link was lost
  uint64_t input_sends_left_ = 0;  // those of them whose bytes are an input's

  size_t work_unit_ = 0;  // one node: how far the work has come
  uint64_t work_bytes_ = 0;
};

}  // namespace braid
