// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "engine/waiting_units.h"
#include "engine_world.h"

namespace braid::test {
namespace {

constexpr uint64_t kJob = 7;
constexpr NodeId kOther = 2;
constexpr uint32_t kUnitBytes = 128;  // two segments of one chunk each

struct NoMemory final : JobMemory {};

class RecordingLink final : public Link, public Links {
 public:
  void submit(OutgoingChunk chunk) override { chunks.push_back(std::move(chunk)); }
  Link* find(NodeId) override { return this; }
  void limit(uint64_t, const LinkLimits&) override {}
  std::vector<OutgoingChunk> chunks;
};

// Node 0 of two, with one stream: the next unit begins when the one before it has ended.
class EngineUrgency : public testing::Test {
 protected:
  EngineUrgency() {
    engine_ = Engine::create(*loop_, EngineOptions{1, 0, kUnitBytes, 64, 1},
                             {[](const OperationKey&) {}, [](const OperationKey&) {}, [] {}});
    engine_->set_links(link_);
  }

  void submit(uint64_t tensor, uint64_t urgency, uint32_t units = 1, bool is_direct = false) {
    auto ring = std::make_shared<Ring>();
    ring->nodes = 2;
    ring->world_size = 2;
    ring->ranks_of_node = {1, 1};
    ring->members = {kOther - 1, kOther};
    ring->routes = basic_routes(2, 0);
    Operation operation;
    operation.is_direct = is_direct;
    if (is_direct) operation.signature = EngineWorld::kSignature;
    operation.key = {kJob, tensor, 0};
    operation.urgency = urgency;
    operation.count = units * kUnitBytes / sizeof(float);
    operation.ring = ring;
    operation.memory = std::make_shared<NoMemory>();
    operation.inputs = {reinterpret_cast<const uint8_t*>(input_.data())};
    operation.result = reinterpret_cast<uint8_t*>(result_.data());
    engine_->start(std::move(operation));
    engine_->go({kJob, tensor, 0});
  }

  // The tensor whose unit has begun last.
  uint64_t begun() const { return begun_units().back().tensor; }
  size_t units_begun() const { return begun_units().size(); }

  std::vector<proto::ChunkHeader> begun_units() const {
    std::vector<proto::ChunkHeader> units;
    for (const OutgoingChunk& sent : link_.chunks) {
      if (sent.header.phase == static_cast<uint8_t>(proto::Phase::ReduceScatter))
        units.push_back(sent.header);
    }
    return units;
  }

  // The other node sends what is missing of the unit that has begun last.
  void end_unit() {
    proto::ChunkHeader header = begun_units().back();
    const std::vector<float> payload(header.bytes / sizeof(float), 1.0F);
    const std::span bytes(reinterpret_cast<const uint8_t*>(payload.data()), header.bytes);
    header.segment = 0;
    engine_->on_chunk(kOther, header, bytes);
    header.segment = 1;
    header.phase = static_cast<uint8_t>(proto::Phase::AllGather);
    engine_->on_chunk(kOther, header, bytes);
    uv_run(loop_->uv(), UV_RUN_NOWAIT);
  }

