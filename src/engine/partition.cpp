// SPDX-License-Identifier: Apache-2.0
#include "engine/partition.h"

#include <algorithm>
#include <iterator>

#include "base/assert.h"
#include "base/checked.h"
#include "base/hash.h"
#include "engine/exchange.h"
#include "engine/fixed_owners.h"
#include "engine/hop.h"

namespace braid {
namespace {

constexpr uint64_t kAlignment = 64;  // a cache line, and a multiple of every element's size
// Far more than can be mapped: sums below cannot overflow.
constexpr uint64_t kTotalBytesMax = uint64_t{1} << 56;
constexpr uint64_t kStripeBytesMax = uint64_t{16} << 30;  // keeps chunk numbers within 32 bits

// A hop passes a chunk on as soon as it has it, so a segment of few chunks leaves flows and hops
// idle; and each chunk costs both nodes a message and its acknowledgement, as much as some 30 KiB
// of bytes cost. So a segment has 4 chunks, which fill a network card that carries as much as four
// flows, and up to 8 where these are of 64 KiB or more. Measured in docs/benchmarks.md.
constexpr uint64_t kChunksMin = 4;
constexpr uint64_t kChunksMax = 8;
constexpr uint64_t kSmallChunkBytes = 32 << 10;
constexpr uint64_t kUsualChunkBytes = 64 << 10;

// Length of each of `parts` parts (the last ones may be shorter or empty) of `bytes`.
uint64_t part_length(uint64_t bytes, uint64_t parts) {
  return round_up(divide_up(bytes, parts), kAlignment);
}

// The part number `index` of `bytes` that were cut into pieces of `length`.
Extent part(uint64_t bytes, uint64_t length, uint64_t index) {
  const uint64_t start = std::min(bytes, index * length);
  return {start, std::min(bytes - start, length)};
}

// What is encoded at once stays in a core's cache.
constexpr uint64_t kEncodedChunkBytesMax = 1 << 20;

// The most bytes of elements, a multiple of 64, that go into a chunk of so many.
uint64_t decoded_bytes_max(const Hop* hop, uint32_t chunk_bytes) {
  if (hop == nullptr) return chunk_bytes;
  uint64_t least = 1;
  uint64_t most = kEncodedChunkBytesMax / kAlignment;
  while (least < most) {
    const uint64_t middle = (least + most + 1) / 2;
    const bool fits = encoded_bytes_max(*hop, middle * kAlignment / sizeof(float)) <= chunk_bytes;
    (fits ? least : most) = fits ? middle : middle - 1;
  }
  BRAID_ASSERT(encoded_bytes_max(*hop, least * kAlignment / sizeof(float)) <= chunk_bytes,
               "a chunk has room for the elements of a cache line");
  return least * kAlignment;
}

uint32_t segments_of(const Operation& operation) {
  if (operation.is_direct) return 1;
  if (operation.exchange != nullptr) return 2 * operation.ring->nodes;
  return operation.route == nullptr ? operation.ring->nodes
                                    : static_cast<uint32_t>(operation.route->segments.size());
}

}  // namespace

Partition::Partition(const Operation& operation, uint64_t unit_bytes, uint32_t chunk_bytes)
    : collective_(operation.collective),
      is_direct_(operation.is_direct),
      segments_(segments_of(operation)),
      root_(operation.root_node),
      wire_chunk_bytes_(static_cast<uint32_t>(chunk_bytes / kAlignment * kAlignment)),
      chunk_bytes_(decoded_bytes_max(operation.hop.get(), wire_chunk_bytes_)) {
  BRAID_ASSERT(collective_ != Collective::Barrier, "a barrier is run as an all-reduce of one byte");
  BRAID_ASSERT(wire_chunk_bytes_ >= kAlignment && unit_bytes >= kAlignment,
               "units and chunks have at least 64 bytes");
  const Ring& ring = *operation.ring;
  BRAID_ASSERT(ring.self < ring.nodes && ring.ranks_of_node.size() == ring.nodes,
               "the ring is incomplete");
  BRAID_ASSERT(root_ < ring.nodes, "the root's node is in the ring");
  if (operation.exchange != nullptr) {
    cut_streams(*operation.exchange, unit_bytes);
    return;
  }
  total_bytes_ = result_bytes(collective_, operation.dtype, operation.count, ring.world_size);
  BRAID_ASSERT(total_bytes_ <= kTotalBytesMax, "the operation cannot be mapped");
  if (operation.fixed_owners != nullptr) {
    cut_at_stripes(*operation.fixed_owners, element_bytes(operation.dtype));
    return;
  }
  const uint64_t whole_lines =
      std::max(before_the_wire(unit_bytes) / kAlignment, uint64_t{1}) * kAlignment;
  const uint64_t units_wanted =
      divide_up(total_bytes_, std::max(whole_lines, divide_up(total_bytes_, UINT32_MAX)));
  if (total_bytes_ == 0) return;
  units_ = is_direct_ ? 1 : static_cast<uint32_t>(units_wanted);
  if (collective_ == Collective::AllReduce || collective_ == Collective::Broadcast) {
    unit_bytes_ = part_length(total_bytes_, units_);
    units_ = static_cast<uint32_t>(divide_up(total_bytes_, unit_bytes_));
    return;
  }
  const uint64_t block_bytes = operation.count * element_bytes(operation.dtype);
  node_offsets_.reserve(ring.nodes + 1);
  node_offsets_.push_back(0);
  for (const uint32_t ranks : ring.ranks_of_node)
    node_offsets_.push_back(node_offsets_.back() + ranks * block_bytes);
  BRAID_ASSERT(node_offsets_.back() == total_bytes_,
               "the ring's nodes have as many ranks as the world");
}

void Partition::cut_at_stripes(const FixedOwners& owners, uint64_t element_bytes) {
  BRAID_ASSERT(
      owners.stripe_elements != 0 && owners.stripe_elements <= kStripeBytesMax / element_bytes,
      "a stripe has one element to 16 GiB");
  const uint64_t unit_elements = owners.stripe_elements * segments_;
  unit_bytes_ = unit_elements * element_bytes;
  uint64_t units = 0;
  uint64_t offset = 0;
  for (const FixedOwners::Range& range : owners.ranges) {
    BRAID_ASSERT(range.elements != 0 && range.elements <= (total_bytes_ - offset) / element_bytes,
                 "the ranges are not empty and have the operation's elements");
    const uint64_t bytes = range.elements * element_bytes;
    const uint64_t before = range.first % unit_elements * element_bytes;
    ranges_.push_back({static_cast<uint32_t>(units), offset, bytes, before});
    units += divide_up(before + bytes, unit_bytes_);
    BRAID_ASSERT(units <= UINT32_MAX, "the stripes are large enough for the operation");
    offset += bytes;
  }
  BRAID_ASSERT(offset == total_bytes_, "the ranges have the operation's elements");
  units_ = static_cast<uint32_t>(units);
}

// What the operation holds of one node's stripe.
Extent Partition::part_of_stripe(uint32_t unit, uint32_t segment) const {
  const auto next = std::upper_bound(
      ranges_.begin(), ranges_.end(), unit,
      [](uint32_t wanted, const Range& range) { return wanted < range.first_unit; });
  const Range& range = *std::prev(next);
  // Counted from the first stripe of the range's first unit.
  const uint64_t stripe_bytes = unit_bytes_ / segments_;
  const uint64_t stripe = (unit - range.first_unit) * unit_bytes_ + segment * stripe_bytes;
  const uint64_t begin = std::clamp(stripe, range.before, range.before + range.bytes);
  const uint64_t end = std::clamp(stripe + stripe_bytes, range.before, range.before + range.bytes);
  return {range.offset + begin - range.before, end - begin};
}

void Partition::cut_streams(const Exchange& exchange, uint64_t unit_bytes) {
  const uint32_t nodes = exchange.nodes();
  for (uint32_t place = 0; place < nodes; ++place)
    stream_bytes_.push_back(exchange.bytes_from(place));
  for (uint32_t place = 0; place < nodes; ++place)
    stream_bytes_.push_back(exchange.bytes_to(place));
  stream_bytes_[nodes + exchange.self()] = 0;  // stays here
  unit_bytes_ = std::max(unit_bytes / nodes / kAlignment, uint64_t{1}) * kAlignment;
  for (const uint64_t bytes : stream_bytes_) {
    BRAID_ASSERT(bytes <= kTotalBytesMax, "the operation cannot be mapped");
    units_ = std::max(units_, static_cast<uint32_t>(divide_up(bytes, stream_unit_bytes(bytes))));
  }
}

// How much of a stream of so many bytes is in one unit.
uint64_t Partition::stream_unit_bytes(uint64_t bytes) const {
  return std::max(unit_bytes_, part_length(bytes, UINT32_MAX));
}

Extent Partition::segment(uint32_t unit, uint32_t segment) const {
  BRAID_ASSERT(unit < units_ && segment < segments_, "no such segment");
  if (!stream_bytes_.empty()) {
    const uint64_t bytes = stream_bytes_[segment];
    return part(bytes, stream_unit_bytes(bytes), unit);
  }
  if (!ranges_.empty()) return part_of_stripe(unit, segment);
  if (!node_offsets_.empty()) {
    const uint64_t start = node_offsets_[segment];
    const uint64_t bytes = node_offsets_[segment + 1] - start;
    const Extent share = part(bytes, part_length(bytes, units_), unit);
    return {start + share.offset, share.bytes};
  }
  const Extent whole = part(total_bytes_, unit_bytes_, unit);
  if (collective_ == Collective::Broadcast) {
    return segment == root_ ? whole : Extent{whole.offset, 0};
  }
  const Extent share = part(whole.bytes, part_length(whole.bytes, segments_), segment);
  return {whole.offset + share.offset, share.bytes};
}

uint64_t Partition::before_the_wire(uint64_t bytes) const {
  if (chunk_bytes_ == wire_chunk_bytes_) return bytes;
  return bytes / wire_chunk_bytes_ * chunk_bytes_ +
         bytes % wire_chunk_bytes_ * chunk_bytes_ / wire_chunk_bytes_;
}

uint64_t Partition::chunk_length(uint64_t segment_bytes) const {
  const uint64_t small =
      std::max(std::min(before_the_wire(kSmallChunkBytes), chunk_bytes_) / kAlignment,
               uint64_t{1}) *
      kAlignment;
  const uint64_t natural =
      std::max(part_length(segment_bytes, kChunksMax),
               std::min(part_length(segment_bytes, kChunksMin), before_the_wire(kUsualChunkBytes)));
  const uint64_t wanted = std::clamp<uint64_t>(natural, small, chunk_bytes_);
  return part_length(segment_bytes,
                     divide_up(segment_bytes, wanted));  // as many, but of equal size
}

uint32_t Partition::chunks(uint32_t unit, uint32_t segment) const {
  const uint64_t bytes = this->segment(unit, segment).bytes;
  return bytes == 0 ? 0 : static_cast<uint32_t>(divide_up(bytes, chunk_length(bytes)));
}

uint32_t Partition::chunks_max(uint32_t unit) const {
  uint32_t most = 0;
  for (uint32_t s = 0; s < segments_; ++s) most = std::max(most, chunks(unit, s));
  return most;
}

uint64_t Partition::chunk_bytes_max(uint32_t unit) const {
  uint64_t most = 0;
  for (uint32_t s = 0; s < segments_; ++s) {
    const uint64_t bytes = segment(unit, s).bytes;
    if (bytes != 0) most = std::max(most, chunk_length(bytes));
  }
  return most;
}

Extent Partition::chunk(uint32_t unit, uint32_t segment, uint32_t chunk) const {
  const Extent whole = this->segment(unit, segment);
  BRAID_ASSERT(whole.bytes != 0, "an empty segment has no chunks");
  const Extent share = part(whole.bytes, chunk_length(whole.bytes), chunk);
  BRAID_ASSERT(share.bytes != 0, "no such chunk");
  return {whole.offset + share.offset, share.bytes};
}

uint32_t loop_of_unit(const OperationKey& key, uint32_t unit, uint32_t io_loops) {
  const uint64_t first = (mix64(key.tensor) + key.step) % io_loops;
  return static_cast<uint32_t>((first + unit) % io_loops);
}

}  // namespace braid
