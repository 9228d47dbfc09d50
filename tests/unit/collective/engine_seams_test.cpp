// SPDX-License-Identifier: Apache-2.0
// What may differ from operation to operation: who gives the inputs, what travels, and what the
// owner makes of the sum.
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "collective/contribution.h"
#include "collective/hop.h"
#include "collective/local_inputs.h"
#include "collective/owner_step.h"
#include "engine_world.h"
#include "loop/door.h"
#include "reference.h"

namespace braid::test {
namespace {

struct AlgorithmCase {
  std::string name;
  std::function<Route(uint32_t, uint32_t)> route;
  bool is_direct = false;
};

class EngineSeams : public testing::TestWithParam<AlgorithmCase> {
 protected:
  static WorldOptions options_of(uint64_t seed) {
    WorldOptions options;
    options.ranks_of_node = {2, 1, 1, 1};
    options.route = GetParam().route;
    options.direct_bytes = GetParam().is_direct ? 1 << 20 : 0;
    options.io_loops = 1 + static_cast<uint32_t>(seed / 3 % 2);
    options.hostility.submit_pulls = seed % 3 == 0;
    options.hostility.keep_ghost = 0.2;
    return options;
  }

  // Every collective; by another route than the ring the all-reduces alone.
  static void add_all(EngineWorld& world, Reduction reduction) {
    uint64_t step = 0;
    for (const uint64_t count : {0, 1, 3, 65, 1000, 5003}) {
      const DataType dtype = kAllDataTypes[step % 7];
      const auto pieces = static_cast<uint32_t>(1 + step % 3);
      world.add({Collective::AllReduce, dtype, reduction, count, 0, 1, step++, pieces});
      world.add({Collective::ReduceScatter, dtype, reduction, count, 0, 1, step++});
      world.add({Collective::AllGather, dtype, reduction, count, 0, 1, step++});
      world.add({Collective::Broadcast, dtype, reduction, count, 3, 1, step++});
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Algorithms, EngineSeams,
                         testing::Values(AlgorithmCase{"ring", nullptr},
                                         AlgorithmCase{"direct", nullptr, true},
                                         AlgorithmCase{"halving", halving_route},
                                         AlgorithmCase{"two_hops", two_hops_route}),
                         [](const auto& param) { return param.param.name; });

// --- hops ---

// Loses nothing; what it sends is of another length than what it was given, and not always of the
// same.
class PaddingHop final : public Hop {
 public:
  uint32_t encoded_bytes_max(uint64_t bytes) const override {
    return static_cast<uint32_t>(bytes) + 1 + kPaddingMax;
  }
  uint32_t encode(DataType, std::span<const uint8_t> plain, uint8_t* encoded) const override {
    const uint8_t padding = plain[0] % (kPaddingMax + 1);
    encoded[0] = padding;
    for (size_t i = 0; i < plain.size(); ++i) encoded[1 + i] = plain[i] ^ 0x5A;
    std::fill_n(encoded + 1 + plain.size(), padding, uint8_t{0xA5});
    return static_cast<uint32_t>(1 + plain.size() + padding);
  }
  bool decode(DataType, std::span<const uint8_t> encoded, std::span<uint8_t> plain) const override {
    if (encoded.empty() || encoded.size() != 1 + plain.size() + encoded[0]) return false;
    for (size_t i = 0; i < plain.size(); ++i) plain[i] = encoded[1 + i] ^ 0x5A;
    return true;
  }

 private:
  static constexpr uint8_t kPaddingMax = 6;
};

// The upper halves of 32-bit floats.
class HalvingHop final : public Hop {
 public:
  uint32_t encoded_bytes_max(uint64_t bytes) const override {
    return static_cast<uint32_t>(bytes / 2);
  }
  uint32_t encode(DataType, std::span<const uint8_t> plain, uint8_t* encoded) const override {
    for (size_t i = 0; i < plain.size() / 4; ++i)
      std::memcpy(encoded + 2 * i, plain.data() + 4 * i + 2, 2);
    return static_cast<uint32_t>(plain.size() / 2);
  }
  bool decode(DataType, std::span<const uint8_t> encoded, std::span<uint8_t> plain) const override {
    if (encoded.size() * 2 != plain.size()) return false;
    std::fill(plain.begin(), plain.end(), uint8_t{0});
    for (size_t i = 0; i < plain.size() / 4; ++i)
      std::memcpy(plain.data() + 4 * i + 2, encoded.data() + 2 * i, 2);
    return true;
  }
};

TEST_P(EngineSeams, AHopCarriesOtherBytesToTheSameResult) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    WorldOptions options = options_of(seed);
    options.adjust = [hop = std::make_shared<PaddingHop>()](Operation& one) { one.hop = hop; };
    EngineWorld world(options, seed);
    add_all(world, seed % 2 == 0 ? Reduction::Average : Reduction::Sum);
    ASSERT_TRUE(world.run()) << seed;
    world.expect_all_ended();
    EXPECT_EQ(world.counters().chunks_malformed, 0U);
    if (HasFailure()) return;
  }
}

// Although the owner has more digits of the sum than it sends, and nobody decodes what it has.
TEST_P(EngineSeams, AHopThatLosesDigitsGivesAllRanksTheSameBits) {
  std::vector<uint8_t> first;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    WorldOptions options = options_of(seed);
    options.adjust = [hop = std::make_shared<HalvingHop>()](Operation& one) { one.hop = hop; };
    EngineWorld world(options, seed);
    world.add({Collective::AllReduce, DataType::Float32, Reduction::Average, 3001});
    ASSERT_TRUE(world.run()) << seed;
    if (first.empty()) first = world.result(0, 0);
    for (uint32_t node = 0; node < 4; ++node) EXPECT_EQ(world.result(0, node), first) << seed;
    for (uint64_t i = 0; i < 3001; ++i)
      ASSERT_NEAR(element_as_double(DataType::Float32, first.data(), i), 1.0, 0.6) << i;
    EXPECT_EQ(world.counters().chunks_malformed, 0U);
  }
}

TEST(EngineHop, WhatItCannotDecodeIsNotTaken) {
  WorldOptions options;
  options.adjust = [hop = std::make_shared<PaddingHop>()](Operation& one) { one.hop = hop; };
  EngineWorld world(options, 1);
  world.add({Collective::AllReduce, DataType::Uint8, Reduction::Sum, 128});
  const Operation operation = world.operation_of(0, 0);
  Engine& engine = world.engine(0, 0);
  engine.start(operation);
  engine.go(operation.key);
  proto::ChunkHeader header{};
  header.phase = static_cast<uint8_t>(proto::Phase::ReduceScatter);
  header.job_key = operation.key.job_key;
  header.tensor = operation.key.tensor;
  header.step = operation.key.step;
  const std::vector<uint8_t> before(operation.result, operation.result + 128);
  // A wrong length for its padding, nothing, and more than any chunk can have.
  std::vector<uint8_t> payload(65);
  uint64_t malformed = 0;
  for (const size_t bytes : {64, 0, 200}) {
    payload.resize(bytes);
    header.bytes = static_cast<uint32_t>(bytes);
    engine.on_chunk(EngineWorld::id_of(1), header, payload);
    EXPECT_EQ(engine.counters().chunks_malformed, ++malformed) << bytes;
  }
  EXPECT_EQ(std::vector<uint8_t>(operation.result, operation.result + 128), before);
  payload.assign(65, 0);
  header.bytes = 65;
  engine.on_chunk(EngineWorld::id_of(1), header, payload);
  EXPECT_EQ(engine.counters().chunks_malformed, malformed);
  EXPECT_NE(std::vector<uint8_t>(operation.result, operation.result + 128), before);
}

// --- owner's steps ---

// An average that is taken later, in any order.
class LateStep final : public OwnerStep {
 public:
  explicit LateStep(uint64_t seed) : random_(seed) {}

