// SPDX-License-Identifier: Apache-2.0
#include "collective/scheduled_run.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "collective/operation_chunk.h"
#include "collective/reduce_kernels.h"

namespace braid {

using proto::Phase;

ScheduledRun::ScheduledRun(Operation operation, const EngineOptions& options, OperationHost& host)
    : operation_(std::move(operation)),
      schedule_(*operation_.schedule),
      partition_(operation_,
                 operation_.unit_bytes == 0 ? options.unit_bytes : operation_.unit_bytes,
                 operation_.chunk_bytes == 0 ? options.chunk_bytes : operation_.chunk_bytes),
      io_loops_(options.io_loops),
      host_(&host),
      step_(operation_),
      operands_(2) {
  BRAID_ASSERT(operation_.collective == Collective::AllReduce && !operation_.is_direct,
               "what goes by a schedule is an all-reduce");
  BRAID_ASSERT(operation_.ring->members.size() == operation_.ring->nodes,
               "the ring's nodes are known");
  uint64_t parts = 0;
  for (const SegmentRoute& segment : schedule_.segments) {
    parts_before_.push_back(parts);
    parts += segment.parts_from.size();
  }
  parts_before_.push_back(parts);
  const uint32_t loop_of_first = loop_of_unit(operation_.key, 0, io_loops_);
  first_unit_ = (options.io_loop + io_loops_ - loop_of_first) % io_loops_;
  for (uint64_t unit = first_unit_; unit < partition_.units(); unit += io_loops_) {
    units_.push_back(make_unit(static_cast<uint32_t>(unit)));
    remaining_ += units_.back().remaining;
  }
}

// Adds up what this node will receive and send in the unit.
ScheduledRun::Unit ScheduledRun::make_unit(uint32_t unit) {
  Unit state;
  state.unit = unit;
  state.chunks_max = partition_.chunks_max(unit);
  const uint64_t places = uint64_t{partition_.segments()} * state.chunks_max;
  state.reduced = Bitmap(parts_before_.back() * state.chunks_max);
  state.gathered = Bitmap(places);
  state.prepared = Bitmap(places);
  state.added.resize(places);
  for (uint32_t segment = 0; segment < partition_.segments(); ++segment) {
    const SegmentRoute& way = route(segment);
    const uint32_t chunks = partition_.chunks(unit, segment);
    state.aside_stride = std::max(state.aside_stride, partition_.segment(unit, segment).bytes);
    state.remaining += chunks * (way.parts_from.size() + (way.sum_from ? 1 : 0));
    sends_left_ += chunks * (way.sum_to.size() + (way.part_to ? 1 : 0));
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
      const Extent extent = partition_.chunk(unit, segment, chunk);
      if (input_to_send(Phase::ReduceScatter, segment, extent) != nullptr) ++input_sends_left_;
    }
  }
  return state;
}

// Where segments are empty, a chunk need not visit all nodes, so it does not begin the unit on all
// of them: then nobody may wait for a stream. Such units are small.
bool ScheduledRun::starts_here(size_t index) const {
  return !schedule_.begins_at_once &&
         partition_.chunks(units_[index].unit, partition_.segments() - 1) != 0;
}

// The bytes of a part that nothing is added to are sent from where the trainer put them, if they
// are in one piece.
const uint8_t* ScheduledRun::input_to_send(Phase phase, uint32_t segment,
                                           const Extent& extent) const {
  if (phase != Phase::ReduceScatter || !route(segment).parts_from.empty() ||
      operation_.inputs.size() != 1)
    return nullptr;
  return operation_.inputs[0].find(extent.offset, extent.bytes);
}

void ScheduledRun::begin_unit(size_t index) {
  Unit& unit = units_[index];
  BRAID_ASSERT(is_ready_ && !unit.begun, "a unit begins once, when the others are ready");
  unit.begun = true;
  if (starts_here(index) && unit.remaining != 0) {
    unit.holds_stream = true;
    host_->on_stream_taken(*this);
  }
  for (uint32_t segment = 0; segment < partition_.segments(); ++segment) {
    const uint32_t chunks = partition_.chunks(unit.unit, segment);
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
      const Place place{segment, chunk, partition_.chunk(unit.unit, segment, chunk)};
      if (is_summed(unit, place)) send_on(unit, place);
    }
  }
  finish_if_complete(unit);
}

