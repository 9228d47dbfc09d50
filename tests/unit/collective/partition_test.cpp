// SPDX-License-Identifier: Apache-2.0
#include "collective/partition.h"

#include <numeric>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

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

TEST(Partition, is_the_same_on_all_nodes) {
  for (const auto collective : {Collective::AllReduce, Collective::Broadcast, Collective::AllGather,
                                Collective::ReduceScatter}) {
    const std::vector<uint32_t> ranks = {2, 1, 3};
    const Partition first(make_operation(collective, DataType::Float32, 3001, ranks, 0), 4096, 512);
    for (uint32_t self = 1; self < 3; ++self) {
      const Partition other(make_operation(collective, DataType::Float32, 3001, ranks, self), 4096,
                            512);
      ASSERT_EQ(other.units(), first.units());
      for (uint32_t unit = 0; unit < first.units(); ++unit) {
        for (uint32_t segment = 0; segment < 3; ++segment) {
          EXPECT_EQ(other.segment(unit, segment), first.segment(unit, segment));
          EXPECT_EQ(other.chunks(unit, segment), first.chunks(unit, segment));
        }
      }
    }
  }
}

TEST(Partition, of_nothing_has_no_units) {
  for (const auto collective : {Collective::AllReduce, Collective::Broadcast, Collective::AllGather,
                                Collective::ReduceScatter}) {
    EXPECT_EQ(
        Partition(make_operation(collective, DataType::Float32, 0, {1, 2}, 0), 4096, 512).units(),
        0U);
  }
}

TEST(Partition, segments_of_an_all_gather_are_the_blocks_of_the_nodes) {
  const Partition partition(
      make_operation(Collective::AllGather, DataType::Float32, 100, {2, 1, 3}, 0), 1 << 20, 4096);
  ASSERT_EQ(partition.units(), 1U);
  EXPECT_EQ(partition.segment(0, 0), (Extent{0, 800}));
  EXPECT_EQ(partition.segment(0, 1), (Extent{800, 400}));
  EXPECT_EQ(partition.segment(0, 2), (Extent{1200, 1200}));
}

TEST(Partition, of_a_broadcast_gives_all_to_the_root) {
  const Partition partition(
      make_operation(Collective::Broadcast, DataType::Float32, 100, {1, 1, 1, 1}, 0), 1 << 20,
      4096);
  ASSERT_EQ(partition.units(), 1U);
  EXPECT_EQ(partition.segment(0, 2), (Extent{0, 400}));
  for (const uint32_t other : {0U, 1U, 3U}) EXPECT_EQ(partition.chunks(0, other), 0U);
}

TEST(Partition, splits_a_middling_segment_into_several_chunks) {
  // 1 MiB on four nodes: a flow for each chunk, and hops that overlap.
  const Partition partition(
      make_operation(Collective::AllReduce, DataType::Float32, 1 << 18, {1, 1, 1, 1}, 0), 8 << 20,
      128 << 10);
  EXPECT_EQ(partition.chunks(0, 0), 8U);
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