  StepOutcome apply(const Operation& operation, const Extent& extent, uint8_t* bytes,
                    StepEnd end) override {
    bytes_ += extent.bytes;
    waiting_.push_back({&operation, extent, bytes, std::move(end)});
    return StepOutcome::Later;
  }
  // One of those that wait.
  void end_one() {
    if (waiting_.empty()) return;
    std::swap(waiting_[random_() % waiting_.size()], waiting_.back());
    Waiting one = std::move(waiting_.back());
    waiting_.pop_back();
    AverageStep().apply(*one.operation, one.extent, one.bytes, {});
    one.end.tell();
  }
  size_t waiting() const { return waiting_.size(); }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Waiting {
    const Operation* operation;
    Extent extent;
    uint8_t* bytes;
    StepEnd end;
  };
  Random random_;
  std::vector<Waiting> waiting_;
  uint64_t bytes_ = 0;
};

WorldOptions with_step(WorldOptions options, const std::shared_ptr<LateStep>& step) {
  options.adjust = [step](Operation& one) { one.owner_step = step; };
  options.happens = [step] { step->end_one(); };
  return options;
}

TEST_P(EngineSeams, AnOwnersStepMayEndLater) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    auto step = std::make_shared<LateStep>(seed);
    EngineWorld world(with_step(options_of(seed), step), seed);
    add_all(world, Reduction::Average);
    ASSERT_TRUE(world.run()) << seed;
    world.expect_all_ended();
    EXPECT_EQ(step->waiting(), 0U);
    EXPECT_EQ(world.counters().chunks_malformed, 0U);
    if (HasFailure()) return;
  }
}

TEST_P(EngineSeams, AnOwnersStepIsAppliedOnceToEachByte) {
  auto step = std::make_shared<LateStep>(3);
  EngineWorld world(with_step(options_of(3), step), 3);
  world.add({Collective::AllReduce, DataType::Float32, Reduction::Average, 5003});
  ASSERT_TRUE(world.run());
  world.expect_all_ended();
  EXPECT_EQ(step->bytes(), 5003U * 4 * (GetParam().is_direct ? 4 : 1)) << "direct: on each node";
}

