// SPDX-License-Identifier: Apache-2.0
#include "collective/unit_run.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/assert.h"
#include "collective/operation_run.h"

namespace braid {

using proto::Phase;

UnitRun::UnitRun(OperationRun& run, uint32_t unit)
    : run_(&run),
      unit_(unit),
      chunks_max_(run.partition().chunks_max(unit)),
      bits_((run.route().parts + 2 * uint64_t{run.partition().segments()}) * chunks_max_) {
  for (uint32_t segment = 0; segment < run.partition().segments(); ++segment) {
    const SegmentRoute& route = run.route().segments[segment];
    const uint64_t chunks = run.partition().chunks(unit, segment);
    parts_left_ += chunks * route.parts_from.size();
    if (route.is_owner()) steps_left_ += chunks;
    if (route.sum_from) sums_left_ += chunks;
    aside_stride_ = std::max(aside_stride_, run.partition().segment(unit, segment).bytes);
  }
}

UnitState UnitRun::state() const {
  if (!has_begun_) return UnitState::Waiting;
  if (parts_left_ != 0) return UnitState::Reducing;
  if (steps_left_ != 0) return UnitState::Stepping;
  return sums_left_ != 0 ? UnitState::Gathering : UnitState::Finished;
}

bool UnitRun::waits_for_stream() const {
  const auto& segments = run_->route().begins_others;
  return !segments.empty() && std::all_of(segments.begin(), segments.end(), [&](uint32_t segment) {
    return run_->partition().segment(unit_, segment).bytes != 0;
  });
}

void UnitRun::begin() {
  BRAID_ASSERT(run_->is_ready() && !has_begun_, "a unit begins once, when the others are ready");
  has_begun_ = true;
  if (waits_for_stream() && state() != UnitState::Finished) {
    holds_stream_ = true;
    run_->host().on_stream_taken(*run_);
  }
  const uint32_t segments = run_->partition().segments();
  for (uint32_t i = 0; i < segments; ++i)
    begin_segment((run_->route().first_segment + i) % segments);
  finish_if_complete();
}

// Sends what starts here and what has come.
void UnitRun::begin_segment(uint32_t segment) {
  const SegmentRoute& route = run_->segment_route(segment);
  const bool starts_here = route.parts_from.empty() && !route.sum_from;
  const bool is_sent = route.is_direct() || route.parts_from.empty();
  if (!is_touched_ && !is_sent) return;
  const uint32_t chunks = run_->partition().chunks(unit_, segment);
  for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
    const ChunkPosition position{segment, chunk, run_->partition().chunk(unit_, segment, chunk)};
    if (route.is_direct()) keep_own_part(position);
    if (route.part_to) {
      if (is_summed(position)) send_part(position);
    } else if (starts_here || bits_.test(sum_bit(position))) {
      send_sum(position);
    }
  }
}

uint64_t UnitRun::part_bit(const ChunkPosition& position, size_t part) const {
  return (run_->segment_route(position.segment).parts_before + part) * chunks_max_ + position.chunk;
}

uint64_t UnitRun::sum_bit(const ChunkPosition& position) const {
  return (uint64_t{run_->route().parts} + position.segment) * chunks_max_ + position.chunk;
}

uint64_t UnitRun::prepared_bit(const ChunkPosition& position) const {
  return sum_bit(position) + uint64_t{run_->partition().segments()} * chunks_max_;
}

// Parts that have come without a gap, so they are in the result.
size_t UnitRun::parts_in_turn(const ChunkPosition& position) const {
  const size_t parts = run_->segment_route(position.segment).parts_from.size();
  size_t turn = 0;
  while (turn < parts && bits_.test(part_bit(position, turn))) ++turn;
  return turn;
}

bool UnitRun::is_summed(const ChunkPosition& position) const {
  return parts_in_turn(position) == run_->segment_route(position.segment).parts_from.size();
}

void UnitRun::begin_if_ready() {
  is_touched_ = true;
  if (!has_begun_ && run_->is_ready()) begin();
}