  std::unique_ptr<Loop> loop_ = std::move(Loop::create("test")).value();
  RecordingLink link_;
  std::vector<float> input_ = std::vector<float>(4096, 1.0F);
  std::vector<float> result_ = std::vector<float>(4096);
  std::unique_ptr<Engine> engine_;
};

TEST_F(EngineUrgency, the_most_urgent_unit_that_waits_is_next_and_of_equals_the_first) {
  submit(100, 0);
  submit(1, 5);
  submit(2, 1);
  submit(3, 9);
  submit(4, 5);
  std::vector<uint64_t> order;
  for (int i = 0; i < 4; ++i) {
    end_unit();
    order.push_back(begun());
  }
  EXPECT_EQ(order, (std::vector<uint64_t>{3, 1, 4, 2}));
}

TEST_F(EngineUrgency, chunks_are_as_urgent_as_their_operation) {
  engine_->begin_job(kJob, {});
  submit(1, 5);
  end_unit();
  submit(2, 6, 1, true);
  std::vector<uint64_t> urgencies;
  for (const OutgoingChunk& sent : link_.chunks) urgencies.push_back(sent.urgency);
  EXPECT_EQ(urgencies, (std::vector<uint64_t>{5, 5, 6, 6}))
      << "both phases, and what is direct, in two chunks";
  engine_->abort_job(kJob);
}

TEST_F(EngineUrgency, a_small_operation_goes_between_the_units_of_a_large_one) {
  submit(1, 3, 5);
  end_unit();
  EXPECT_EQ(begun(), 1U);
  submit(2, 4);
  end_unit();
  EXPECT_EQ(begun(), 2U);
  for (int i = 0; i < 3; ++i) {
    end_unit();
    EXPECT_EQ(begun(), 1U);
  }
  end_unit();
  EXPECT_EQ(units_begun(), 6U) << "each unit begins once";
}

TEST_F(EngineUrgency, a_unit_that_was_begun_by_the_other_node_does_not_begin_again) {
  submit(100, 0);
  submit(1, 5);
  submit(2, 1);
  proto::ChunkHeader header = begun_units().front();
  header.tensor = 1;
  header.segment = 0;
  const std::vector<uint8_t> payload(header.bytes);
  engine_->on_chunk(kOther, header, payload);
  EXPECT_EQ(begun(), 1U);
  engine_->limit_job(kJob, {3, {}});
  EXPECT_EQ(begun(), 2U);
  EXPECT_EQ(units_begun(), 3U);
}

TEST_F(EngineUrgency, urgent_units_without_end_hold_nothing_up_for_ever) {
  submit(100, 0);
  submit(1, 1, 2);
  uint64_t next = 1000;
  for (int unit = 0; unit < 2; ++unit) {
    for (uint32_t i = 0; i < WaitingUnits::kOvertakenMax; ++i) {
      submit(++next, 5);
      submit(++next, 5);
      end_unit();
      EXPECT_NE(begun(), 1U);
    }
    end_unit();
    EXPECT_EQ(begun(), 1U);
  }
}

TEST_F(EngineUrgency, of_steps_the_earlier_one_goes_first_and_of_a_step_the_end_of_backward) {
  EXPECT_GT(urgency_of(3, 0), urgency_of(4, 1'000'000));
  EXPECT_GT(urgency_of(3, 8), urgency_of(3, 7));
  EXPECT_GT(urgency_of(UINT64_MAX, 1), urgency_of(UINT64_MAX, 0));
  EXPECT_GE(urgency_of(uint64_t{1} << 40, 0), urgency_of(UINT64_MAX, UINT32_MAX));
  EXPECT_GT(kMostUrgent, urgency_of(0, UINT32_MAX));
}

// Urgencies that agree on all nodes, while links carry chunks by urgency and lose flows: the same
// bits as without.
TEST(Engine, urgencies_change_no_bit) {
  for (uint64_t seed = 0; seed < worlds(24); ++seed) {
    std::vector<std::vector<uint8_t>> plain;
    for (const bool has_urgencies : {false, true}) {
      WorldOptions options;
      options.ranks_of_node = {1, 2, 1, 1};
      options.io_loops = 1 + static_cast<uint32_t>(seed % 2);
      options.streams = 1 + static_cast<uint32_t>(seed % 3);
      options.unit_bytes = 512;
      options.chunk_bytes = 128;
      options.direct_bytes = 200;
      EngineWorld world(options, seed);
      Random random(seed);
      for (uint64_t step = 0; step < 24; ++step) {
        OperationSpec spec;
        spec.count = 1 + random() % 900;
        spec.step = step;
        const uint64_t urgency = random() % 5;
        if (has_urgencies) spec.urgency = urgency;
        world.add(spec);
      }
      ASSERT_TRUE(world.run()) << seed;
      world.expect_all_ended();
      for (size_t i = 0; i < 24; ++i) {
        if (!has_urgencies) {
          plain.push_back(world.result(i, 0));
        } else {
          EXPECT_EQ(world.result(i, 0), plain[i]) << "seed " << seed;
        }
      }
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace braid::test
