// SPDX-License-Identifier: Apache-2.0
#include "engine/partition.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/fixed_owners.h"

namespace braid {
namespace {

Operation make_operation(Collective collective, DataType dtype, uint64_t count,
                         std::vector<uint32_t> ranks_of_node, uint32_t self) {
  auto ring = std::make_shared<Ring>();
  ring->nodes = static_cast<uint32_t>(ranks_of_node.size());
  ring->self = self;
  ring->world_size = std::accumulate(ranks_of_node.begin(), ranks_of_node.end(), 0U);
  ring->ranks_of_node = std::move(ranks_of_node);
  Operation operation;
  operation.collective = collective;
  operation.dtype = dtype;
  operation.count = count;
  operation.root_node = ring->nodes / 2;
  operation.ring = ring;
  return operation;
}

// Walks through all chunks and checks that they cover the result once, element by element.
void expect_exact_cover(const Operation& operation, uint64_t unit_bytes, uint32_t chunk_bytes) {
  const Partition partition(operation, unit_bytes, chunk_bytes);
  const Ring& ring = *operation.ring;
  const uint64_t total =
      result_bytes(operation.collective, operation.dtype, operation.count, ring.world_size);
  const bool has_blocks = operation.collective == Collective::AllGather ||
                          operation.collective == Collective::ReduceScatter;
  EXPECT_EQ(partition.units() == 0, total == 0);
  std::vector<uint8_t> covered(total);
  for (uint32_t unit = 0; unit < partition.units(); ++unit) {
    uint64_t in_unit = 0;
    uint32_t most = 0;
    for (uint32_t segment = 0; segment < ring.nodes; ++segment) {
      const Extent whole = partition.segment(unit, segment);
      const uint32_t chunks = partition.chunks(unit, segment);
      EXPECT_EQ(chunks == 0, whole.bytes == 0);
      most = std::max(most, chunks);
      in_unit += whole.bytes;
      uint64_t in_segment = 0;
      for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
        const Extent extent = partition.chunk(unit, segment, chunk);
        EXPECT_EQ(extent.offset, whole.offset + in_segment) << "chunks lie side by side";
        EXPECT_GT(extent.bytes, 0U);
        EXPECT_LE(extent.bytes, chunk_bytes);
        EXPECT_EQ(extent.bytes % element_bytes(operation.dtype), 0U);
        EXPECT_EQ(extent.offset % element_bytes(operation.dtype), 0U);
        EXPECT_TRUE(has_blocks || extent.offset % 64 == 0);
        ASSERT_LE(extent.offset + extent.bytes, total);
        for (uint64_t i = 0; i < extent.bytes; ++i) ++covered[extent.offset + i];
        in_segment += extent.bytes;
      }
      EXPECT_EQ(in_segment, whole.bytes);
    }
    EXPECT_EQ(partition.chunks_max(unit), most);
    EXPECT_TRUE(has_blocks || in_unit <= unit_bytes);
  }
  for (uint64_t i = 0; i < total; ++i) ASSERT_EQ(covered[i], 1) << "byte " << i;
}

TEST(Partition, covers_every_byte_exactly_once) {
  const std::vector<std::vector<uint32_t>> rings = {{1},       {3},          {1, 1},
                                                    {2, 1, 3}, {1, 1, 1, 1}, {4, 1, 1, 2, 1}};
  for (const auto collective : {Collective::AllReduce, Collective::Broadcast, Collective::AllGather,
                                Collective::ReduceScatter}) {
    for (const auto& ranks : rings) {
      for (const uint64_t count : {0, 1, 2, 3, 5, 15, 16, 17, 63, 64, 65, 1000, 5003}) {
        for (const DataType dtype :
             {DataType::Uint8, DataType::BFloat16, DataType::Float32, DataType::Int64}) {
          SCOPED_TRACE(fmt::format("{} {} × {} on {} nodes", to_string(collective), count,
                                   to_string(dtype), ranks.size()));
          const Operation operation = make_operation(collective, dtype, count, ranks, 0);
          expect_exact_cover(operation, 64, 64);
          expect_exact_cover(operation, 1000, 130);
          expect_exact_cover(operation, 8 << 20, 128 << 10);
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TEST(Partition, splits_a_middling_segment_into_several_chunks) {
  // On four nodes: several flows carry chunks, and hops overlap, but messages stay few.
  const std::vector<std::pair<uint64_t, uint32_t>> chunks_of_mebibyte_quarters = {
      {1, 2}, {2, 4}, {4, 4}, {6, 6}, {8, 8}, {16, 8}, {32, 16}};
  for (const auto& [quarters, chunks] : chunks_of_mebibyte_quarters) {
    const Partition partition(
        make_operation(Collective::AllReduce, DataType::Float32, quarters << 16, {1, 1, 1, 1}, 0),
        8 << 20, 128 << 10);
    EXPECT_EQ(partition.chunks(0, 0), chunks) << quarters;
  }
}

TEST(Partition, holds_sizes_that_no_machine_has) {
  const uint64_t count = uint64_t{1} << 50;
  const Partition partition(
      make_operation(Collective::AllReduce, DataType::Float32, count, {1, 1, 1}, 0), 64, 64);
  const Extent last = partition.segment(partition.units() - 1, 2);
  EXPECT_LE(last.offset + last.bytes, count * 4);
  const Extent first = partition.segment(partition.units() - 1, 0);
  EXPECT_GT(first.bytes, 0U);
}

// --- fixed owners ---

// An all-reduce of some tensors, in this order, of a set whose tensors have these elements.
Operation make_fixed(DataType dtype, uint32_t nodes, uint64_t stripe_elements,
                     const std::vector<uint64_t>& set, const std::vector<size_t>& tensors) {
  auto owners = std::make_shared<FixedOwners>();
  owners->stripe_elements = stripe_elements;
  uint64_t count = 0;
  for (const size_t tensor : tensors) {
    owners->append(std::accumulate(set.begin(), set.begin() + static_cast<ptrdiff_t>(tensor), 0ULL),
                   set[tensor]);
    count += set[tensor];
  }
  Operation operation = make_operation(Collective::AllReduce, dtype, count,
                                       std::vector<uint32_t>(nodes, 1), nodes - 1);
  operation.fixed_owners = owners;
  return operation;
}

// Each element of the set that the operation holds: with which segment its chunk comes, SIZE_MAX:
// with none yet.
void note_owners(const Operation& operation, uint64_t unit_bytes, uint32_t chunk_bytes,
                 std::vector<size_t>& owners) {
  const uint64_t element = element_bytes(operation.dtype);
  const Partition partition(operation, unit_bytes, chunk_bytes);
  for (uint32_t unit = 0; unit < partition.units(); ++unit) {
    EXPECT_GT(partition.chunks_max(unit), 0U) << "no unit is empty";
    for (uint32_t segment = 0; segment < partition.segments(); ++segment) {
      const uint32_t chunks = partition.chunks(unit, segment);
      EXPECT_EQ(chunks == 0, partition.segment(unit, segment).bytes == 0);
      for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
        const Extent extent = partition.chunk(unit, segment, chunk);
        EXPECT_LE(extent.bytes, chunk_bytes);
        ASSERT_TRUE(extent.offset % element == 0 && extent.bytes % element == 0) << "is divided";
        ASSERT_LE(extent.offset + extent.bytes, operation.count * element);
        for (uint64_t i = 0; i < extent.bytes / element; ++i) {
          const uint64_t in_set = operation.fixed_owners->in_set(extent.offset / element) + i;
          ASSERT_EQ(in_set, operation.fixed_owners->in_set(extent.offset / element + i))
              << "a chunk's elements follow one another in the set";
          ASSERT_EQ(owners.at(in_set), SIZE_MAX) << "element " << in_set << " comes twice";
          owners[in_set] = segment;
        }
      }
    }
  }
}

TEST(PartitionOfFixedOwners, changes_no_owner_with_settings_or_plan) {
  const std::vector<uint64_t> set = {1, 37, 0, 250, 3, 1000, 64, 7, 513};
  const uint64_t elements = std::accumulate(set.begin(), set.end(), 0ULL);
  std::mt19937_64 random(5);
  for (const uint32_t nodes : {1U, 2U, 3U, 5U}) {
    for (const uint64_t stripe_elements : {1U, 5U, 16U, 100U, 5000U}) {
      for (int plan = 0; plan < 12; ++plan) {
        const DataType dtype = std::array{DataType::Uint8, DataType::BFloat16, DataType::Float32,
                                          DataType::Int64}[random() % 4];
        const uint64_t unit_bytes = std::array{64, 1000, 8 << 20}[random() % 3];
        const uint32_t chunk_bytes = std::array{64, 130, 128 << 10}[random() % 3];
        SCOPED_TRACE(fmt::format("{} nodes, stripes of {} × {}, units of {}, chunks of {}", nodes,
                                 stripe_elements, to_string(dtype), unit_bytes, chunk_bytes));
        std::vector<size_t> order(set.size());
        std::iota(order.begin(), order.end(), 0);
        if (plan % 2 == 1) std::shuffle(order.begin(), order.end(), random);
        std::vector<size_t> owners(elements, SIZE_MAX);
        for (size_t begin = 0; begin < order.size();) {
          const size_t end =
              plan == 0 ? order.size() : begin + 1 + random() % (order.size() - begin);
          note_owners(make_fixed(dtype, nodes, stripe_elements, set,
                                 {order.begin() + static_cast<ptrdiff_t>(begin),
                                  order.begin() + static_cast<ptrdiff_t>(end)}),
                      unit_bytes, chunk_bytes, owners);
          begin = end;
        }
        for (uint64_t i = 0; i < elements; ++i)
          ASSERT_EQ(owners[i], i / stripe_elements % nodes) << "element " << i;
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

// Elements 25 to 72 of a set, stripes of 10 among three nodes.
TEST(PartitionOfFixedOwners, may_hold_parts_of_the_first_and_last_stripes) {
  const Partition partition(make_fixed(DataType::Float32, 3, 10, {25, 48}, {1}), 64, 64);
  ASSERT_EQ(partition.units(), 3U);
  const std::vector<Extent> right = {{0, 0},    {0, 0},    {0, 20},   {20, 40}, {60, 40},
                                     {100, 40}, {140, 40}, {180, 12}, {192, 0}};
  for (uint32_t i = 0; i < 9; ++i)
    EXPECT_EQ(partition.segment(i / 3, i % 3), right[i]) << "unit " << i / 3 << ", node " << i % 3;
}

TEST(PartitionOfFixedOwners, cuts_tensors_as_one_where_they_are_neighbours_in_the_set) {
  const std::vector<uint64_t> set = {8, 8, 8, 8};
  EXPECT_EQ(Partition(make_fixed(DataType::Int64, 2, 16, set, {0, 1, 2, 3}), 64, 64).units(), 1U);
  const Partition apart(make_fixed(DataType::Int64, 2, 16, set, {1, 0, 3, 2}), 64, 64);
  ASSERT_EQ(apart.units(), 4U);
  EXPECT_EQ(apart.segment(0, 0), (Extent{0, 64}));
  EXPECT_EQ(apart.segment(1, 0), (Extent{64, 64}));
  EXPECT_EQ(apart.segment(2, 1), (Extent{128, 64}));
  EXPECT_EQ(apart.segment(3, 1), (Extent{192, 64}));
}

TEST(PartitionOfFixedOwners, of_nothing_has_no_units) {
  EXPECT_EQ(Partition(make_fixed(DataType::Float32, 3, 10, {5, 0}, {1}), 64, 64).units(), 0U);
}

TEST(PartitionOfFixedOwners, holds_sizes_that_no_machine_has) {
  const uint64_t count = uint64_t{1} << 53;
  const uint64_t stripe = uint64_t{1} << 31;
  const Partition partition(make_fixed(DataType::Float64, 3, stripe, {count, count}, {1}), 64, 64);
  EXPECT_EQ(partition.units(), (count + count % (3 * stripe) - 1) / (3 * stripe) + 1);
  const uint32_t last = partition.units() - 1;
  const uint32_t owner = static_cast<uint32_t>((2 * count - 1) / stripe % 3);
  const Extent extent = partition.segment(last, owner);
  EXPECT_EQ(extent.offset + extent.bytes, count * 8);
  EXPECT_EQ(partition.chunks(last, owner), stripe * 8 / 64);
}

TEST(PartitionOfFixedOwnersDeathTest, needs_stripes_and_all_elements) {
  EXPECT_DEATH(Partition(make_fixed(DataType::Float32, 3, 0, {5}, {0}), 64, 64), "a stripe has");
  EXPECT_DEATH(Partition(make_fixed(DataType::Uint8, 2, UINT64_MAX, {5}, {0}), 64, 64),
               "a stripe has");
  EXPECT_DEATH(Partition(make_fixed(DataType::Uint8, 1, 1, {uint64_t{1} << 40}, {0}), 64, 64),
               "stripes are large enough");
  Operation operation = make_fixed(DataType::Float32, 3, 2, {5}, {0});
  operation.count = 4;
  EXPECT_DEATH(Partition(operation, 64, 64), "the operation's elements");
  operation.count = 6;
  EXPECT_DEATH(Partition(operation, 64, 64), "the operation's elements");
}

TEST(LoopOfUnit, deals_neighbouring_units_to_different_loops) {
  const OperationKey key{1, 77, 5};
  for (uint32_t unit = 0; unit < 10; ++unit) {
    EXPECT_LT(loop_of_unit(key, unit, 3), 3U);
    EXPECT_EQ(loop_of_unit(key, unit + 1, 3), (loop_of_unit(key, unit, 3) + 1) % 3);
    EXPECT_EQ(loop_of_unit(key, unit, 1), 0U);
  }
}

}  // namespace
}  // namespace braid