ScheduledRun::Unit* ScheduledRun::find_unit(uint32_t unit) {
  if (unit < first_unit_ || (unit - first_unit_) % io_loops_ != 0) return nullptr;
  const size_t index = (unit - first_unit_) / io_loops_;
  return index < units_.size() ? &units_[index] : nullptr;
}

std::optional<ScheduledRun::Place> ScheduledRun::find_place(
    const proto::ChunkHeader& header) const {
  if (header.segment >= partition_.segments() ||
      header.chunk >= partition_.chunks(header.unit, header.segment))
    return std::nullopt;
  const Extent extent = partition_.chunk(header.unit, header.segment, header.chunk);
  if (extent.bytes != header.bytes) return std::nullopt;
  return Place{header.segment, header.chunk, extent};
}

ChunkVerdict ScheduledRun::accept(NodeId from, const proto::ChunkHeader& header,
                                  std::span<const uint8_t> payload) {
  Unit* unit = find_unit(header.unit);
  if (unit == nullptr || payload.size() != header.bytes) return ChunkVerdict::Malformed;
  const auto place = find_place(header);
  if (!place) return ChunkVerdict::Malformed;
  switch (static_cast<Phase>(header.phase)) {
    case Phase::ReduceScatter:
      return take_part(*unit, from, *place, payload.data());
    case Phase::AllGather:
      return take_sum(*unit, from, *place, payload.data());
    case Phase::Direct:
      break;
  }
  return ChunkVerdict::Malformed;
}

ChunkVerdict ScheduledRun::take_part(Unit& unit, NodeId from, const Place& place,
                                     const uint8_t* bytes) {
  const auto& sources = route(place.segment).parts_from;
  const auto source = std::find_if(sources.begin(), sources.end(),
                                   [&](uint32_t other) { return member(other) == from; });
  if (source == sources.end()) return ChunkVerdict::Malformed;
  const auto part = static_cast<size_t>(source - sources.begin());
  if (unit.reduced.test(part_place(unit, place, part))) return ChunkVerdict::Duplicate;
  unit.reduced.set(part_place(unit, place, part));
  unit.touched = true;

  const uint32_t& added = unit.added[unit.place(place.segment, place.chunk)];
  const uint32_t before = added;
  if (part == before) {
    add_parts(unit, place, bytes);
  } else {
    std::memcpy(aside(unit, place, part), bytes, place.extent.bytes);
  }
  if (!unit.begun) {
    if (is_ready_) begin_unit(static_cast<size_t>(&unit - units_.data()));
  } else if (added != before && is_summed(unit, place)) {
    send_on(unit, place);
  }
  chunks_are_in(unit, added - before);
  return ChunkVerdict::Taken;
}

// The part whose turn it is, and those after it that were put aside.
void ScheduledRun::add_parts(Unit& unit, const Place& place, const uint8_t* bytes) {
  const SegmentRoute& way = route(place.segment);
  uint32_t& added = unit.added[unit.place(place.segment, place.chunk)];
  uint8_t* const result = operation_.result + place.extent.offset;
  for (;;) {
    if (added == 0) {
      step_.reduce(place.extent, bytes);
    } else {
      operands_ = {result, bytes};
      reduce_all(operation_.dtype, operation_.reduction, operands_,
                 place.extent.bytes / element_bytes(operation_.dtype), result);
    }
    host_->on_bytes_reduced(place.extent.bytes);
    if (++added == way.parts_from.size()) break;
    if (!unit.reduced.test(part_place(unit, place, added))) break;
    bytes = aside(unit, place, added);
  }
  if (is_summed(unit, place) && !way.part_to) step_.finish(place.extent);
}

uint8_t* ScheduledRun::aside(Unit& unit, const Place& place, size_t part) {
  if (unit.aside == nullptr)
    unit.aside =
        std::make_unique_for_overwrite<uint8_t[]>(parts_before_.back() * unit.aside_stride);
  const uint64_t within = place.extent.offset - partition_.segment(unit.unit, place.segment).offset;
  return unit.aside.get() + (parts_before_[place.segment] + part) * unit.aside_stride + within;
}

