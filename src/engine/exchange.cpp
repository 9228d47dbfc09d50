// SPDX-License-Identifier: Apache-2.0
#include "engine/exchange.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "engine/operation.h"
#include "engine/partition.h"

namespace braid {
namespace {

std::vector<uint32_t> first_blocks(const Ring& ring) {
  std::vector<uint32_t> first = {0};
  for (const uint32_t ranks : ring.ranks_of_node) first.push_back(first.back() + ranks);
  return first;
}

// The ranks of all nodes, in the order of their blocks.
std::vector<uint32_t> ranks_in_ring_order(const Ring& ring) {
  std::vector<uint32_t> ranks(ring.world_size);
  for (uint32_t rank = 0; rank < ring.world_size; ++rank) ranks[ring.block_of_rank[rank]] = rank;
  return ranks;
}

// An extent that is filled by parts of a stream, which come one after the other.
class Remainder {
 public:
  // `skipped`: bytes of the parts to come that lie before it.
  Remainder(uint64_t skipped, uint64_t bytes) : skipped_(skipped), bytes_(bytes) {}

  bool is_empty() const { return bytes_ == 0; }
  // What lies in the extent of the next part, which has so many bytes.
  Extent next(uint64_t bytes) {
    const uint64_t begin = std::min(skipped_, bytes);
    const uint64_t length = std::min(bytes - begin, bytes_);
    skipped_ -= begin;
    bytes_ -= length;
    return {begin, length};
  }