ChunkVerdict UnitRun::take_part(NodeId from, const ChunkPosition& position,
                                std::span<const uint8_t> payload) {
  const SegmentRoute& route = run_->segment_route(position.segment);
  const auto source = std::find_if(route.parts_from.begin(), route.parts_from.end(),
                                   [&](uint32_t other) { return run_->member(other) == from; });
  if (source == route.parts_from.end()) return ChunkVerdict::Malformed;
  const auto part = static_cast<size_t>(source - route.parts_from.begin());
  if (bits_.test(part_bit(position, part))) return ChunkVerdict::Duplicate;
  const uint8_t* const bytes = run_->decoded(position.extent, payload);
  if (bytes == nullptr) return ChunkVerdict::Malformed;

  begin_if_ready();
  const size_t turn = parts_in_turn(position);
  bits_.set(part_bit(position, part));
  --parts_left_;
  run_->count_carried(position.extent.bytes);
  if (route.is_direct() && is_summed(position)) {
    add_all(position, part, bytes);
  } else if (!route.is_direct() && part == turn) {
    add_in_turn(position, turn, bytes);
  } else {
    std::memcpy(aside(position, part), bytes, position.extent.bytes);
  }
  if (is_summed(position)) on_summed(position);
  finish_if_complete();
  return ChunkVerdict::Taken;
}

// The part whose turn it is, and those after it that were put aside.
void UnitRun::add_in_turn(const ChunkPosition& position, size_t turn, const uint8_t* bytes) {
  const Operation& operation = run_->operation();
  uint8_t* const result = run_->result(position.extent);
  const size_t parts = run_->segment_route(position.segment).parts_from.size();
  for (;;) {
    if (turn == 0) {
      run_->contribution().reduce(position.extent, bytes, result, Store::Cached);
    } else {
      const std::array<const uint8_t*, 2> operands{result, bytes};
      reduce_all(operation.dtype, operation.reduction, operands,
                 position.extent.bytes / element_bytes(operation.dtype), result);
    }
    run_->host().on_bytes_reduced(position.extent.bytes);
    if (++turn == parts || !bits_.test(part_bit(position, turn))) return;
    bytes = aside(position, turn);
  }
}

// All parts in the order of the places; of the last that came `bytes` are not put aside.
void UnitRun::add_all(const ChunkPosition& position, size_t last, const uint8_t* bytes) {
  const Operation& operation = run_->operation();
  const auto& others = run_->segment_route(position.segment).parts_from;
  std::vector<const uint8_t*>& operands = run_->operands();
  operands.clear();
  for (size_t part = 0; part <= others.size(); ++part) {
    if (operands.size() == run_->route().place)
      operands.push_back(aside(position, others.size()));  // this node's own
    if (part < others.size()) operands.push_back(part == last ? bytes : aside(position, part));
  }
  reduce_all(operation.dtype, operation.reduction, operands,
             position.extent.bytes / element_bytes(operation.dtype), run_->result(position.extent));
}

// All that this node had to add is added: on goes the part or, at the owner, the sum.
void UnitRun::on_summed(const ChunkPosition& position) {
  if (run_->segment_route(position.segment).part_to) {
    if (has_begun_) send_part(position);
    return;
  }
  OwnerStep* const step = run_->step();
  if (step != nullptr &&
      step->apply(run_->operation(), position.extent, run_->result(position.extent),
                  {run_->listener(), unit_, position.segment, position.chunk}) ==
          StepOutcome::Later)
    return;
  on_final(position);
}

void UnitRun::on_final(const ChunkPosition& position) {
  BRAID_ASSERT(steps_left_ != 0 && !bits_.test(sum_bit(position)), "an owner's step ends once");
  bits_.set(sum_bit(position));
  --steps_left_;
  // What starts here was sent before it was made.
  if (has_begun_ && !run_->segment_route(position.segment).parts_from.empty()) send_sum(position);
  finish_if_complete();
}

