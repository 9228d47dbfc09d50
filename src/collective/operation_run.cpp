// SPDX-License-Identifier: Apache-2.0
#include "collective/operation_run.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "collective/operation_chunk.h"

namespace braid {

using proto::Phase;

OperationRun::OperationRun(Operation operation, const EngineOptions& options, OperationHost& host)
    : operation_(std::move(operation)),
      ring_(*operation_.ring),
      partition_(operation_,
                 operation_.unit_bytes == 0 ? options.unit_bytes : operation_.unit_bytes,
                 operation_.chunk_bytes == 0 ? options.chunk_bytes : operation_.chunk_bytes),
      io_loops_(options.io_loops),
      host_(&host),
      step_(operation_) {
  BRAID_ASSERT(operation_.inputs.size() == ring_.ranks_of_node[ring_.self],
               "every local rank has an input");
  BRAID_ASSERT(operation_.collective != Collective::Broadcast ||
                   operation_.root_node != ring_.self ||
                   operation_.root_local_input < operation_.inputs.size(),
               "the root is a local rank");
  const uint32_t loop_of_first = loop_of_unit(operation_.key, 0, io_loops_);
  first_unit_ = (options.io_loop + io_loops_ - loop_of_first) % io_loops_;
  for (uint64_t unit = first_unit_; unit < partition_.units(); unit += io_loops_) {
    units_.push_back(make_unit(static_cast<uint32_t>(unit)));
    remaining_ += units_.back().remaining;
  }
  is_ready_ = is_local();
}

bool OperationRun::is_reduced() const {
  return operation_.collective == Collective::AllReduce ||
         operation_.collective == Collective::ReduceScatter;
}

bool OperationRun::is_gathered() const {
  return operation_.collective != Collective::ReduceScatter;
}

// Adds up what this node will receive, copy and send in the unit.
UnitState OperationRun::make_unit(uint32_t unit) {
  UnitState state;
  state.unit = unit;
  if (is_local()) {
    state.remaining = partition_.segment(unit, 0).bytes;
    return state;
  }
  state.chunks_max = partition_.chunks_max(unit);
  const uint64_t places = uint64_t{ring_.nodes} * state.chunks_max;
  if (is_reduced()) state.reduced = Bitmap(places);
  if (is_gathered()) state.gathered = Bitmap(places);
  state.prepared = Bitmap(state.chunks_max);
  for (uint32_t segment = 0; segment < ring_.nodes; ++segment) {
    const uint64_t chunks = partition_.chunks(unit, segment);
    if (is_reduced()) {  // starts at the owner's successor, ends at the owner
      if (segment != previous()) state.remaining += chunks;
      if (segment != ring_.self) sends_left_ += chunks;
    }
    if (is_gathered()) {  // starts at the owner, ends at its predecessor
      if (segment != ring_.self || !is_reduced()) state.remaining += chunks;
      if (segment != next()) sends_left_ += chunks;
    }
  }
  input_sends_left_ += count_input_sends(unit);
  return state;
}

bool OperationRun::starts_here(size_t index) const {
  return !is_local() && partition_.chunks(units_[index].unit, first_segment()) != 0;
}

const uint8_t* OperationRun::input_to_send(Phase phase, uint32_t segment,
                                           const Extent& extent) const {
  if (phase != Phase::ReduceScatter || segment != previous() || operation_.inputs.size() != 1)
    return nullptr;
  return operation_.inputs[0].find(extent.offset, extent.bytes);
}

uint64_t OperationRun::count_input_sends(uint32_t unit) const {
  if (!is_reduced() || operation_.inputs.size() != 1) return 0;
  uint64_t sends = 0;
  const uint32_t chunks = partition_.chunks(unit, previous());
  for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
    const Extent extent = partition_.chunk(unit, previous(), chunk);
    if (input_to_send(Phase::ReduceScatter, previous(), extent) != nullptr) ++sends;
  }
  return sends;
}