ChunkVerdict ScheduledRun::take_sum(Unit& unit, NodeId from, const Place& place,
                                    const uint8_t* bytes) {
  const SegmentRoute& way = route(place.segment);
  const uint64_t index = unit.place(place.segment, place.chunk);
  if (!way.sum_from || member(*way.sum_from) != from) return ChunkVerdict::Malformed;
  if (unit.gathered.test(index)) return ChunkVerdict::Duplicate;
  // It exists only after this node has given its part: what comes earlier is no sum.
  if (!unit.begun || !is_summed(unit, place)) return ChunkVerdict::Malformed;
  std::memcpy(operation_.result + place.extent.offset, bytes, place.extent.bytes);
  unit.gathered.set(index);
  for (const uint32_t to : way.sum_to) submit(unit, Phase::AllGather, place, to);
  chunks_are_in(unit, 1);
  return ChunkVerdict::Taken;
}

// All that this node had to add is added: on goes the part or, at the owner, the sum.
void ScheduledRun::send_on(const Unit& unit, const Place& place) {
  const SegmentRoute& way = route(place.segment);
  if (way.part_to) return submit(unit, Phase::ReduceScatter, place, *way.part_to);
  for (const uint32_t to : way.sum_to) submit(unit, Phase::AllGather, place, to);
}

void ScheduledRun::submit(const Unit& unit, Phase phase, const Place& place, uint32_t to) {
  Link* link = host_->find_link(member(to));
  if (link == nullptr)
    return;  // never acknowledged then: the operation stays until the job layer aborts it
  link->submit(operation_chunk(operation_, shared_from_this(), phase, unit.unit, place.segment,
                               place.chunk, place.extent.bytes));
}

// A part whose chunk must be sent again may have made way for the sum by then. The receiver has the
// part in that case, for the sum is made from it, and drops whatever it is sent: a node sends its
// part of a segment once and adds nothing to it afterwards. So a part that is this node's inputs
// alone is made once, too, when a flow takes it: then it is still in the cache.
std::span<const uint8_t> ScheduledRun::chunk_bytes(const OutgoingChunk& chunk) {
  if (is_abandoned()) return {};
  const proto::ChunkHeader& header = chunk.header;
  const Extent extent = partition_.chunk(header.unit, header.segment, header.chunk);
  const auto phase = static_cast<Phase>(header.phase);
  if (const uint8_t* input = input_to_send(phase, header.segment, extent))
    return {input, extent.bytes};
  if (phase == Phase::ReduceScatter && route(header.segment).parts_from.empty()) {
    Unit& unit = *find_unit(header.unit);
    const uint64_t index = unit.place(header.segment, header.chunk);
    if (!unit.prepared.test(index)) {
      unit.prepared.set(index);
      step_.reduce(extent, nullptr);
      host_->on_bytes_reduced(extent.bytes);
    }
  }
  return {operation_.result + extent.offset, extent.bytes};
}

void ScheduledRun::on_chunk_settled(const OutgoingChunk& chunk, bool acknowledged) {
  if (is_abandoned() || !acknowledged) return;
  BRAID_ASSERT(sends_left_ != 0, "a chunk was settled twice");
  --sends_left_;
  const proto::ChunkHeader& header = chunk.header;
  const Extent extent = partition_.chunk(header.unit, header.segment, header.chunk);
  if (input_to_send(static_cast<Phase>(header.phase), header.segment, extent) != nullptr)
    --input_sends_left_;
  if (is_done()) host_->on_progress(*this);
}

void ScheduledRun::chunks_are_in(Unit& unit, uint64_t chunks) {
  BRAID_ASSERT(unit.remaining >= chunks && remaining_ >= chunks, "more chunks than there are");
  unit.remaining -= chunks;
  remaining_ -= chunks;
  finish_if_complete(unit);
}

void ScheduledRun::finish_if_complete(Unit& unit) {
  if (!unit.begun || unit.finished || unit.remaining != 0) return;
  unit.finished = true;
  unit.aside.reset();
  host_->on_unit_finished(*this, unit.holds_stream);
  if (is_done()) host_->on_progress(*this);
}

}  // namespace braid
