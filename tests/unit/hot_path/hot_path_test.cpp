// SPDX-License-Identifier: Apache-2.0
// What a chunk costs, besides its bytes: nothing that grows with the number of chunks.
#include <array>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>

#include "allocations.h"
#include "engine/engine.h"
#include "engine/fixed_owners.h"
#include "net/fair_queue.h"
#include "operation/codec_hop.h"
#include "transport_testing.h"
#include "update/optimizer_step.h"

namespace braid::testing {
namespace {

constexpr uint64_t kJob = 7;
constexpr uint32_t kChunkBytes = 16 << 10;
constexpr uint64_t kUnitBytes = 64 << 20;  // every operation is one unit
constexpr uint64_t kFew = 4;               // chunks of an operation
constexpr uint64_t kMany = 512;
constexpr uint64_t kElementsMax = kMany * kChunkBytes / sizeof(float);

struct Trainer {
  std::vector<float> input;
  std::vector<float> result;
  std::unique_ptr<Engine> engine;
  bool is_retired = false;
};

class HotPathTest : public ::testing::Test {
 protected:
  HotPathTest() {
    EXPECT_TRUE(nodes_.open(*nodes_.a, *nodes_.b).is_ok());
    EXPECT_TRUE(nodes_.open(*nodes_.b, *nodes_.a).is_ok());
    prepare(a_, *nodes_.a);
    prepare(b_, *nodes_.b);
  }

  ~HotPathTest() override {
    for (FakeNode* node : {nodes_.a.get(), nodes_.b.get()}) node->sink.forward_to = nullptr;
  }

  void prepare(Trainer& trainer, FakeNode& node) {
    EngineOptions options;
    options.unit_bytes = kUnitBytes;
    options.chunk_bytes = kChunkBytes;
    trainer.engine =
        Engine::create(*node.io_loop, options,
                       {[](const OperationKey&) {},
                        [&trainer](const OperationKey&) { trainer.is_retired = true; }, [] {}});
    trainer.engine->set_links(node.transport().links(0));
    trainer.engine->begin_job(kJob, {});
    node.sink.forward_to = trainer.engine.get();
  }

  static std::shared_ptr<Ring> ring_of(uint32_t self) {
    auto ring = std::make_shared<Ring>();
    ring->nodes = 2;
    ring->self = self;
    ring->members = {1, 2};
    ring->world_size = 2;
    ring->ranks_of_node = {1, 1};
    ring->block_of_rank = {0, 1};
    ring->routes = basic_routes(2, self);
    ring->halving = std::make_shared<Route>(halving_route(2, self));
    return ring;
  }

  void start(Trainer& trainer, uint32_t self, uint64_t count) {
    trainer.is_retired = false;
    Operation operation;
    operation.key = {kJob, 1, step_};
    operation.count = count;
    operation.ring = rings_[self];
    operation.inputs = {reinterpret_cast<const uint8_t*>(trainer.input.data())};
    operation.result = reinterpret_cast<uint8_t*>(trainer.result.data());
    if (adjust_) adjust_(operation);
    trainer.engine->start(std::move(operation));
    ++started_;
  }

  void expect_chunks_allocate_nothing() {
    for (int round = 0; round < 3; ++round) allocations_of(kMany);  // queues grow to what they need
    const uint64_t few = allocations_of(kFew);
    // On a busy machine a queue may still become longer than ever before, and grows. That is
    // seldom: what each chunk allocates comes as often as there are chunks.
    constexpr uint64_t kSeldom = (kMany - kFew) / 8;
    EXPECT_LE(allocations_of(kMany), few + kSeldom) << kMany << " chunks, against " << kFew;
    EXPECT_GT(few, 0u) << "nothing is counted";
  }

  // One all-reduce of `chunks` chunks to and from each node; returns how often it allocated.
  uint64_t allocations_of(uint64_t chunks) {
    const uint64_t count = chunks * kChunkBytes / sizeof(float);
    for (Trainer* trainer : {&a_, &b_}) {
      trainer->input.resize(count);
      std::iota(trainer->input.begin(), trainer->input.end(), static_cast<float>(step_));
      trainer->result.assign(count, 0);
    }
    ++step_;
    // By the loops themselves, as the daemon's doors do it; nobody sends before both are ready.
    const uint64_t before = allocations();
    nodes_.a->io_loop->defer([this, count] { start(a_, 0, count); });
    nodes_.b->io_loop->defer([this, count] { start(b_, 1, count); });
    EXPECT_TRUE(nodes_.run_until([this] { return started_ == 2; }));
    started_ = 0;
    nodes_.a->io_loop->defer([this] { a_.engine->go({kJob, 1, step_}); });
    nodes_.b->io_loop->defer([this] { b_.engine->go({kJob, 1, step_}); });
    EXPECT_TRUE(nodes_.run_until([this] { return a_.is_retired && b_.is_retired; }));
    const uint64_t used = allocations() - before;
    EXPECT_EQ(a_.result, b_.result);
    for (uint64_t at = 0; at < count; at += 997) {
      const float sum = a_.input[at] + b_.input[at];
      EXPECT_EQ(a_.result[at], expected_ ? expected_(sum) : sum) << at;
    }
    return used;
  }