void OperationRun::begin_unit(size_t index) {
  UnitState& unit = units_[index];
  BRAID_ASSERT(is_ready_ && !unit.begun && !is_local(),
               "a unit begins once, when the successor is ready");
  unit.begun = true;
  const uint32_t first = first_segment();
  const uint32_t first_chunks = partition_.chunks(unit.unit, first);
  if (first_chunks != 0 && unit.remaining != 0) {
    unit.holds_stream = true;
    host_->on_stream_taken(*this);
  }
  const Phase first_phase = is_reduced() ? Phase::ReduceScatter : Phase::AllGather;
  for (uint32_t chunk = 0; chunk < first_chunks; ++chunk) submit(unit, first_phase, first, chunk);
  for (uint32_t segment = 0; unit.touched && segment < ring_.nodes; ++segment) {
    const uint32_t chunks = partition_.chunks(unit.unit, segment);
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
      const uint64_t place = unit.place(segment, chunk);
      if (is_reduced() && unit.reduced.test(place))
        pass_on(unit, Phase::ReduceScatter, segment, chunk);
      if (is_gathered() && unit.gathered.test(place))
        pass_on(unit, Phase::AllGather, segment, chunk);
    }
  }
  finish_if_complete(unit);
}

UnitState* OperationRun::find_unit(uint32_t unit) {
  if (unit < first_unit_ || (unit - first_unit_) % io_loops_ != 0) return nullptr;
  const size_t index = (unit - first_unit_) / io_loops_;
  return index < units_.size() ? &units_[index] : nullptr;
}

// Can the predecessor send such a chunk, of a unit that exists?
bool OperationRun::is_possible(Phase phase, const proto::ChunkHeader& header) const {
  if (header.segment >= ring_.nodes) return false;
  switch (phase) {
    case Phase::ReduceScatter:
      if (!is_reduced() || header.segment == previous()) return false;
      break;
    case Phase::AllGather:
      if (!is_gathered() || header.segment == ring_.self) return false;
      break;
    case Phase::Direct:
      return false;
  }
  return header.chunk < partition_.chunks(header.unit, header.segment) &&
         header.bytes == partition_.chunk(header.unit, header.segment, header.chunk).bytes;
}

ChunkVerdict OperationRun::accept(NodeId from, const proto::ChunkHeader& header,
                                  std::span<const uint8_t> payload) {
  UnitState* unit = find_unit(header.unit);
  const auto phase = static_cast<Phase>(header.phase);
  if (is_local() || from != ring_.predecessor || unit == nullptr ||
      payload.size() != header.bytes || !is_possible(phase, header)) {
    return ChunkVerdict::Malformed;
  }
  const uint64_t place = unit->place(header.segment, header.chunk);
  Bitmap& seen = phase == Phase::ReduceScatter ? unit->reduced : unit->gathered;
  if (seen.test(place)) return ChunkVerdict::Duplicate;

  const Extent extent = partition_.chunk(header.unit, header.segment, header.chunk);
  if (phase == Phase::ReduceScatter) {
    step_.reduce(extent, payload.data());
    if (header.segment == ring_.self) step_.finish(extent);
    host_->on_bytes_reduced(extent.bytes);
  } else {
    // The final bytes of a sum exist only after this node has given its part: what comes earlier is
    // no result.
    const bool gave_its_part =
        !is_reduced() || (header.segment == previous() ? unit->begun : unit->reduced.test(place));
    if (!gave_its_part) return ChunkVerdict::Malformed;
    std::memcpy(operation_.result + extent.offset, payload.data(), extent.bytes);
  }
  seen.set(place);
  unit->touched = true;
  if (unit->begun) {
    pass_on(*unit, phase, header.segment, header.chunk);
  } else if (is_ready_) {
    begin_unit(static_cast<size_t>(unit - units_.data()));
  }
  chunk_is_in(*unit);
  return ChunkVerdict::Taken;
}

// What follows from a chunk that has come.
void OperationRun::pass_on(const UnitState& unit, Phase phase, uint32_t segment, uint32_t chunk) {
  switch (phase) {
    case Phase::ReduceScatter:
      if (segment != ring_.self) {
        submit(unit, Phase::ReduceScatter, segment, chunk);
      } else if (is_gathered()) {
        submit(unit, Phase::AllGather, segment, chunk);
      }
      return;
    case Phase::AllGather:
      if (segment != next()) submit(unit, Phase::AllGather, segment, chunk);
      return;
    case Phase::Direct:
      return;
  }
}

