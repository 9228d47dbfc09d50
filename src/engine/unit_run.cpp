// SPDX-License-Identifier: Apache-2.0
#include "engine/unit_run.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/assert.h"
#include "base/clock.h"
#include "engine/operation_run.h"

namespace braid {
namespace {

// Shorter passes are not noted: two looks at the clock are 1 % of what these take.
constexpr uint64_t kNotedReduceBytes = 64 << 10;

}  // namespace

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
  if (run_->host().timeline() != nullptr) begun_ns_ = SystemClock().now_ns();
  if (waits_for_stream() && state() != UnitState::Finished)
    stream_ = run_->host().take_stream(*run_);
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

ChunkVerdict UnitRun::take_part(NodeId from, const ChunkPosition& position, Encoding encoding,
                                std::span<const uint8_t> payload) {
  const SegmentRoute& route = run_->segment_route(position.segment);
  const auto source = std::find_if(route.parts_from.begin(), route.parts_from.end(),
                                   [&](uint32_t other) { return run_->member(other) == from; });
  if (source == route.parts_from.end()) return ChunkVerdict::Malformed;
  const auto part = static_cast<size_t>(source - route.parts_from.begin());
  if (bits_.test(part_bit(position, part))) return ChunkVerdict::Duplicate;
  const bool is_taken = run_->hop() == nullptr ? add_plain(position, part, payload)
                                               : add_decoded(position, part, encoding, payload);
  if (!is_taken) return ChunkVerdict::Malformed;
  if (is_summed(position)) on_summed(position);
  finish_if_complete();
  return ChunkVerdict::Taken;
}

bool UnitRun::add_plain(const ChunkPosition& position, size_t part,
                        std::span<const uint8_t> payload) {
  const SegmentRoute& route = run_->segment_route(position.segment);
  if (payload.size() != position.extent.bytes) return false;
  begin_if_ready();
  const size_t turn = parts_in_turn(position);
  note_part(position, part);
  if (route.is_direct() && is_summed(position)) {
    add_all(position, part, payload.data());
  } else if (!route.is_direct() && part == turn) {
    add_in_turn(position, turn, payload.data());
  } else {
    std::memcpy(aside(position, part), payload.data(), position.extent.bytes);
  }
  return true;
}

// What comes before its turn is put aside decoded: by then it is known to be a part.
bool UnitRun::add_decoded(const ChunkPosition& position, size_t part, Encoding encoding,
                          std::span<const uint8_t> payload) {
  const bool is_direct = run_->segment_route(position.segment).is_direct();
  const size_t turn = parts_in_turn(position);
  if (is_direct || part != turn) {
    uint8_t* const row = aside(position, part);
    if (!run_->hop()->decode(encoding, payload, elements(row, position))) return false;
    begin_if_ready();
    note_part(position, part);
    if (is_direct && is_summed(position)) add_all(position, part, row);
    return true;
  }
  uint8_t* const result = run_->result(position.extent);
  if (turn == 0) prepare(position);
  if (!run_->hop()->decode_and_add(encoding, payload, elements(result, position))) return false;
  run_->host().on_bytes_reduced(position.extent.bytes);
  begin_if_ready();
  note_part(position, part);
  const size_t parts = run_->segment_route(position.segment).parts_from.size();
  if (turn + 1 < parts && bits_.test(part_bit(position, turn + 1)))
    add_in_turn(position, turn + 1, aside(position, turn + 1));
  return true;
}

void UnitRun::note_part(const ChunkPosition& position, size_t part) {
  bits_.set(part_bit(position, part));
  --parts_left_;
  run_->count_carried(position.extent.bytes);
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
  if (Hop* const hop = run_->hop(); hop != nullptr) {
    // A sum exists only after this node's part was encoded.
    uint32_t* length = nullptr;
    if (route.part_to) encoded(Phase::ReduceScatter, position, length);
    if (length != nullptr && *length == 0) return ChunkVerdict::Malformed;
    const auto out = elements(run_->result(position.extent), position);
    if (!hop->decode(Encoding::Sum, payload, out)) return ChunkVerdict::Malformed;
    begin_if_ready();
  } else {
    if (payload.size() != position.extent.bytes) return ChunkVerdict::Malformed;
    begin_if_ready();
    run_->store(position, payload.data());
  }
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
  if (run_->hop() != nullptr) return read_own_part(position, run_->result(position.extent));
  const bool is_noted =
      run_->host().timeline() != nullptr && position.extent.bytes >= kNotedReduceBytes;
  const uint64_t begin_ns = is_noted ? SystemClock().now_ns() : 0;
  run_->contribution().reduce(position.extent, nullptr, run_->result(position.extent),
                              run_->store());
  if (is_noted) note_reduce(position, begin_ns);
  run_->host().on_bytes_reduced(position.extent.bytes);
  if (run_->segment_route(position.segment).is_owner() &&
      !run_->segment_route(position.segment).is_direct())
    on_summed(position);
}

// With a Hop: what this node gives, as it is added here.
void UnitRun::read_own_part(const ChunkPosition& position, uint8_t* out) {
  run_->contribution().reduce(position.extent, nullptr, out, Store::Cached);
  run_->host().on_bytes_reduced(position.extent.bytes);
  const auto own = elements(out, position);
  if (run_->operation().reduction == Reduction::Average)
    divide_all(DataType::Float32, out, own.size(), run_->operation().ring->world_size);
  const SegmentRoute& route = run_->segment_route(position.segment);
  if (route.parts_from.empty() || route.is_direct() || !run_->hop()->encodes_own_part()) return;
  // Nobody gets these bytes.
  const auto bytes = run_->scratch(run_->hop()->encoded_bytes_max(Encoding::Part, own.size()));
  const uint32_t length = run_->hop()->encode(Encoding::Part, position.extent, own, bytes);
  const bool is_decoded = run_->hop()->decode(Encoding::Part, bytes.first(length), own);
  BRAID_ASSERT(is_decoded, "a hop decodes what it has encoded");
}

std::span<float> UnitRun::elements(uint8_t* bytes, const ChunkPosition& position) const {
  return {reinterpret_cast<float*>(bytes), position.extent.bytes / sizeof(float)};
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
    read_own_part(position, kept);
    encode(Phase::Direct, position);
    bytes = bytes_on_wire(Phase::Direct, position);
  }
  for (const uint32_t to : route.own_part_to)
    run_->submit(*this, Phase::Direct, encoding_of(Phase::Direct, position), position, to, bytes);
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
  run_->submit(*this, Phase::ReduceScatter, encoding_of(Phase::ReduceScatter, position), position,
               *run_->segment_route(position.segment).part_to,
               bytes_on_wire(Phase::ReduceScatter, position));
}

