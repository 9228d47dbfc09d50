// SPDX-License-Identifier: Apache-2.0
#include "collective/exchange.h"

#include <cstring>

#include "collective/operation.h"
#include "collective/partition.h"

namespace braid {
namespace {

// Where each part of `counts` elements begins when they follow one another.
std::vector<uint64_t> starts_of(const std::vector<uint64_t>& counts, uint64_t element_bytes) {
  std::vector<uint64_t> starts;
  starts.reserve(counts.size());
  uint64_t start = 0;
  for (const uint64_t count : counts) {
    starts.push_back(start);
    start += count * element_bytes;
  }
  return starts;
}

}  // namespace

std::vector<uint32_t> ranks_in_ring_order(const Ring& ring) {
  std::vector<uint32_t> ranks(ring.world_size);
  for (uint32_t rank = 0; rank < ring.world_size; ++rank) ranks[ring.block_of_rank[rank]] = rank;
  return ranks;
}

Exchange::Exchange(const Ring& ring, std::span<const LocalRank> ranks, uint64_t element_bytes)
    : self_(ring.self), to_(ring.nodes), from_(ring.nodes) {
  BRAID_ASSERT(ranks.size() == ring.ranks_of_node[ring.self], "every local rank takes part");
  std::vector<std::vector<uint64_t>> input_starts;
  std::vector<std::vector<uint64_t>> result_starts;
  for (const LocalRank& rank : ranks) {
    BRAID_ASSERT(
        rank.splits->to.size() == ring.world_size && rank.splits->from.size() == ring.world_size,
        "splits name every rank of the world");
    input_starts.push_back(starts_of(rank.splits->to, element_bytes));
    result_starts.push_back(starts_of(rank.splits->from, element_bytes));
  }
  const std::vector<uint32_t> world = ranks_in_ring_order(ring);
  auto other = world.begin();
  for (uint32_t place = 0; place < ring.nodes; ++place) {
    const auto end = other + ring.ranks_of_node[place];
    for (auto to = other; to != end; ++to) {
      for (size_t i = 0; i < ranks.size(); ++i)
        to_[place].append(ranks[i].input + input_starts[i][*to],
                          ranks[i].splits->to[*to] * element_bytes);
    }
    for (size_t i = 0; i < ranks.size(); ++i) {
      for (auto from = other; from != end; ++from)
        from_[place].append(ranks[i].result + result_starts[i][*from],
                            ranks[i].splits->from[*from] * element_bytes);
    }
    other = end;
  }
  BRAID_ASSERT(bytes_to(self_) == bytes_from(self_), "local ranks agree about what they exchange");
}

const uint8_t* Exchange::find(uint32_t to, const Extent& extent) const {
  return to_[to].find(extent.offset, extent.bytes);
}

void Exchange::read(uint32_t to, const Extent& extent, uint8_t* out) const {
  for (uint64_t done = 0; done < extent.bytes;) {
    uint64_t bytes = 0;
    const uint8_t* data = to_[to].at(extent.offset + done, extent.bytes - done, bytes);
    std::memcpy(out + done, data, bytes);
    done += bytes;
  }
}

void Exchange::write(uint32_t from, const Extent& extent, const uint8_t* bytes) const {
  for (uint64_t done = 0; done < extent.bytes;) {
    uint64_t length = 0;
    uint8_t* data = from_[from].at(extent.offset + done, extent.bytes - done, length);
    std::memcpy(data, bytes + done, length);
    done += length;
  }
}

void Exchange::copy_own(const Extent& extent) const {
  for (uint64_t done = 0; done < extent.bytes;) {
    uint64_t bytes = 0;
    const uint8_t* data = to_[self_].at(extent.offset + done, extent.bytes - done, bytes);
    write(self_, {extent.offset + done, bytes}, data);
    done += bytes;
  }
}

}  // namespace braid