void OperationRun::submit(const UnitState& unit, Phase phase, uint32_t segment, uint32_t chunk) {
  Link* link = host_->find_link(ring_.successor);
  if (link == nullptr)
    return;  // never acknowledged then: the operation stays until the job layer aborts it
  link->submit(operation_chunk(operation_, shared_from_this(), phase, unit.unit, segment, chunk,
                               partition_.chunk(unit.unit, segment, chunk).bytes));
}

// Bytes that start here are made when a flow takes them, not earlier: then they are still in the
// cache when they are sent.
std::span<const uint8_t> OperationRun::chunk_bytes(const OutgoingChunk& chunk) {
  if (is_abandoned()) return {};
  const proto::ChunkHeader& header = chunk.header;
  const Extent extent = partition_.chunk(header.unit, header.segment, header.chunk);
  const auto phase = static_cast<Phase>(header.phase);
  if (const uint8_t* input = input_to_send(phase, header.segment, extent))
    return {input, extent.bytes};
  const bool starts_here =
      header.segment == first_segment() && (phase == Phase::ReduceScatter || !is_reduced());
  if (starts_here) prepare(*find_unit(header.unit), header, extent);
  return {operation_.result + extent.offset, extent.bytes};
}

// Once only: when a chunk must be sent again its place may hold the final bytes. The successor has
// the partial ones then, for the final ones are made from them, and drops whatever it is sent.
void OperationRun::prepare(UnitState& unit, const proto::ChunkHeader& header,
                           const Extent& extent) {
  if (unit.prepared.test(header.chunk)) return;
  unit.prepared.set(header.chunk);
  if (is_reduced()) {
    step_.reduce(extent, nullptr);
    host_->on_bytes_reduced(extent.bytes);
  } else {
    step_.copy_inputs(extent);
    chunk_is_in(unit);
  }
}

void OperationRun::on_chunk_settled(const OutgoingChunk& chunk, bool acknowledged) {
  if (is_abandoned() || !acknowledged) return;
  BRAID_ASSERT(sends_left_ != 0, "a chunk was settled twice");
  --sends_left_;
  const auto phase = static_cast<Phase>(chunk.header.phase);
  const Extent extent =
      partition_.chunk(chunk.header.unit, chunk.header.segment, chunk.header.chunk);
  if (input_to_send(phase, chunk.header.segment, extent) != nullptr) --input_sends_left_;
  if (is_done()) host_->on_progress(*this);
}

void OperationRun::chunk_is_in(UnitState& unit) {
  BRAID_ASSERT(unit.remaining != 0 && remaining_ != 0, "more chunks came than there are");
  --unit.remaining;
  --remaining_;
  finish_if_complete(unit);
}

void OperationRun::finish_if_complete(UnitState& unit) {
  if (!unit.begun || unit.finished || unit.remaining != 0) return;
  unit.finished = true;
  host_->on_unit_finished(*this, unit.holds_stream);
  if (is_done()) host_->on_progress(*this);
}

bool OperationRun::is_done() const {
  // Where no result comes back around the ring, only acknowledgements say that the others have what
  // they need.
  const bool needs_acknowledgements =
      operation_.collective == Collective::ReduceScatter ||
      (operation_.collective == Collective::Broadcast && operation_.root_node == ring_.self);
  return is_ready_ && remaining_ == 0 && input_sends_left_ == 0 &&
         (!needs_acknowledgements || sends_left_ == 0);
}

bool OperationRun::work(uint64_t bytes_max) {
  while (bytes_max != 0 && work_unit_ < units_.size()) {
    UnitState& unit = units_[work_unit_];
    const Extent whole = partition_.segment(unit.unit, 0);
    const uint64_t bytes = std::min(bytes_max, whole.bytes - work_bytes_);
    const Extent extent{whole.offset + work_bytes_, bytes};
    if (is_reduced()) {
      step_.reduce_and_finish(extent);
      host_->on_bytes_reduced(bytes);
    } else {
      step_.copy_inputs(extent);
    }
    bytes_max -= bytes;
    work_bytes_ += bytes;
    remaining_ -= bytes;
    if (work_bytes_ < whole.bytes) break;
    unit.finished = true;
    host_->on_unit_finished(*this, false);
    ++work_unit_;
    work_bytes_ = 0;
  }
  return work_unit_ == units_.size();
}

}  // namespace braid