void UnitRun::send_sum(const ChunkPosition& position) {
  const auto& receivers = run_->segment_route(position.segment).sum_to;
  if (receivers.empty()) return;
  const uint32_t bytes = bytes_on_wire(Phase::AllGather, position);
  const Encoding encoding = encoding_of(Phase::AllGather, position);
  for (const uint32_t to : receivers)
    run_->submit(*this, Phase::AllGather, encoding, position, to, bytes);
}

// Bytes that start here are made when a flow takes them, not earlier: then they are still in the
// cache when they are sent.
std::span<const uint8_t> UnitRun::bytes_to_send(Phase phase, const ChunkPosition& position) {
  if (run_->hop() != nullptr) {
    uint32_t* length = nullptr;
    const uint8_t* const bytes = encoded(phase, position, length);
    if (*length == 0) encode(phase, position);
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

// How long the chunk is that is about to be submitted. With a Hop it is encoded now, unless it
// starts here and its length is known: then when a flow takes it.
uint32_t UnitRun::bytes_on_wire(Phase phase, const ChunkPosition& position) {
  const Hop* const hop = run_->hop();
  if (hop == nullptr) return static_cast<uint32_t>(position.extent.bytes);
  uint32_t* length = nullptr;
  encoded(phase, position, length);
  if (*length != 0) return *length;
  if (encoding_of(phase, position) == Encoding::Part && hop->has_exact_size())
    return static_cast<uint32_t>(
        hop->encoded_bytes_max(Encoding::Part, position.extent.bytes / sizeof(float)));
  encode(phase, position);
  return *length;
}

Encoding UnitRun::encoding_of(Phase phase, const ChunkPosition& position) const {
  if (run_->hop() == nullptr) return Encoding::Plain;
  const bool is_part =
      phase == Phase::Direct ||
      (phase == Phase::ReduceScatter && run_->segment_route(position.segment).parts_from.empty());
  return is_part ? Encoding::Part : Encoding::Sum;
}

// Who sends a sum, or a direct part, keeps what the others decode.
void UnitRun::encode(Phase phase, const ChunkPosition& position) {
  Hop& hop = *run_->hop();
  uint32_t* length = nullptr;
  uint8_t* const bytes = encoded(phase, position, length);
  const Encoding encoding = encoding_of(phase, position);
  const SegmentRoute& route = run_->segment_route(position.segment);
  uint8_t* plain = run_->result(position.extent);
  if (phase == Phase::Direct) {
    plain = aside(position, route.parts_from.size());
  } else if (encoding == Encoding::Part) {
    plain = run_->scratch(position.extent.bytes).data();
    read_own_part(position, plain);
  }
  const auto values = elements(plain, position);
  *length = hop.encode(encoding, position.extent, values, {bytes, encoded_stride_});
  BRAID_ASSERT(*length != 0 && *length <= encoded_stride_, "a hop encodes into its bounds");
  if (phase == Phase::ReduceScatter) return;
  const bool is_decoded = hop.decode(encoding, {bytes, *length}, values);
  BRAID_ASSERT(is_decoded, "a hop decodes what it has encoded");
}

uint8_t* UnitRun::encoded(Phase phase, const ChunkPosition& position, uint32_t*& length) {
  const uint64_t positions = uint64_t{run_->partition().segments()} * chunks_max_;
  if (encoded_ == nullptr) {
    encoded_stride_ = static_cast<uint32_t>(
        encoded_bytes_max(*run_->hop(), run_->partition().chunk_bytes_max(unit_) / sizeof(float)));
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
  if (run_->host().timeline() != nullptr) note_unit();
  run_->on_unit_finished(stream_);
}

TimelineEvent UnitRun::span_until_now(SpanKind kind, uint64_t begin_ns) const {
  const OperationKey& key = run_->key();
  TimelineEvent event;
  event.kind = kind;
  event.job_key = key.job_key;
  event.tensor = key.tensor;
  event.step = key.step;
  event.number = unit_;
  event.begin_ns = begin_ns;
  event.end_ns = SystemClock().now_ns();
  return event;
}

void UnitRun::note_unit() const {
  TimelineEvent event = span_until_now(SpanKind::Unit, begun_ns_);
  if (stream_) event.slot = static_cast<uint16_t>(std::min(*stream_, TimelineEvent::kSlotMax));
  for (uint32_t segment = 0; segment < run_->partition().segments(); ++segment)
    event.bytes += run_->partition().segment(unit_, segment).bytes;
  run_->host().timeline()->record(event);
}

void UnitRun::note_reduce(const ChunkPosition& position, uint64_t begin_ns) const {
  TimelineEvent event = span_until_now(SpanKind::Reduce, begin_ns);
  event.bytes = position.extent.bytes;
  run_->host().timeline()->record(event);
}

}  // namespace braid