ChunkVerdict UnitRun::take_sum(NodeId from, const ChunkPosition& position,
                               std::span<const uint8_t> payload) {
  const SegmentRoute& route = run_->segment_route(position.segment);
  if (!route.sum_from || run_->member(*route.sum_from) != from) return ChunkVerdict::Malformed;
  if (bits_.test(sum_bit(position))) return ChunkVerdict::Duplicate;
  // A sum exists only after this node has given its part: what comes earlier is none.
  if (route.part_to && !(has_begun_ && is_summed(position))) return ChunkVerdict::Malformed;
  const uint8_t* const bytes = run_->decoded(position.extent, payload);
  if (bytes == nullptr) return ChunkVerdict::Malformed;

  begin_if_ready();
  run_->store(position, bytes);
  bits_.set(sum_bit(position));
  --sums_left_;
  run_->count_carried(position.extent.bytes);
  if (run_->hop() != nullptr && !route.sum_to.empty()) {
    uint32_t* length = nullptr;
    std::memcpy(encoded(Phase::AllGather, position, length), payload.data(), payload.size());
    *length = static_cast<uint32_t>(payload.size());
  }
  if (has_begun_) send_sum(position);
  finish_if_complete();
  return ChunkVerdict::Taken;
}

// This node's own bytes of a chunk that starts here, into the result. Once only: when a chunk must
// be sent again its extent may hold the final bytes. The receiver has the partial ones then, for
// the final ones are made from them, and drops whatever it is sent.
void UnitRun::prepare(const ChunkPosition& position) {
  if (bits_.test(prepared_bit(position))) return;
  bits_.set(prepared_bit(position));
  if (!run_->is_reduced()) {
    run_->copy_own(position);
    return on_final(position);
  }
  run_->contribution().reduce(position.extent, nullptr, run_->result(position.extent),
                              run_->store());
  run_->host().on_bytes_reduced(position.extent.bytes);
  if (run_->segment_route(position.segment).is_owner() &&
      !run_->segment_route(position.segment).is_direct())
    on_summed(position);
}

// The result will hold the sum while others still wait for this node's part.
void UnitRun::keep_own_part(const ChunkPosition& position) {
  const SegmentRoute& route = run_->segment_route(position.segment);
  uint8_t* const kept = aside(position, route.parts_from.size());
  uint32_t bytes = static_cast<uint32_t>(position.extent.bytes);
  if (run_->hop() == nullptr) {
    run_->contribution().reduce(position.extent, nullptr, kept, Store::Cached);
    run_->host().on_bytes_reduced(position.extent.bytes);
  } else {
    prepare(position);
    bytes = bytes_on_wire(Phase::Direct, position);
    std::memcpy(kept, run_->result(position.extent), position.extent.bytes);
  }
  for (const uint32_t to : route.own_part_to)
    run_->submit(*this, Phase::Direct, position, to, bytes);
}

uint8_t* UnitRun::aside(const ChunkPosition& position, size_t row) {
  const SegmentRoute& route = run_->segment_route(position.segment);
  if (aside_ == nullptr) {
    const uint64_t rows = uint64_t{run_->route().parts} + (route.is_direct() ? 1 : 0);
    aside_ = std::make_unique_for_overwrite<uint8_t[]>(rows * aside_stride_);
  }
  const uint64_t within =
      position.extent.offset - run_->partition().segment(unit_, position.segment).offset;
  return aside_.get() + (route.parts_before + row) * aside_stride_ + within;
}

void UnitRun::send_part(const ChunkPosition& position) {
  run_->submit(*this, Phase::ReduceScatter, position,
               *run_->segment_route(position.segment).part_to,
               bytes_on_wire(Phase::ReduceScatter, position));
}

void UnitRun::send_sum(const ChunkPosition& position) {
  const auto& receivers = run_->segment_route(position.segment).sum_to;
  if (receivers.empty()) return;
  const uint32_t bytes = bytes_on_wire(Phase::AllGather, position);
  for (const uint32_t to : receivers) run_->submit(*this, Phase::AllGather, position, to, bytes);
}