TEST_P(EngineSeams, NothingIsDoneBeforeTheOwnersStep) {
  auto step = std::make_shared<LateStep>(5);
  WorldOptions options = with_step(options_of(1), step);
  options.happens = nullptr;
  EngineWorld world(options, 5);
  world.add({Collective::AllReduce, DataType::Float32, Reduction::Average, 900});
  world.run_some(50'000);
  EXPECT_GT(step->waiting(), 0U);
  EXPECT_FALSE(world.any_done(1));
  world.abort_job(1);
  ASSERT_TRUE(world.run());
  while (step->waiting() != 0) step->end_one();
  world.expect_no_memory_held(1);
}

TEST_P(EngineSeams, HopAndOwnersStepGoTogether) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    auto step = std::make_shared<LateStep>(seed);
    WorldOptions options = with_step(options_of(seed), step);
    options.adjust = [step, hop = std::make_shared<PaddingHop>()](Operation& one) {
      one.owner_step = step;
      one.hop = hop;
    };
    EngineWorld world(options, seed);
    add_all(world, Reduction::Average);
    ASSERT_TRUE(world.run()) << seed;
    world.expect_all_ended();
    if (HasFailure()) return;
  }
}

TEST(EngineStep, MayEndLaterOnOneNode) {
  auto step = std::make_shared<LateStep>(1);
  WorldOptions options;
  options.ranks_of_node = {3};
  EngineWorld world(with_step(options, step), 1);
  world.add({Collective::AllReduce, DataType::Float32, Reduction::Average, 20'000});
  world.add({Collective::ReduceScatter, DataType::Float64, Reduction::Average, 500});
  ASSERT_TRUE(world.run());
  world.expect_all_ended();
  EXPECT_EQ(step->bytes(), 20'000U * 4 + 500 * 3 * 8);
}

// The average on a thread of its own, which comes back through a door.
class ThreadStep final : public OwnerStep {
 public:
  ThreadStep() : thread_([this] { work(); }) {}
  ~ThreadStep() override {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  void come_back_to(Loop& loop) {
    door_ = std::make_unique<Door<StepEnd>>(loop, 1, [](StepEnd& end) { end.tell(); });
  }
  void stay_away() { door_.reset(); }

  StepOutcome apply(const Operation& operation, const Extent& extent, uint8_t* bytes,
                    StepEnd end) override {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back({&operation, extent, bytes, std::move(end)});
    }
    changed_.notify_one();
    return StepOutcome::Later;
  }

 private:
  struct Waiting {
    const Operation* operation;
    Extent extent;
    uint8_t* bytes;
    StepEnd end;
  };
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return is_over_ || !waiting_.empty(); });
      if (is_over_) return;
      std::vector<Waiting> taken;
      taken.swap(waiting_);
      lock.unlock();
      for (Waiting& one : taken) {
        AverageStep().apply(*one.operation, one.extent, one.bytes, {});
        door_->send_unbounded(std::move(one.end));
      }
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Waiting> waiting_;
  bool is_over_ = false;
  std::unique_ptr<Door<StepEnd>> door_;
  std::thread thread_;
};

TEST(EngineStep, MayEndOnAnotherThread) {
  auto step = std::make_shared<ThreadStep>();
  WorldOptions options;
  options.ranks_of_node = {1, 1, 1};
  options.adjust = [step](Operation& one) { one.owner_step = step; };
  EngineWorld world(options, 7);
  step->come_back_to(world.loop());
  for (uint64_t at = 0; at < 4; ++at)
    world.add({Collective::AllReduce, DataType::Float32, Reduction::Average, 3000, 0, 1, at});
  ASSERT_TRUE(world.run());
  world.expect_all_ended();
  step->stay_away();
}

// --- contributions ---

// Inputs that nobody may read where they lie, as on a device.
class RemoteInputs final : public Contribution {
 public:
  explicit RemoteInputs(const Operation& operation) : operation_(operation), inputs_(operation_) {
    operation_.memory.reset();  // the operation has it
  }

  void reduce(const Extent& extent, const uint8_t* wire, uint8_t* out, Store store) override {
    inputs_.reduce(extent, wire, out, store);
  }
  void copy(const Extent& extent, uint8_t* out) override { inputs_.copy(extent, out); }
  const uint8_t* find(const Extent&) const override { return nullptr; }

 private:
  Operation operation_;
  LocalInputs inputs_;
};

TEST_P(EngineSeams, InputsMayLieWhereverTheirContributionReadsThem) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    WorldOptions options = options_of(seed);
    options.adjust = [](Operation& one) {
      one.contribution = std::make_shared<RemoteInputs>(one);
      one.inputs.clear();
    };
    EngineWorld world(options, seed);
    add_all(world, Reduction::Sum);
    ASSERT_TRUE(world.run()) << seed;
    world.expect_all_ended();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace braid::test
