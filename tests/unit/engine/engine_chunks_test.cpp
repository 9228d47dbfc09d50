// SPDX-License-Identifier: Apache-2.0
#include "engine_chunks.h"

namespace braid::test {
namespace {

using proto::Phase;

TEST_F(EngineChunks, of_an_unknown_operation_are_stale_after_one_look_at_the_door) {
  receive(header(Phase::ReduceScatter, 1, 0));
  EXPECT_EQ(drained_, 1);
  EXPECT_EQ(engine_->counters().chunks_stale, 1U);
}

TEST_F(EngineChunks, find_an_operation_that_waits_at_the_door) {
  at_door_ = [this] { engine_->start(make_operation()); };
  receive(header(Phase::ReduceScatter, 1, 0));
  EXPECT_EQ(engine_->counters().chunks_stale, 0U);
  EXPECT_EQ(result_[48], 11.0F);
}

TEST_F(EngineChunks, are_sent_first_from_the_input_itself) {
  engine_->start(make_operation());
  EXPECT_TRUE(link_.chunks.empty()) << "nothing is sent before go";
  engine_->go({7, 8, 9});
  ASSERT_EQ(link_.chunks.size(), 3U);  // segment 0 starts at node 1
  for (const auto& chunk : link_.chunks) {
    EXPECT_EQ(chunk.header.segment, 0U);
    const auto bytes = chunk.source->payload_of(chunk);
    EXPECT_EQ(bytes.data(),
              reinterpret_cast<const uint8_t*>(input_.data()) + chunk.header.chunk * 64);
  }
}

TEST_F(EngineChunks, are_as_large_as_their_operation_says) {
  Operation operation = make_operation();
  operation.unit_bytes = 256;
  operation.chunk_bytes = 128;
  engine_->start(std::move(operation));
  engine_->go({7, 8, 9});
  ASSERT_FALSE(link_.chunks.empty());
  uint32_t last_unit = 0;
  for (const auto& chunk : link_.chunks) last_unit = std::max(last_unit, chunk.header.unit);
  EXPECT_EQ(last_unit, 1U) << "400 bytes in units of 256";
}

TEST_F(EngineChunks, are_sent_for_as_many_units_as_the_job_may_have_in_flight) {
  engine_->limit_job(7, {1, {2, 1000}});
  ASSERT_EQ(link_.limited.size(), 1U);
  EXPECT_EQ(link_.limited[0].second, (LinkLimits{2, 1000}));
  for (const uint64_t tensor : {8, 18}) {
    Operation operation = make_operation();
    operation.key.tensor = tensor;
    engine_->start(std::move(operation));
    engine_->go({7, tensor, 9});
  }
  EXPECT_EQ(link_.chunks.size(), 3U) << "of the first one";
  engine_->limit_job(7, {2, {2, 1000}});
  EXPECT_EQ(link_.chunks.size(), 6U);
  engine_->abort_job(7);
  EXPECT_EQ(link_.limited.back().second, LinkLimits{});
}

TEST_F(EngineChunks, have_their_jobs_weight_until_it_ends) {
  engine_->limit_job(7, {0, {0, 0, 3}});
  EXPECT_EQ(link_.limited.back().second.weight, 3U);
  engine_->abort_job(7);
  EXPECT_EQ(link_.limited.back().second, LinkLimits{});
}

TEST_F(EngineChunks, that_come_before_go_are_added_at_once_and_passed_on_at_go) {
  engine_->start(make_operation());
  receive(header(Phase::ReduceScatter, 2, 0));
  EXPECT_EQ(result_[96], 11.0F);
  EXPECT_TRUE(link_.chunks.empty());
  engine_->go({7, 8, 9});
  EXPECT_TRUE(was_sent(Phase::ReduceScatter, 2, 0));
}

TEST_F(EngineChunks, that_come_twice_are_added_once) {
  engine_->start(make_operation());
  engine_->go({7, 8, 9});
  receive(header(Phase::ReduceScatter, 1, 0));
  const size_t sent = link_.chunks.size();
  receive(header(Phase::ReduceScatter, 1, 0));
  EXPECT_EQ(engine_->counters().chunks_duplicate, 1U);
  EXPECT_EQ(link_.chunks.size(), sent);
}

TEST_F(EngineChunks, with_impossible_numbers_are_counted_and_change_nothing) {
  engine_->start(make_operation());
  engine_->go({7, 8, 9});
  const auto before = result_;
  auto bad = header(Phase::ReduceScatter, 1, 0);
  bad.segment = 3;
  receive(bad);
  bad = header(Phase::ReduceScatter, 1, 3);  // chunks 0, 1, 2
  receive(bad);
  bad = header(Phase::ReduceScatter, 1, 0);
  bad.bytes = 60;
  receive(bad);
  bad = header(Phase::ReduceScatter, 1, 0);
  bad.unit = 1;
  receive(bad);
  receive(header(Phase::ReduceScatter, 0, 0));              // starts here
  receive(header(Phase::AllGather, 1, 0));                  // starts here
  receive(header(Phase::AllGather, 2, 0));                  // final before this node gave its part
  receive(header(Phase::ReduceScatter, 1, 0), kSuccessor);  // not from there
  engine_->on_chunk(kPredecessor, header(Phase::ReduceScatter, 1, 0), {});
  EXPECT_EQ(engine_->counters().chunks_malformed, 9U);
  EXPECT_EQ(result_, before);
}

TEST_F(EngineChunks, are_elements_where_no_hop_encodes_them) {
  engine_->start(make_operation());
  engine_->go({7, 8, 9});
  ASSERT_FALSE(link_.chunks.empty());
  for (const auto& sent : link_.chunks) EXPECT_EQ(sent.header.encoding, 0);
  const auto before = result_;
  auto encoded = header(Phase::ReduceScatter, 1, 0);
  encoded.encoding = static_cast<uint8_t>(Encoding::Part);
  receive(encoded);
  EXPECT_EQ(engine_->counters().chunks_malformed, 1U);
  EXPECT_EQ(result_, before);
  receive(header(Phase::ReduceScatter, 1, 0));
  EXPECT_EQ(engine_->counters().chunks_malformed, 1U);
  EXPECT_EQ(result_[48], 11.0F);
}

TEST_F(EngineChunks, of_a_phase_that_the_collective_lacks_are_malformed) {
  engine_->start(make_operation(Collective::Broadcast));
  receive(header(Phase::ReduceScatter, 1, 0));
  EXPECT_EQ(engine_->counters().chunks_malformed, 1U);
}

// A sum that comes says that this node's part has come.
TEST_F(EngineChunks, hold_up_an_all_reduce_that_is_done_only_from_being_retired) {
  engine_->start(make_operation());
  engine_->go({7, 8, 9});
  for (uint32_t chunk = 0; chunk < 3; ++chunk) receive(header(Phase::ReduceScatter, 1, chunk));
  receive(header(Phase::ReduceScatter, 2, 0));
  for (uint32_t chunk = 0; chunk < 3; ++chunk) receive(header(Phase::AllGather, 0, chunk));
  settle();
  EXPECT_EQ(done_, 0);
  receive(header(Phase::AllGather, 2, 0));
  settle();
  EXPECT_EQ(done_, 1);
  EXPECT_EQ(retired_, 0);
  const auto sent = std::exchange(link_.chunks, {});
  for (const auto& chunk : sent) {
    EXPECT_EQ(retired_, 0);
    EXPECT_EQ(chunk.header.ack_time, static_cast<uint8_t>(proto::AckTime::Soon));
    chunk.source->on_chunk_settled(chunk, true);
    settle();
  }
  EXPECT_EQ(done_, 1);
  EXPECT_EQ(retired_, 1);
  receive(header(Phase::ReduceScatter, 1, 0));
  EXPECT_EQ(engine_->counters().chunks_stale, 1U);
}

// Here nothing comes back that would say so.
TEST_F(EngineChunks, of_a_reduce_scatter_are_acknowledged_at_once_and_hold_it_up) {
  engine_->start(make_operation(Collective::ReduceScatter));
  engine_->go({7, 8, 9});
  for (const uint32_t segment : {1U, 2U}) {
    for (uint32_t chunk = 0; chunk < 7; ++chunk) {  // of 400 bytes, each segment
      proto::ChunkHeader part = header(Phase::ReduceScatter, segment, chunk);
      part.bytes = chunk == 6 ? 16 : 64;
      receive(part);
    }
  }
  EXPECT_EQ(engine_->counters().units_done, 1U);
  settle();
  const auto sent = std::exchange(link_.chunks, {});
  ASSERT_FALSE(sent.empty());
  for (const auto& chunk : sent) {
    EXPECT_EQ(done_, 0);
    EXPECT_EQ(chunk.header.ack_time, static_cast<uint8_t>(proto::AckTime::AtOnce));
    chunk.source->on_chunk_settled(chunk, true);
    settle();
  }
  EXPECT_EQ(done_, 1);
  EXPECT_EQ(retired_, 1);
}

TEST_F(EngineChunks, of_an_engine_that_is_gone_have_no_bytes) {
  engine_->start(make_operation());
  engine_->go({7, 8, 9});
  engine_.reset();
  ASSERT_FALSE(link_.chunks.empty());
  for (const auto& chunk : link_.chunks) {
    EXPECT_TRUE(chunk.source->payload_of(chunk).empty());
    chunk.source->on_chunk_settled(chunk, false);
  }
}

}  // namespace
}  // namespace braid::test
