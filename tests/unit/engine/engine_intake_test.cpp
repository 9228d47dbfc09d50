// SPDX-License-Identifier: Apache-2.0
// Chunks whose bytes are taken in while they come: what may be, what may not, and what may change
// between two pieces.
#include <cstring>

#include <gtest/gtest.h>

#include "engine_chunks.h"
#include "engine_shapes.h"

namespace braid::test {
namespace {

using proto::Phase;
using How = ChunkIntake::How;

struct NoHop final : Hop {
  uint64_t encoded_bytes_max(Encoding, uint64_t elements) const override { return elements * 4; }
  bool has_exact_size() const override { return true; }
  bool encodes_own_part() const override { return false; }
  uint32_t encode(Encoding, const Extent&, std::span<const float> values,
                  std::span<uint8_t>) override {
    return static_cast<uint32_t>(values.size_bytes());
  }
  bool decode(Encoding, std::span<const uint8_t>, std::span<float>) const override { return true; }
  bool decode_and_add(Encoding, std::span<const uint8_t>, std::span<float>) const override {
    return true;
  }
};

// As in EngineChunks, but a segment is one chunk: of segment 1, which this node owns, and of
// segment 2 others' parts come from the predecessor; of segments 0 and 2 the sums.
class EngineIntake : public EngineChunks {
 protected:
  void start(Operation operation) {
    operation.chunk_bytes = 192;
    const OperationKey key = operation.key;
    engine_->start(std::move(operation));
    engine_->go(key);
  }
  static proto::ChunkHeader chunk(Phase phase, uint32_t segment) {
    proto::ChunkHeader header = EngineChunks::header(phase, segment, 0);
    header.bytes = segment == 2 ? 16 : 192;
    return header;
  }
  How how(const proto::ChunkHeader& header, NodeId from = kPredecessor) {
    return engine_->intake(from, header).how;
  }
  void fold(const proto::ChunkHeader& header, uint32_t offset, uint32_t bytes, float value = 10) {
    const std::vector<float> piece(bytes / 4, value);
    engine_->fold(kPredecessor, header, offset,
                  {reinterpret_cast<const uint8_t*>(piece.data()), bytes});
  }
  // The result's floats of a segment.
  std::vector<float> sums(uint32_t segment) const {
    const auto begin = result_.begin() + segment * 48;
    return {begin, begin + (segment == 2 ? 4 : 48)};
  }
  // Two hops among three nodes: both others send this node a part of segment 1.
  Operation by_two_hops() {
    Operation operation = make_operation();
    operation.route = &operation.ring->routes->two_hops;
    return operation;
  }
};

const proto::ChunkHeader kPart = chunk_of({7, 8, 9}, Phase::ReduceScatter, 1, 192);

TEST_F(EngineIntake, folds_a_part_piece_by_piece) {
  start(make_operation());
  ASSERT_EQ(how(kPart), How::Fold);
  fold(kPart, 0, 64);
  EXPECT_EQ(result_[48], 11.0F);
  EXPECT_EQ(result_[64], -1.0F);
  ASSERT_EQ(how(kPart), How::Fold);
  fold(kPart, 64, 128);
  EXPECT_EQ(sums(1), std::vector<float>(48, 11.0F));
  EXPECT_EQ(engine_->counters().bytes_reduced, 0U) << "counted at the end";
  EXPECT_FALSE(was_sent(Phase::AllGather, 1, 0));
  engine_->on_chunk_taken(kPredecessor, kPart);
  EXPECT_EQ(engine_->counters().bytes_reduced, 192U);
  EXPECT_EQ(engine_->counters().bytes_carried, 185U) << "of 400, by 192 of the 416 that come";
  EXPECT_TRUE(was_sent(Phase::AllGather, 1, 0));
  EXPECT_EQ(how(kPart), How::Whole);
  engine_->on_chunk(kPredecessor, kPart, std::vector<uint8_t>(192));
  EXPECT_EQ(engine_->counters().chunks_duplicate, 1U);
  EXPECT_EQ(sums(1), std::vector<float>(48, 11.0F));
}

TEST_F(EngineIntake, folds_what_is_shorter_than_a_piece) {
  start(make_operation());
  const auto part = chunk(Phase::ReduceScatter, 2);
  ASSERT_EQ(how(part), How::Fold);
  fold(part, 0, 16);
  engine_->on_chunk_taken(kPredecessor, part);
  EXPECT_EQ(sums(2), std::vector<float>(4, 11.0F));
  EXPECT_EQ(result_[100], -1.0F);
  EXPECT_TRUE(was_sent(Phase::ReduceScatter, 2, 0));
}

TEST_F(EngineIntake, folds_before_go_and_passes_on_at_go) {
  Operation operation = make_operation();
  operation.chunk_bytes = 192;
  engine_->start(std::move(operation));
  const auto part = chunk(Phase::ReduceScatter, 2);
  ASSERT_EQ(how(part), How::Fold);
  fold(part, 0, 16);
  engine_->on_chunk_taken(kPredecessor, part);
  EXPECT_TRUE(link_.chunks.empty());
  engine_->go({7, 8, 9});
  EXPECT_TRUE(was_sent(Phase::ReduceScatter, 2, 0));
}

TEST_F(EngineIntake, stores_a_sum_where_it_belongs) {
  start(make_operation());
  const auto sum = chunk(Phase::AllGather, 0);
  const ChunkIntake intake = engine_->intake(kPredecessor, sum);
  ASSERT_EQ(intake, (ChunkIntake{How::Store, reinterpret_cast<uint8_t*>(result_.data())}));
  std::fill(result_.begin(), result_.begin() + 48, 12.0F);
  EXPECT_FALSE(was_sent(Phase::AllGather, 0, 0));
  ASSERT_EQ(engine_->intake(kPredecessor, sum), intake);
  engine_->on_chunk_taken(kPredecessor, sum);
  EXPECT_TRUE(was_sent(Phase::AllGather, 0, 0)) << "goes on around the ring";
  EXPECT_EQ(engine_->counters().bytes_carried, 185U);
  EXPECT_EQ(engine_->counters().bytes_reduced, 0U);
  EXPECT_EQ(how(sum), How::Whole);
}

TEST_F(EngineIntake, stores_a_broadcast_before_go) {
  Operation operation = make_operation(Collective::Broadcast);
  operation.chunk_bytes = 192;
  engine_->start(std::move(operation));
  proto::ChunkHeader sum = chunk_of({7, 8, 9}, Phase::AllGather, 0, 192);
  sum.chunk = 1;
  EXPECT_EQ(engine_->intake(kPredecessor, sum).store_at,
            reinterpret_cast<uint8_t*>(result_.data()) + 192);
}

TEST_F(EngineIntake, brings_an_operation_to_its_end) {
  start(make_operation());
  for (const auto& part : {kPart, chunk(Phase::ReduceScatter, 2)}) {
    ASSERT_EQ(how(part), How::Fold);
    fold(part, 0, part.bytes);
    engine_->on_chunk_taken(kPredecessor, part);
  }
  for (const uint32_t segment : {0U, 2U}) {
    const auto sum = chunk(Phase::AllGather, segment);
    const ChunkIntake intake = engine_->intake(kPredecessor, sum);
    ASSERT_EQ(intake.how, How::Store);
    std::memset(intake.store_at, 0, sum.bytes);
    engine_->on_chunk_taken(kPredecessor, sum);
  }
  settle();
  EXPECT_EQ(done_, 1);
  EXPECT_EQ(engine_->counters().units_done, 1U);
  for (const auto& sent : std::exchange(link_.chunks, {}))
    sent.source->on_chunk_settled(sent, true);
  settle();
  EXPECT_EQ(retired_, 1);
  EXPECT_EQ(how(kPart), How::Whole) << "its memory may be something else's";
}

TEST_F(EngineIntake, finds_an_operation_that_waits_at_the_door) {
  at_door_ = [this] { start(make_operation()); };
  EXPECT_EQ(how(kPart), How::Fold);
  EXPECT_EQ(drained_, 1);
  EXPECT_EQ(how(kPart), How::Fold);
  EXPECT_EQ(drained_, 1) << "it is known";
}

TEST_F(EngineIntake, of_an_unknown_operation_is_whole) {
  EXPECT_EQ(how(kPart), How::Whole);
  EXPECT_EQ(drained_, 1);
  EXPECT_EQ(engine_->counters().chunks_stale, 0U) << "nothing has come yet";
}

TEST_F(EngineIntake, does_not_look_at_the_door_for_what_is_whole_in_any_case) {
  proto::ChunkHeader direct = kPart;
  direct.phase = static_cast<uint8_t>(Phase::Direct);
  proto::ChunkHeader encoded = kPart;
  encoded.encoding = static_cast<uint8_t>(Encoding::Part);
  EXPECT_EQ(how(direct), How::Whole);
  EXPECT_EQ(how(encoded), How::Whole);
  EXPECT_EQ(drained_, 0);
}

TEST_F(EngineIntake, of_what_would_not_be_taken_is_whole) {
  start(make_operation());
  const auto changed = [](auto change) {
    proto::ChunkHeader header = kPart;
    change(header);
    return header;
  };
  EXPECT_EQ(how(changed([](auto& part) { part.segment = 3; })), How::Whole);
  EXPECT_EQ(how(changed([](auto& part) { part.chunk = 1; })), How::Whole);
  EXPECT_EQ(how(changed([](auto& part) { part.unit = 1; })), How::Whole);
  EXPECT_EQ(how(changed([](auto& part) { part.bytes = 188; })), How::Whole);
  EXPECT_EQ(how(changed([](auto& part) { part.bytes = 196; })), How::Whole);
  EXPECT_EQ(how(changed([](auto& part) { part.signature = 1; })), How::Whole);
  EXPECT_EQ(how(changed([](auto& part) { part.encoding = 1; })), How::Whole);
  EXPECT_EQ(how(changed([](auto& part) { part.phase = 3; })), How::Whole);
  EXPECT_EQ(how(chunk(Phase::ReduceScatter, 0)), How::Whole) << "starts here";
  EXPECT_EQ(how(chunk(Phase::AllGather, 1)), How::Whole) << "starts here";
  EXPECT_EQ(how(chunk(Phase::AllGather, 2)), How::Whole) << "before this node gave its part";
  EXPECT_EQ(how(kPart, kSuccessor), How::Whole) << "not from there";
  EXPECT_EQ(how(chunk(Phase::AllGather, 0), kSuccessor), How::Whole) << "not from there";
  EXPECT_EQ(how(kPart), How::Fold);
  EXPECT_EQ(how(chunk(Phase::AllGather, 0)), How::Store);
}

TEST_F(EngineIntake, of_a_sum_before_go_is_whole) {
  Operation operation = make_operation();
  operation.chunk_bytes = 192;
  engine_->start(std::move(operation));
  EXPECT_EQ(how(chunk(Phase::AllGather, 0)), How::Whole);
}

TEST_F(EngineIntake, with_a_hop_is_whole) {
  Operation operation = make_operation();
  operation.hop = std::make_shared<NoHop>();
  start(std::move(operation));
  for (const Encoding encoding : {Encoding::Plain, Encoding::Part, Encoding::Sum}) {
    for (proto::ChunkHeader header : {kPart, chunk(Phase::AllGather, 0)}) {
      header.encoding = static_cast<uint8_t>(encoding);
      EXPECT_EQ(how(header), How::Whole);
    }
  }
}

TEST_F(EngineIntake, of_a_direct_operation_is_whole) {
  Operation operation = make_operation();
  operation.is_direct = true;
  operation.signature = 5;
  engine_->start(std::move(operation));
  proto::ChunkHeader part = chunk_of({7, 8, 9}, Phase::Direct, 0, 64);
  part.signature = 5;
  EXPECT_EQ(how(part), How::Whole);
  part.phase = static_cast<uint8_t>(Phase::ReduceScatter);
  EXPECT_EQ(how(part), How::Whole);
}

TEST_F(EngineIntake, of_an_early_operation_goes_by_its_signature) {
  Operation operation = by_two_hops();
  operation.signature = 5;
  operation.chunk_bytes = 192;
  engine_->start(std::move(operation));
  proto::ChunkHeader part = kPart;
  EXPECT_EQ(how(part, kSuccessor), How::Whole);
  part.signature = 5;
  EXPECT_EQ(how(part, kSuccessor), How::Fold);
}

// Added twice it would count twice, so only the first part in the route's order is folded.
TEST_F(EngineIntake, of_parts_whose_turn_is_later_is_whole) {
  start(by_two_hops());
  EXPECT_EQ(how(kPart, kPredecessor), How::Whole);
  EXPECT_EQ(how(kPart, kSuccessor), How::Fold);
  engine_->on_chunk(kSuccessor, kPart, std::vector<uint8_t>(192));
  EXPECT_EQ(how(kPart, kPredecessor), How::Whole) << "also in turn";
}

TEST_F(EngineIntake, adds_what_came_before_its_turn_once_the_first_part_is_here) {
  start(by_two_hops());
  const std::vector<float> later(48, 100.0F);
  engine_->on_chunk(kPredecessor, kPart, {reinterpret_cast<const uint8_t*>(later.data()), 192});
  const std::vector<float> piece(48, 10.0F);
  const std::span bytes(reinterpret_cast<const uint8_t*>(piece.data()), 192);
  ASSERT_EQ(how(kPart, kSuccessor), How::Fold);
  engine_->fold(kSuccessor, kPart, 0, bytes.first(128));
  engine_->fold(kSuccessor, kPart, 128, bytes.subspan(128));
  EXPECT_EQ(sums(1), std::vector<float>(48, 11.0F));
  engine_->on_chunk_taken(kSuccessor, kPart);
  EXPECT_EQ(sums(1), std::vector<float>(48, 111.0F));
  EXPECT_EQ(engine_->counters().bytes_reduced, 2 * 192U);
}

TEST_F(EngineIntake, ends_when_the_chunk_has_come_over_another_flow) {
  start(make_operation());
  ASSERT_EQ(how(kPart), How::Fold);
  fold(kPart, 0, 64);
  const std::vector<float> other(48, 10.0F);
  engine_->on_chunk(kPredecessor, kPart, {reinterpret_cast<const uint8_t*>(other.data()), 192});
  EXPECT_EQ(how(kPart), How::Whole);
  EXPECT_EQ(sums(1), std::vector<float>(48, 11.0F));
  EXPECT_EQ(engine_->counters().bytes_reduced, 192U);

  const auto sum = chunk(Phase::AllGather, 0);
  ASSERT_EQ(how(sum), How::Store);
  engine_->on_chunk(kPredecessor, sum, {reinterpret_cast<const uint8_t*>(other.data()), 192});
  EXPECT_EQ(how(sum), How::Whole) << "it may have been passed on";
  EXPECT_EQ(sums(0), other);
}

// The second copy is half folded when the first one is complete.
TEST_F(EngineIntake, may_be_under_way_twice) {
  start(make_operation());
  fold(kPart, 0, 128);
  fold(kPart, 0, 64);
  fold(kPart, 128, 64);
  engine_->on_chunk_taken(kPredecessor, kPart);
  EXPECT_EQ(how(kPart), How::Whole);
  EXPECT_EQ(sums(1), std::vector<float>(48, 11.0F));
  EXPECT_EQ(engine_->counters().bytes_reduced, 192U);
}

// A flow that died with half a chunk leaves nothing behind.
TEST_F(EngineIntake, begins_anew_with_other_pieces) {
  start(make_operation());
  fold(kPart, 0, 128);
  for (const uint32_t offset : {0U, 64U, 128U}) {
    ASSERT_EQ(how(kPart), How::Fold);
    fold(kPart, offset, 64);
  }
  engine_->on_chunk_taken(kPredecessor, kPart);
  EXPECT_EQ(sums(1), std::vector<float>(48, 11.0F));
}

TEST_F(EngineIntake, ends_with_the_job) {
  start(make_operation());
  fold(kPart, 0, 64);
  ASSERT_EQ(how(chunk(Phase::AllGather, 0)), How::Store);
  engine_->abort_job(7);
  EXPECT_EQ(how(kPart), How::Whole);
  EXPECT_EQ(how(chunk(Phase::AllGather, 0)), How::Whole);
}

}  // namespace
}  // namespace braid::test