  TwoNodes nodes_;
  Trainer a_;
  Trainer b_;
  const std::array<std::shared_ptr<const Ring>, 2> rings_{ring_of(0), ring_of(1)};
  uint64_t step_ = 0;
  int started_ = 0;
  std::function<void(Operation&)> adjust_;
  std::function<float(float sum)> expected_;  // of an element's result; none: the sum
};

TEST_F(HotPathTest, ChunksAllocateNothing) { expect_chunks_allocate_nothing(); }

TEST_F(HotPathTest, ChunksByHalvingAllocateNothing) {
  adjust_ = [](Operation& operation) { operation.route = operation.ring->halving.get(); };
  expect_chunks_allocate_nothing();
}

TEST_F(HotPathTest, ChunksWithACodecAndErrorMemoryAllocateNothing) {
  // All inputs but the first are above the threshold, and each node's counts once.
  const CodedSum coded = *make_coded_sum(*parse_codec_spec("2bit:threshold=0.5"), 2, 1);
  std::array<std::shared_ptr<ErrorMemory>, 2> memory;
  for (auto& one : memory) one = *ErrorMemory::create(kElementsMax, coded.memory_floats);
  adjust_ = [&](Operation& operation) {
    ElementRanges elements;
    elements.append(0, operation.count);
    operation.hop = std::make_shared<CodecHop>(coded, memory[operation.ring->self],
                                               std::move(elements), 0, operation.key.step);
  };
  expected_ = [](float sum) { return sum > 0 ? 1.0F : 0.0F; };
  expect_chunks_allocate_nothing();
}

TEST_F(HotPathTest, ChunksOfAShardedUpdateAllocateNothing) {
  // Two tensors that do not follow one another in the set.
  constexpr uint64_t kStripe = kElementsMax / 2;
  std::array<std::shared_ptr<ShardState>, 2> shards;
  for (uint32_t place = 0; place < 2; ++place)
    shards[place] = *ShardState::create({4 * kStripe, kStripe, 2, place}, 1, DataType::Float32);
  adjust_ = [&](Operation& operation) {
    const uint64_t half = operation.count / 2;
    auto owners = std::make_shared<FixedOwners>();
    owners->stripe_elements = kStripe;
    for (const uint64_t first : {uint64_t{0}, 3 * kStripe}) owners->append(first, half);
    operation.fixed_owners = std::move(owners);
    UpdateStep load;
    load.action = UpdateAction::Load;
    operation.owner_step = std::make_shared<OptimizerStep>(
        shards[operation.ring->self],
        std::vector<OptimizerStep::Member>{{half, load}, {half, load}}, 1);
  };
  expect_chunks_allocate_nothing();
}

TEST(FairQueueOnTheHotPath, ChunksOfManyUrgenciesAllocateNothing) {
  FairQueue queue;
  // Operations come and go: so many at once, and never the same urgencies again.
  uint64_t urgency = 0;
  const auto allocations_of = [&](int rounds) {
    const uint64_t before = allocations();
    for (int round = 0; round < rounds; ++round) {
      ++urgency;
      for (uint64_t chunk = 0; chunk < 500; ++chunk) {
        QueuedChunk made;
        made.chunk.header.job_key = 1 + chunk % 2;
        made.chunk.header.bytes = kChunkBytes;
        made.chunk.urgency = urgency * 10 + chunk * 7 % 10;
        queue.push_back(std::move(made));
      }
      queue.push_front(queue.pop_front());
      for (int chunk = 0; chunk < (round % 2 == 0 ? 400 : 600); ++chunk) queue.pop_front();
    }
    return allocations() - before;
  };
  EXPECT_GT(allocations_of(50), 0u) << "nothing is counted";
  EXPECT_EQ(allocations_of(500), 0u);
}

}  // namespace
}  // namespace braid::testing
