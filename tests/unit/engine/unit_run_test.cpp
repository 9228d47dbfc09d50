// SPDX-License-Identifier: Apache-2.0
#include "engine/unit_run.h"

#include <gtest/gtest.h>

#include "engine/operation_run.h"

namespace braid {
namespace {

constexpr NodeId kOther = 2;

struct NoLinks final : Links {
  Link* find(NodeId) override { return nullptr; }
  void limit(uint64_t, const LinkLimits&) override {}
};

struct NoHost final : OperationHost {
  Links& links() override { return no_links; }
  uint32_t take_stream(const OperationRun&) override { return static_cast<uint32_t>(streams++); }
  void on_unit_finished(const OperationRun&, std::optional<uint32_t> stream) override {
    streams -= stream ? 1 : 0;
  }
  void on_bytes_carried(uint64_t) override {}
  void on_bytes_reduced(uint64_t) override {}
  void on_bytes_copied(uint64_t) override {}
  void on_progress(OperationRun&) override {}
  int streams = 0;
  NoLinks no_links;
};

struct HeldStep final : OwnerStep {
  StepOutcome apply(const Operation&, const Extent&, uint8_t*, StepEnd ended) override {
    end = std::move(ended);
    return StepOutcome::Later;
  }
  StepEnd end;
};

// Node 0 of two: one unit of 128 bytes, a chunk of 64 for each of them.
class UnitRunTest : public testing::Test {
 protected:
  UnitRunTest() {
    auto ring = std::make_shared<Ring>();
    ring->nodes = ring->world_size = 2;
    ring->members = {1, kOther};
    ring->ranks_of_node = {1, 1};
    ring->routes = basic_routes(2, 0);
    Operation operation;
    operation.dtype = DataType::Uint8;
    operation.count = 128;
    operation.ring = ring;
    operation.inputs = {input_.data()};
    operation.result = result_.data();
    operation.owner_step = step_;
    run_ = std::make_shared<OperationRun>(operation, EngineOptions{}, host_);
  }
  ChunkVerdict hear(proto::Phase phase, uint32_t segment) {
    proto::ChunkHeader header{};
    header.phase = static_cast<uint8_t>(phase);
    header.segment = static_cast<uint16_t>(segment);
    header.bytes = 64;
    return run_->accept(kOther, header, std::vector<uint8_t>(64, 7));
  }
  UnitRun& unit() { return run_->units().front(); }

  NoHost host_;
  const std::shared_ptr<HeldStep> step_ = std::make_shared<HeldStep>();
  const std::vector<uint8_t> input_ = std::vector<uint8_t>(128, 1);
  std::vector<uint8_t> result_ = std::vector<uint8_t>(128);
  std::shared_ptr<OperationRun> run_;
};

TEST_F(UnitRunTest, WaitsReducesStepsAndGathers) {
  ASSERT_EQ(run_->units().size(), 1U);
  EXPECT_EQ(unit().state(), UnitState::Waiting);
  EXPECT_TRUE(unit().waits_for_stream());
  run_->set_ready();
  unit().begin();
  EXPECT_EQ(unit().state(), UnitState::Reducing);
  EXPECT_EQ(host_.streams, 1);
  EXPECT_EQ(hear(proto::Phase::ReduceScatter, 0), ChunkVerdict::Taken);
  EXPECT_EQ(unit().state(), UnitState::Stepping);
  EXPECT_EQ(result_[0], 8);
  step_->end.tell();
  EXPECT_EQ(unit().state(), UnitState::Gathering);
  EXPECT_EQ(hear(proto::Phase::AllGather, 1), ChunkVerdict::Taken);
  EXPECT_EQ(unit().state(), UnitState::Finished);
  EXPECT_EQ(host_.streams, 0);
  run_->abandon();
}

TEST_F(UnitRunTest, KeepsAPartThatComesWhileItWaits) {
  EXPECT_EQ(hear(proto::Phase::ReduceScatter, 0), ChunkVerdict::Taken);
  EXPECT_EQ(unit().state(), UnitState::Waiting);
  EXPECT_TRUE(unit().is_touched());
  run_->set_ready();
  unit().begin();
  EXPECT_EQ(unit().state(), UnitState::Stepping);
  step_->end.tell();
  EXPECT_EQ(unit().state(), UnitState::Gathering);
  run_->abandon();
}

TEST_F(UnitRunTest, AStepThatEndsAfterTheJobChangesNothing) {
  run_->set_ready();
  unit().begin();
  ASSERT_EQ(hear(proto::Phase::ReduceScatter, 0), ChunkVerdict::Taken);
  run_->abandon();
  step_->end.tell();
  EXPECT_EQ(unit().state(), UnitState::Stepping);
}

}  // namespace
}  // namespace braid