 private:
  uint64_t skipped_;
  uint64_t bytes_;
};

}  // namespace

Exchange::Exchange(const Ring& ring, uint64_t element_bytes)
    : self_(ring.self),
      element_bytes_(element_bytes),
      ranks_(ranks_in_ring_order(ring)),
      first_block_(first_blocks(ring)),
      local_ranks_(ring.ranks_of_node[ring.self]),
      to_ends_(ring.world_size, 0),
      from_(ring.nodes, 0) {}

void Exchange::add(uint32_t local_rank, std::shared_ptr<const Splits> splits,
                   const uint8_t* input) {
  BRAID_ASSERT(
      splits->to.world_size() == ranks_.size() && splits->from.world_size() == ranks_.size(),
      "splits name every rank of the world");
  LocalRank& local = local_ranks_[local_rank];
  BRAID_ASSERT(local.splits == nullptr, "a rank comes once");
  local.from.reserve(nodes());
  for (uint32_t place = 0; place < nodes(); ++place) {
    uint64_t elements = 0;
    for (uint32_t block = first_block_[place]; block < first_block_[place + 1]; ++block) {
      to_ends_[block] += splits->to[ranks_[block]] * element_bytes_;
      elements += splits->from[ranks_[block]];
    }
    local.from.push_back(elements * element_bytes_);
    from_[place] += local.from.back();
  }
  local.splits = std::move(splits);
  local.input = input;
}

void Exchange::place(std::span<uint8_t* const> results) {
  BRAID_ASSERT(results.size() == local_ranks_.size(), "every local rank has a result");
  for (size_t i = 0; i < results.size(); ++i) {
    BRAID_ASSERT(local_ranks_[i].splits != nullptr, "every local rank takes part");
    local_ranks_[i].result = results[i];
  }
  std::partial_sum(to_ends_.begin(), to_ends_.end(), to_ends_.begin());
  BRAID_ASSERT(bytes_to(self_) == bytes_from(self_), "local ranks agree about what they exchange");
}

// Before the block, of the streams to all nodes one after the other.
uint64_t Exchange::bytes_before(uint32_t block) const {
  return block == 0 ? 0 : to_ends_[block - 1];
}

std::span<const uint32_t> Exchange::ranks_of(uint32_t place) const {
  return std::span(ranks_).subspan(first_block_[place],
                                   first_block_[place + 1] - first_block_[place]);
}

uint64_t Exchange::bytes_to(uint32_t place) const {
  return bytes_before(first_block_[place + 1]) - bytes_before(first_block_[place]);
}

const uint8_t* Exchange::input_of(uint32_t giver, uint32_t block) const {
  const LocalRank& local = local_ranks_[giver];
  return local.input + local.splits->to.first(ranks_[block]) * element_bytes_;
}

uint8_t* Exchange::result_of(uint32_t receiver, uint32_t block) const {
  const LocalRank& local = local_ranks_[receiver];
  return local.result + local.splits->from.first(ranks_[block]) * element_bytes_;
}

// Calls take(giver, block, part) for each part of the extent: what lies there of what this local
// rank gives to the rank of this block. Until it says false.
template <typename Take>
void Exchange::for_parts_to(uint32_t to, const Extent& extent, Take take) const {
  BRAID_ASSERT(range_fits(extent.offset, extent.bytes, bytes_to(to)),
               "an extent ends with its stream");
  const uint64_t offset = bytes_before(first_block_[to]) + extent.offset;
  auto block = static_cast<uint32_t>(std::upper_bound(to_ends_.begin(), to_ends_.end(), offset) -
                                     to_ends_.begin());
  Remainder rest(offset - bytes_before(block), extent.bytes);
  for (; !rest.is_empty(); ++block) {
    for (uint32_t giver = 0; giver < local_ranks_.size() && !rest.is_empty(); ++giver) {
      const uint64_t elements = local_ranks_[giver].splits->to[ranks_[block]];
      const Extent part = rest.next(elements * element_bytes_);
      if (part.bytes != 0 && !take(giver, block, part)) return;
    }
  }
}

const uint8_t* Exchange::find(uint32_t to, const Extent& extent) const {
  const uint8_t* found = nullptr;
  uint64_t bytes = 0;
  for_parts_to(to, extent, [&](uint32_t giver, uint32_t block, const Extent& part) {
    const uint8_t* data = input_of(giver, block) + part.offset;
    if (bytes == 0) found = data;
    const bool follows = data == found + bytes;
    bytes += part.bytes;
    if (!follows) found = nullptr;
    return follows;
  });
  return found;
}

void Exchange::read(uint32_t to, const Extent& extent, uint8_t* out) const {
  for_parts_to(to, extent, [&](uint32_t giver, uint32_t block, const Extent& part) {
    std::memcpy(out, input_of(giver, block) + part.offset, part.bytes);
    out += part.bytes;
    return true;
  });
}

// Calls take(out, bytes) for each place that a part of the extent goes to. Until it says false.
template <typename Take>
void Exchange::for_places_from(uint32_t from, const Extent& extent, Take take) const {
  BRAID_ASSERT(range_fits(extent.offset, extent.bytes, bytes_from(from)),
               "an extent ends with its stream");
  Remainder rest(extent.offset, extent.bytes);
  for (uint32_t receiver = 0; !rest.is_empty(); ++receiver) {
    const LocalRank& local = local_ranks_[receiver];
    const Extent of_receiver = rest.next(local.from[from]);
    Remainder rest_of_receiver(of_receiver.offset, of_receiver.bytes);
    for (uint32_t block = first_block_[from]; !rest_of_receiver.is_empty(); ++block) {
      const uint64_t elements = local.splits->from[ranks_[block]];
      const Extent part = rest_of_receiver.next(elements * element_bytes_);
      if (part.bytes != 0 && !take(result_of(receiver, block) + part.offset, part.bytes)) return;
    }
  }
}

void Exchange::write(uint32_t from, const Extent& extent, const uint8_t* bytes) const {
  for_places_from(from, extent, [&](uint8_t* out, uint64_t length) {
    std::memcpy(out, bytes, length);
    bytes += length;
    return true;
  });
}

uint8_t* Exchange::place_of(uint32_t from, const Extent& extent) const {
  uint8_t* found = nullptr;
  uint64_t bytes = 0;
  for_places_from(from, extent, [&](uint8_t* out, uint64_t length) {
    if (bytes == 0) found = out;
    const bool follows = out == found + bytes;
    bytes += length;
    if (!follows) found = nullptr;
    return follows;
  });
  return found;
}

void Exchange::copy_own(const Extent& extent) const {
  const uint32_t first = first_block_[self_];
  for_parts_to(self_, extent, [&](uint32_t giver, uint32_t block, const Extent& part) {
    std::memcpy(result_of(block - first, first + giver) + part.offset,
                input_of(giver, block) + part.offset, part.bytes);
    return true;
  });
}

}  // namespace braid
