// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collective/collective_run.h"
#include "collective/engine.h"
#include "collective/local_step.h"
#include "collective/unit.h"

namespace braid {

// An all-reduce that goes as its schedule says. A segment's chunks each go their way by themselves:
// a node adds the others' parts to its own in the order of its route and sends the sum on, to the
// next node as a part (phase ReduceScatter) or, at the owner, to the others as the result (phase
// AllGather). A part that comes before its turn is put aside. I/O loop only.
class ScheduledRun final : public CollectiveRun {
 public:
  ScheduledRun(Operation operation, const EngineOptions& options, OperationHost& host);

  const OperationKey& key() const override { return operation_.key; }
  uint64_t urgency() const override { return operation_.urgency; }
  size_t units() const override { return units_.size(); }
  const UnitState& unit(size_t index) const override { return units_[index]; }
  bool starts_here(size_t index) const override;

  bool is_ready() const override { return is_ready_; }
  void set_ready() override { is_ready_ = true; }
  void begin_unit(size_t index) override;

  ChunkVerdict accept(NodeId from, const proto::ChunkHeader& header,
                      std::span<const uint8_t> payload) override;

  bool is_done() const override { return is_ready_ && remaining_ == 0 && input_sends_left_ == 0; }
  bool is_retired() const override { return is_done() && sends_left_ == 0; }

  void abandon() override { host_ = nullptr; }
  bool is_abandoned() const override { return host_ == nullptr; }

  std::span<const uint8_t> chunk_bytes(const OutgoingChunk& chunk) override;
  void on_chunk_settled(const OutgoingChunk& chunk, bool acknowledged) override;

 private:
  struct Unit : UnitState {            // `reduced` by part_place(), the other bitmaps by place()
    std::vector<uint32_t> added;       // parts of others that are in the result, by place()
    std::unique_ptr<uint8_t[]> aside;  // parts that came before their turn; from the first one on
    uint64_t aside_stride = 0;         // bytes kept for a segment's part
  };
  // A chunk and where it lies.
  struct Place {
    uint32_t segment = 0;
    uint32_t chunk = 0;
    Extent extent;
  };

  const SegmentRoute& route(uint32_t segment) const { return schedule_.segments[segment]; }
  NodeId member(uint32_t place) const { return operation_.ring->members[place]; }
  uint64_t part_place(const Unit& unit, const Place& place, size_t part) const {
    return (parts_before_[place.segment] + part) * unit.chunks_max + place.chunk;
  }
  bool is_summed(const Unit& unit, const Place& place) const {
    return unit.added[unit.place(place.segment, place.chunk)] ==
           route(place.segment).parts_from.size();
  }

  Unit make_unit(uint32_t unit);
  Unit* find_unit(uint32_t unit);
  // Of a chunk that exists and has the header's size.
  std::optional<Place> find_place(const proto::ChunkHeader& header) const;
  ChunkVerdict take_part(Unit& unit, NodeId from, const Place& place, const uint8_t* bytes);
  ChunkVerdict take_sum(Unit& unit, NodeId from, const Place& place, const uint8_t* bytes);
  void add_parts(Unit& unit, const Place& place, const uint8_t* bytes);
  uint8_t* aside(Unit& unit, const Place& place, size_t part);
  void send_on(const Unit& unit, const Place& place);
  void submit(const Unit& unit, proto::Phase phase, const Place& place, uint32_t to);
  const uint8_t* input_to_send(proto::Phase phase, uint32_t segment, const Extent& extent) const;
  void chunks_are_in(Unit& unit, uint64_t chunks);
  void finish_if_complete(Unit& unit);

  Operation operation_;
  const Schedule& schedule_;
  const Partition partition_;
  const uint32_t io_loops_;
  OperationHost* host_;
  LocalStep step_;
  std::vector<uint64_t> parts_before_;  // by segment: parts of the segments before it
  std::vector<const uint8_t*> operands_;
  std::vector<Unit> units_;
  uint32_t first_unit_ = 0;  // of this loop; the others follow at distances of io_loops

  bool is_ready_ = false;
  uint64_t remaining_ = 0;         // chunks to add or store, of all units
  uint64_t sends_left_ = 0;        // chunks that are not acknowledged yet
  uint64_t input_sends_left_ = 0;  // those of them whose bytes are an input's
};

}  // namespace braid
