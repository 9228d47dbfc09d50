// SPDX-License-Identifier: Apache-2.0
#include "engine/unit_sums.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "engine/operation_run.h"

namespace braid {
namespace {

// Shorter passes are not noted: two looks at the clock are 1 % of what these take.
constexpr uint64_t kNotedReduceBytes = 64 << 10;

}  // namespace

UnitSums::UnitSums(OperationRun& run, uint32_t unit)
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

uint64_t UnitSums::part_bit(const ChunkPosition& position, size_t part) const {
  return (run_->segment_route(position.segment).parts_before + part) * chunks_max_ + position.chunk;
}

uint64_t UnitSums::sum_bit(const ChunkPosition& position) const {
  return (uint64_t{run_->route().parts} + position.segment) * chunks_max_ + position.chunk;
}

// Parts that have come without a gap, so they are in the result.
size_t UnitSums::parts_in_turn(const ChunkPosition& position) const {
  const size_t parts = run_->segment_route(position.segment).parts_from.size();
  size_t turn = 0;
  while (turn < parts && has_part(position, turn)) ++turn;
  return turn;
}

bool UnitSums::is_summed(const ChunkPosition& position) const {
  return parts_in_turn(position) == run_->segment_route(position.segment).parts_from.size();
}

// What comes before its turn is put aside decoded: by then it is known to be a part.
bool UnitSums::accept(const ChunkPosition& position, size_t part, Encoding encoding,
                      std::span<const uint8_t> payload) {
  const Hop* const hop = run_->hop();
  if (hop == nullptr) return payload.size() == position.extent.bytes;
  if (run_->segment_route(position.segment).is_direct() || part != parts_in_turn(position))
    return hop->decode(encoding, payload, elements(aside(position, part), position));
  if (part == 0) make_own(position);
  uint8_t* const result = run_->result(position.extent);
  if (!hop->decode_and_add(encoding, payload, elements(result, position))) return false;
  run_->host().on_bytes_reduced(position.extent.bytes);
  return true;
}

void UnitSums::add(const ChunkPosition& position, size_t part, const uint8_t* bytes) {
  const bool is_direct = run_->segment_route(position.segment).is_direct();
  const bool is_in_turn = !is_direct && part == parts_in_turn(position);
  bits_.set(part_bit(position, part));
  --parts_left_;
  run_->count_carried(position.extent.bytes);
  if (is_in_turn) {
    add_in_turn(position, bytes == nullptr ? part + 1 : part, bytes);
  } else if (is_direct && is_summed(position)) {
    add_all(position, part, bytes == nullptr ? aside(position, part) : bytes);
  } else if (bytes != nullptr) {
    std::memcpy(aside(position, part), bytes, position.extent.bytes);
    run_->host().on_bytes_copied(position.extent.bytes);
  }
}

bool UnitSums::may_fold(const ChunkPosition& position, size_t part) const {
  return part == 0 && !run_->segment_route(position.segment).is_direct();
}

void UnitSums::fold(const ChunkPosition& position, uint32_t offset,
                    std::span<const uint8_t> piece) {
  BRAID_ASSERT(range_fits(offset, piece.size(), position.extent.bytes),
               "a chunk's pieces end with it");
  const Extent extent{position.extent.offset + offset, piece.size()};
  run_->contribution().reduce(extent, piece.data(), run_->result(extent), Store::Cached);
}

// The parts that have come, from `turn` on. `bytes` are those of the first one, unless nullptr: all
// of them lie aside.
void UnitSums::add_in_turn(const ChunkPosition& position, size_t turn, const uint8_t* bytes) {
  const Operation& operation = run_->operation();
  uint8_t* const result = run_->result(position.extent);
  const size_t parts = run_->segment_route(position.segment).parts_from.size();
  for (; turn < parts && has_part(position, turn); ++turn, bytes = nullptr) {
    if (bytes == nullptr) bytes = aside(position, turn);
    if (turn == 0) {
      run_->contribution().reduce(position.extent, bytes, result, Store::Cached);
    } else {
      const std::array<const uint8_t*, 2> operands{result, bytes};
      reduce_all(operation.dtype, operation.reduction, operands,
                 position.extent.bytes / element_bytes(operation.dtype), result);
    }
    run_->host().on_bytes_reduced(position.extent.bytes);
  }
}

// All parts in the order of the places; of the last that came `bytes` are not put aside.
void UnitSums::add_all(const ChunkPosition& position, size_t last, const uint8_t* bytes) {
  const Operation& operation = run_->operation();
  const auto& others = run_->segment_route(position.segment).parts_from;
  std::vector<const uint8_t*>& operands = run_->operands();
  operands.clear();
  for (size_t part = 0; part <= others.size(); ++part) {
    if (operands.size() == run_->route().place) operands.push_back(own_part(position));
    if (part < others.size()) operands.push_back(part == last ? bytes : aside(position, part));
  }
  reduce_all(operation.dtype, operation.reduction, operands,
             position.extent.bytes / element_bytes(operation.dtype), run_->result(position.extent));
  run_->host().on_bytes_reduced(position.extent.bytes);
}

void UnitSums::end_step(const ChunkPosition& position) {
  BRAID_ASSERT(steps_left_ != 0 && !is_final(position), "an owner's step ends once");
  bits_.set(sum_bit(position));
  --steps_left_;
}

void UnitSums::end_sum(const ChunkPosition& position) {
  bits_.set(sum_bit(position));
  --sums_left_;
  run_->count_carried(position.extent.bytes);
}

bool UnitSums::make_own(const ChunkPosition& position) {
  const uint64_t bit = sum_bit(position) + uint64_t{run_->partition().segments()} * chunks_max_;
  if (bits_.test(bit)) return false;
  bits_.set(bit);
  if (!run_->is_reduced()) {
    run_->copy_own(position);
    run_->host().on_bytes_copied(position.extent.bytes);
  } else if (run_->hop() != nullptr) {
    read_own(position, run_->result(position.extent));
  } else {
    reduce_own(position);
  }
  return true;
}

void UnitSums::reduce_own(const ChunkPosition& position) {
  LoopTimeline* const timeline =
      position.extent.bytes >= kNotedReduceBytes ? run_->host().timeline() : nullptr;
  const uint64_t begin_ns = timeline != nullptr ? SystemClock().now_ns() : 0;
  run_->contribution().reduce(position.extent, nullptr, run_->result(position.extent),
                              run_->store());
  run_->host().on_bytes_reduced(position.extent.bytes);
  if (timeline == nullptr) return;
  TimelineEvent event = span_until_now(*run_, unit_, SpanKind::Reduce, begin_ns);
  event.bytes = position.extent.bytes;
  timeline->record(event);
}

void UnitSums::read_own(const ChunkPosition& position, uint8_t* out) {
  run_->contribution().reduce(position.extent, nullptr, out, Store::Cached);
  run_->host().on_bytes_reduced(position.extent.bytes);
  const Hop* const hop = run_->hop();
  if (hop == nullptr) return;
  const auto own = elements(out, position);
  if (run_->operation().reduction == Reduction::Average)
    divide_all(DataType::Float32, out, own.size(), run_->operation().ring->world_size);
  const SegmentRoute& route = run_->segment_route(position.segment);
  if (route.parts_from.empty() || route.is_direct() || !hop->encodes_own_part()) return;
  // Nobody gets these bytes.
  const auto bytes = run_->scratch(hop->encoded_bytes_max(Encoding::Part, own.size()));
  const uint32_t length = run_->hop()->encode(Encoding::Part, position.extent, own, bytes);
  const bool is_decoded = hop->decode(Encoding::Part, bytes.first(length), own);
  BRAID_ASSERT(is_decoded, "a hop decodes what it has encoded");
}

uint8_t* UnitSums::own_part(const ChunkPosition& position) {
  return aside(position, run_->segment_route(position.segment).parts_from.size());
}

uint8_t* UnitSums::aside(const ChunkPosition& position, size_t row) {
  const SegmentRoute& route = run_->segment_route(position.segment);
  if (aside_ == nullptr) {
    const uint64_t rows = uint64_t{run_->route().parts} + (route.is_direct() ? 1 : 0);
    aside_ = std::make_unique_for_overwrite<uint8_t[]>(rows * aside_stride_);
  }
  const uint64_t within =
      position.extent.offset - run_->partition().segment(unit_, position.segment).offset;
  return aside_.get() + (route.parts_before + row) * aside_stride_ + within;
}

TimelineEvent span_until_now(const OperationRun& run, uint32_t unit, SpanKind kind,
                             uint64_t begin_ns) {
  const OperationKey& key = run.key();
  TimelineEvent event;
  event.kind = kind;
  event.job_key = key.job_key;
  event.tensor = key.tensor;
  event.step = key.step;
  event.number = unit;
  event.begin_ns = begin_ns;
  event.end_ns = SystemClock().now_ns();
  return event;
}

}  // namespace braid
