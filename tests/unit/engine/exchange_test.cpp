// SPDX-License-Identifier: Apache-2.0
#include "engine/exchange.h"

#include <string>

#include <gtest/gtest.h>

#include "engine/partition.h"
#include "engine_shapes.h"

namespace braid::test {
namespace {

// A ring of two nodes with two ranks each, whose ranks are not neighbours: 0 and 2, 1 and 3.
Ring crossed_ring(uint32_t self) {
  Ring ring;
  ring.nodes = 2;
  ring.self = self;
  ring.world_size = 4;
  ring.ranks_of_node = {2, 2};
  ring.block_of_rank = {0, 2, 1, 3};
  return ring;
}

// Rank r gives rank t the text "rt" 1 + t times, so sizes differ by receiver.
std::string gift(uint32_t from, uint32_t to) {
  std::string text;
  for (uint32_t i = 0; i <= to; ++i) text += std::to_string(from) + std::to_string(to);
  return text;
}

struct Trainer {
  explicit Trainer(uint32_t rank) {
    std::vector<uint64_t> to, from;
    for (uint32_t other = 0; other < 4; ++other) {
      input += gift(rank, other);
      to.push_back(gift(rank, other).size());
      from.push_back(gift(other, rank).size());
      wanted += gift(other, rank);
    }
    splits = std::make_shared<const Splits>(SplitCounts(to), SplitCounts(from));
    result.assign(wanted.size(), '-');
  }
  std::string input, result, wanted;
  std::shared_ptr<const Splits> splits;
};

// The exchange of the node's ranks, the last of which comes first.
Exchange exchange_of(uint32_t node, const std::vector<Trainer*>& trainers) {
  Exchange exchange(crossed_ring(node), 1);
  std::vector<uint8_t*> results;
  for (auto i = static_cast<uint32_t>(trainers.size()); i-- > 0;) {
    exchange.add(i, trainers[i]->splits,
                 reinterpret_cast<const uint8_t*>(trainers[i]->input.data()));
    results.insert(results.begin(), reinterpret_cast<uint8_t*>(trainers[i]->result.data()));
  }
  exchange.place(results);
  return exchange;
}

TEST(Exchange, streams_hold_what_each_rank_has_for_each_rank_of_the_other_node) {
  Trainer zero(0);
  Trainer two(2);
  const Exchange exchange = exchange_of(0, {&zero, &two});
  const std::string expected = gift(0, 1) + gift(2, 1) + gift(0, 3) + gift(2, 3);
  ASSERT_EQ(exchange.bytes_to(1), expected.size());
  std::string stream(expected.size(), '-');
  exchange.read(1, {0, stream.size()}, reinterpret_cast<uint8_t*>(stream.data()));
  EXPECT_EQ(stream, expected);
  std::string middle(7, '-');
  exchange.read(1, {3, 7}, reinterpret_cast<uint8_t*>(middle.data()));
  EXPECT_EQ(middle, expected.substr(3, 7));
}

TEST(Exchange, knows_the_place_of_what_goes_to_one_result_in_one_piece) {
  Trainer one(1);
  Trainer three(3);
  const Exchange exchange = exchange_of(1, {&one, &three});
  // From node 0: what ranks 0 and 2 have for rank 1, then what they have for rank 3.
  const uint64_t to_one = gift(0, 1).size();
  const uint64_t both_to_one = to_one + gift(2, 1).size();
  auto* const result = reinterpret_cast<uint8_t*>(one.result.data());
  EXPECT_EQ(exchange.place_of(0, {0, to_one}), result);
  EXPECT_EQ(exchange.place_of(0, {1, 2}), result + 1);
  EXPECT_EQ(exchange.place_of(0, {to_one, 2}), result + to_one + gift(1, 1).size());
  EXPECT_EQ(exchange.place_of(0, {0, both_to_one}), nullptr) << "rank 1's own lies between";
  EXPECT_EQ(exchange.place_of(0, {both_to_one - 1, 2}), nullptr) << "two ranks' results";
  EXPECT_EQ(exchange.place_of(0, {both_to_one, 1}),
            reinterpret_cast<uint8_t*>(three.result.data()));
}

TEST(Exchange, what_two_nodes_read_and_write_fits_together) {
  for (const uint64_t piece : {1, 3, 7, 1000}) {
    std::vector<Trainer> ranks;
    for (uint32_t rank = 0; rank < 4; ++rank) ranks.emplace_back(rank);
    const Exchange first = exchange_of(0, {&ranks[0], &ranks[2]});
    const Exchange second = exchange_of(1, {&ranks[1], &ranks[3]});
    const auto carry = [&](const Exchange& from, const Exchange& to) {
      const uint64_t bytes = from.bytes_to(to.self());
      ASSERT_EQ(bytes, to.bytes_from(from.self()));
      for (uint64_t at = 0; at < bytes; at += piece) {
        const Extent extent{at, std::min(piece, bytes - at)};
        std::vector<uint8_t> wire(extent.bytes);
        from.read(to.self(), extent, wire.data());
        to.write(from.self(), extent, wire.data());
      }
    };
    carry(first, second);
    carry(second, first);
    for (const Exchange* own : {&first, &second}) own->copy_own({0, own->bytes_to(own->self())});
    for (const Trainer& rank : ranks) EXPECT_EQ(rank.result, rank.wanted);
  }
}

TEST(Exchange, finds_what_lies_in_one_piece) {
  Trainer zero(0);
  Trainer two(2);
  const Exchange exchange = exchange_of(0, {&zero, &two});
  const auto* in_zero = reinterpret_cast<const uint8_t*>(zero.input.data());
  EXPECT_EQ(exchange.find(1, {0, gift(0, 1).size()}), in_zero + gift(0, 0).size());
  EXPECT_EQ(exchange.find(1, {1, gift(0, 1).size()}), nullptr);
}

using Ranks = std::vector<uint32_t>;

class ExchangeInWorld : public testing::TestWithParam<Ranks> {};

TEST_P(ExchangeInWorld, gives_every_rank_what_the_others_have_for_it) {
  constexpr Collective kExchanges[] = {Collective::Gather, Collective::Scatter,
                                       Collective::AllToAll};
  for (uint64_t seed = 1; seed <= worlds(18); ++seed) {
    WorldOptions options;
    options.ranks_of_node = GetParam();
    options.is_meshed = true;
    options.io_loops = 1 + static_cast<uint32_t>(seed % 2);
    options.streams = 1;
    options.hostility.submit_pulls = seed % 3 == 0;
    EngineWorld world(options, seed);
    uint32_t ranks = 0;
    for (const uint32_t count : options.ranks_of_node) ranks += count;
    uint64_t step = 0;
    for (const uint64_t count : {0, 1, 2, 65, 1000, 6001}) {
      OperationSpec spec;
      spec.collective = kExchanges[seed % 3];
      spec.dtype = step % 2 == 0 ? DataType::Float32 : DataType::Uint8;
      spec.count = count;
      spec.root_rank = static_cast<uint32_t>(step + seed) % ranks;
      spec.step = step++;
      spec.is_uneven = seed % 6 >= 3;
      world.add(spec);
    }
    ASSERT_TRUE(world.run()) << "seed " << seed;
    world.expect_all_ended();
    EXPECT_EQ(world.counters().chunks_malformed, 0U);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Rings, ExchangeInWorld,
                         testing::Values(Ranks{1}, Ranks{3}, Ranks{1, 1}, Ranks{2, 1},
                                         Ranks{1, 1, 1, 1}, Ranks{2, 2, 2, 2},
                                         Ranks{1, 3, 1, 2, 1}));

TEST(Exchange, survives_among_other_operations_and_ends_with_its_job) {
  for (uint64_t seed = 1; seed <= worlds(8); ++seed) {
    WorldOptions options;
    options.ranks_of_node = {1, 2, 1};
    options.is_meshed = true;
    EngineWorld world(options, seed);
    for (uint64_t step = 0; step < 3; ++step) {
      for (const uint64_t job : {1, 2}) {
        world.add({Collective::AllToAll, DataType::Float32, Reduction::Sum, 3000, 0, job, step});
        world.add({Collective::AllReduce, DataType::Float32, Reduction::Sum, 3000, 0, job, step});
      }
    }
    world.run_some(300 * seed);
    world.abort_job(2);
    ASSERT_TRUE(world.run());
    world.expect_all_ended();
    world.expect_no_memory_held(2);
  }
}

// Where a chunk of an exchange may come from, and what it may be.
TEST(Exchange, takes_no_chunk_that_is_for_another_place) {
  WorldOptions options;
  options.ranks_of_node = {1, 1, 1};
  options.is_meshed = true;
  EngineWorld world(options, 3);
  world.add({Collective::AllToAll, DataType::Uint8, Reduction::Sum, 100});
  const Operation operation = world.operation_of(0, 0);
  Engine& engine = world.engine(0, 0);
  engine.start(operation);
  const std::vector<uint8_t> payload(100, 7);
  const proto::ChunkHeader header = chunk_of(operation.key, proto::Phase::ReduceScatter, 0,
                                             static_cast<uint32_t>(payload.size()));
  const auto is_refused = [&](NodeId from, const proto::ChunkHeader& chunk) {
    const uint64_t before = world.counters().chunks_malformed;
    engine.on_chunk(from, chunk, std::span(payload).first(chunk.bytes));
    return world.counters().chunks_malformed == before + 1;
  };
  const auto with = [&](auto change) {
    proto::ChunkHeader changed = header;
    change(changed);
    return changed;
  };
  const NodeId one = EngineWorld::id_of(1);
  EXPECT_TRUE(is_refused(one, with([](auto& h) { h.segment = 1; })));
  EXPECT_TRUE(is_refused(one, with([](auto& h) { h.chunk = 1; })));
  EXPECT_TRUE(is_refused(one, with([](auto& h) { h.unit = 1; })));
  EXPECT_TRUE(is_refused(one, with([](auto& h) { h.bytes = 99; })));
  EXPECT_TRUE(is_refused(
      one, with([](auto& h) { h.phase = static_cast<uint8_t>(proto::Phase::AllGather); })));
  EXPECT_TRUE(is_refused(EngineWorld::id_of(0), header));
  EXPECT_TRUE(is_refused(EngineWorld::id_of(9), header));
  EXPECT_FALSE(is_refused(one, header));
  engine.abort_job(operation.key.job_key);
}

}  // namespace
}  // namespace braid::test