// Bytes that start here are made when a flow takes them, not earlier: then they are still in the
// cache when they are sent.
std::span<const uint8_t> UnitRun::bytes_to_send(Phase phase, const ChunkPosition& position) {
  if (run_->hop() != nullptr) {
    uint32_t* length = nullptr;
    const uint8_t* const bytes = encoded(phase, position, length);
    return {bytes, *length};
  }
  const SegmentRoute& route = run_->segment_route(position.segment);
  if (phase == Phase::Direct)
    return {aside(position, route.parts_from.size()), position.extent.bytes};
  if (const uint8_t* input = run_->input_to_send(phase, position))
    return {input, position.extent.bytes};
  if (run_->operation().exchange != nullptr) return {gathered(position), position.extent.bytes};
  if (route.parts_from.empty() && (phase == Phase::ReduceScatter || route.is_owner()))
    prepare(position);
  return {run_->result(position.extent), position.extent.bytes};
}

const uint8_t* UnitRun::gathered(const ChunkPosition& position) {
  if (gathered_.empty()) gathered_.resize(uint64_t{run_->partition().segments()} * chunks_max_);
  auto& bytes = gathered_[uint64_t{position.segment} * chunks_max_ + position.chunk];
  if (bytes == nullptr) {
    bytes = std::make_unique_for_overwrite<uint8_t[]>(position.extent.bytes);
    run_->read_input(position, bytes.get());
  }
  return bytes.get();
}

void UnitRun::on_settled(const ChunkPosition& position) {
  if (!gathered_.empty())
    gathered_[uint64_t{position.segment} * chunks_max_ + position.chunk].reset();
}

// How long the chunk is that is about to be submitted. With a Hop it is encoded now, and who sends
// a sum, or a part that it adds itself, keeps what the others decode.
uint32_t UnitRun::bytes_on_wire(Phase phase, const ChunkPosition& position) {
  const Hop* const hop = run_->hop();
  if (hop == nullptr) return static_cast<uint32_t>(position.extent.bytes);
  uint32_t* length = nullptr;
  uint8_t* const bytes = encoded(phase, position, length);
  if (*length != 0) return *length;
  const SegmentRoute& route = run_->segment_route(position.segment);
  if (route.parts_from.empty()) prepare(position);
  const DataType dtype = run_->operation().dtype;
  const std::span plain(run_->result(position.extent), position.extent.bytes);
  *length = hop->encode(dtype, plain, bytes);
  BRAID_ASSERT(*length != 0 && *length <= encoded_stride_, "a hop encodes into its bounds");
  const bool is_kept = phase == Phase::ReduceScatter || hop->decode(dtype, {bytes, *length}, plain);
  BRAID_ASSERT(is_kept, "a hop decodes what it has encoded");
  return *length;
}

uint8_t* UnitRun::encoded(Phase phase, const ChunkPosition& position, uint32_t*& length) {
  const uint64_t positions = uint64_t{run_->partition().segments()} * chunks_max_;
  if (encoded_ == nullptr) {
    encoded_stride_ = run_->hop()->encoded_bytes_max(run_->partition().chunk_bytes_max(unit_));
    encoded_ = std::make_unique_for_overwrite<uint8_t[]>(2 * positions * encoded_stride_);
    encoded_lengths_.resize(2 * positions);
  }
  const uint64_t index = (phase == Phase::AllGather ? positions : 0) +
                         uint64_t{position.segment} * chunks_max_ + position.chunk;
  length = &encoded_lengths_[index];
  return encoded_.get() + index * encoded_stride_;
}

bool UnitRun::work(uint64_t& bytes_left) {
  if (!has_begun_) begin();
  const uint32_t own = run_->route().place;
  const uint32_t chunks = run_->partition().chunks(unit_, own);
  for (; next_work_ < chunks && bytes_left != 0; ++next_work_) {
    const ChunkPosition position{own, next_work_, run_->partition().chunk(unit_, own, next_work_)};
    prepare(position);
    bytes_left -= std::min(bytes_left, position.extent.bytes);
  }
  return next_work_ == chunks;
}

void UnitRun::finish_if_complete() {
  if (is_finished_ || state() != UnitState::Finished) return;
  is_finished_ = true;
  if (!run_->operation().is_direct) aside_.reset();
  run_->on_unit_finished(holds_stream_);
}

}  // namespace braid
