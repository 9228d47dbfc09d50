// SPDX-License-Identifier: Apache-2.0
// What may differ from operation to operation: who gives the inputs, what travels, and what the
// owner makes of the sum.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "engine/contribution.h"
#include "engine/hop.h"
#include "engine/local_inputs.h"
#include "engine/owner_step.h"
#include "engine_shapes.h"
#include "loop/door.h"
#include "reference.h"

namespace braid::test {
namespace {

const std::vector<uint32_t> kFourNodes = {2, 1, 1, 1};

class EngineSeams : public testing::TestWithParam<Shape> {
 protected:
  static WorldOptions options_of(uint64_t seed) {
    WorldOptions options = test::options_of(GetParam(), seed);
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
                         testing::Values(Shape{"ring", kFourNodes, nullptr},
                                         Shape{"direct", kFourNodes, nullptr, true},
                                         Shape{"halving", kFourNodes, halving_route},
                                         Shape{"two_hops", kFourNodes, two_hops_route}),
                         [](const auto& param) { return param.param.name; });

// --- hops ---

std::span<const uint8_t> bytes_of(std::span<const float> values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()};
}

// Loses nothing; what it sends is of another length than what it was given, and not always of the
// same. It tells parts from sums. Codecs that lose something: engine_codecs_test.
class PaddingHop final : public Hop {
 public:
  explicit PaddingHop(bool encodes_own_part) : encodes_own_part_(encodes_own_part) {}
  bool has_exact_size() const override { return false; }
  bool encodes_own_part() const override { return encodes_own_part_; }
  bool decode_and_add(Encoding encoding, std::span<const uint8_t> encoded,
                      std::span<float> sum) const override {
    std::vector<float> values(sum.size());
    if (!decode(encoding, encoded, values)) return false;
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
    return true;
  }
  uint64_t encoded_bytes_max(Encoding, uint64_t elements) const override {
    return elements * sizeof(float) + kHeadBytes + kPaddingMax;
  }
  uint32_t encode(Encoding encoding, const Extent&, std::span<const float> values,
                  std::span<uint8_t> encoded) override {
    const auto plain = bytes_of(values);
    const uint8_t padding = plain[0] % (kPaddingMax + 1);
    encoded[0] = padding;
    encoded[1] = static_cast<uint8_t>(encoding);
    for (size_t i = 0; i < plain.size(); ++i) encoded[kHeadBytes + i] = plain[i] ^ 0x5A;
    std::fill_n(encoded.data() + kHeadBytes + plain.size(), padding, uint8_t{0xA5});
    return static_cast<uint32_t>(kHeadBytes + plain.size() + padding);
  }
  bool decode(Encoding encoding, std::span<const uint8_t> encoded,
              std::span<float> out) const override {
    if (encoded.size() < kHeadBytes ||
        encoded.size() != kHeadBytes + out.size_bytes() + encoded[0] ||
        encoded[1] != static_cast<uint8_t>(encoding))
      return false;
    auto* const plain = reinterpret_cast<uint8_t*>(out.data());
    for (size_t i = 0; i < out.size_bytes(); ++i) plain[i] = encoded[kHeadBytes + i] ^ 0x5A;
    return true;
  }

 private:
  static constexpr uint64_t kHeadBytes = 2;
  static constexpr uint8_t kPaddingMax = 6;
  const bool encodes_own_part_;
};

TEST(EngineHop, WhatItCannotDecodeIsNotTaken) {
  WorldOptions options;
  options.adjust = [hop = std::make_shared<PaddingHop>(false)](Operation& one) { one.hop = hop; };
  EngineWorld world(options, 1);
  world.add({Collective::AllReduce, DataType::Float32, Reduction::Sum, 32});
  const Operation operation = world.operation_of(0, 0);
  Engine& engine = world.engine(0, 0);
  engine.start(operation);
  engine.go(operation.key);
  proto::ChunkHeader header = chunk_of(operation.key, proto::Phase::ReduceScatter, 0, 0);
  header.encoding = static_cast<uint8_t>(Encoding::Part);
  const std::vector<uint8_t> others(operation.result + 64, operation.result + 128);
  // A wrong length for its padding, nothing, and more than any chunk can have.
  std::vector<uint8_t> payload(66);
  payload[1] = header.encoding;
  uint64_t malformed = 0;
  for (const size_t bytes : {65, 0, 200}) {
    payload.resize(bytes);
    header.bytes = static_cast<uint32_t>(bytes);
    engine.on_chunk(EngineWorld::id_of(1), header, payload);
    EXPECT_EQ(engine.counters().chunks_malformed, ++malformed) << bytes;
  }
  // Another encoding than the header says, and elements.
  payload.assign(66, 0);
  payload[1] = static_cast<uint8_t>(Encoding::Sum);
  header.bytes = 66;
  engine.on_chunk(EngineWorld::id_of(1), header, payload);
  EXPECT_EQ(engine.counters().chunks_malformed, ++malformed);
  payload[1] = header.encoding = static_cast<uint8_t>(Encoding::Plain);
  engine.on_chunk(EngineWorld::id_of(1), header, payload);
  EXPECT_EQ(engine.counters().chunks_malformed, ++malformed);
  EXPECT_EQ(std::vector<uint8_t>(operation.result + 64, operation.result + 128), others);
  payload[1] = header.encoding = static_cast<uint8_t>(Encoding::Part);
  engine.on_chunk(EngineWorld::id_of(1), header, payload);
  EXPECT_EQ(engine.counters().chunks_malformed, malformed);
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
  for (uint64_t seed = 1; seed <= worlds(8); ++seed) {
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
  for (uint64_t seed = 1; seed <= worlds(6); ++seed) {
    auto step = std::make_shared<LateStep>(seed);
    WorldOptions options = with_step(options_of(seed), step);
    options.adjust = [step, hop = std::make_shared<PaddingHop>(seed % 2 == 0)](Operation& one) {
      one.owner_step = step;  // which divides
      one.hop = hop;
      one.reduction = Reduction::Sum;
    };
    EngineWorld world(options, seed);
    world.add({Collective::AllReduce, DataType::Float32, Reduction::Average, 5003});
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
  for (uint64_t seed = 1; seed <= worlds(6); ++seed) {
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
