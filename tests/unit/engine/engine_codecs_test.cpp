// SPDX-License-Identifier: Apache-2.0
// Codecs on the engine: by every route, with lost flows and repeated chunks, all nodes get the same
// bits, and what a codec loses is kept.
#include <map>

#include <gtest/gtest.h>

#include "engine_shapes.h"
#include "operation/codec_hop.h"

namespace braid::test {
namespace {

constexpr uint64_t kElements = 3001;
constexpr uint32_t kNodes = 4;
constexpr uint64_t kSteps = 4;

const std::vector<uint32_t> kCodecRanks = {2, 1, 1, 1};

class EngineCodecs : public testing::TestWithParam<std::tuple<Shape, const char*>> {
 protected:
  struct Steps {
    std::vector<std::vector<uint8_t>> results;  // by step
    std::vector<double> came_out;               // sums over the steps, by element
    std::vector<double> went_in;
    std::vector<double> last_went_in;  // in the last step
  };

  const CodecSpec spec_ = *parse_codec_spec(std::get<1>(GetParam()));

  // The memory of each node, for both halves of the elements apart: so it lies in two pieces.
  std::map<uint32_t, std::shared_ptr<ErrorMemory>> memory_;

  std::shared_ptr<Hop> hop_of(const Operation& one) {
    const uint32_t divisor = one.reduction == Reduction::Average ? one.ring->world_size : 1;
    const CodedSum coded = make_coded_sum(spec_, kNodes, divisor)->of_step(one.key.step);
    std::shared_ptr<ErrorMemory> memory;
    if (coded.memory_floats != 0) {
      auto& kept = memory_[one.ring->self];
      if (kept == nullptr) kept = *ErrorMemory::create(kElements, coded.memory_floats);
      memory = kept;
    }
    ElementRanges elements;
    elements.append(kElements / 2, kElements - kElements / 2);
    elements.append(0, kElements / 2);
    return std::make_shared<CodecHop>(coded, memory, elements, one.ring->self, one.key.step);
  }

  Steps run(uint64_t seed, Reduction reduction) {
    memory_.clear();
    Steps steps;
    steps.came_out.resize(kElements);
    steps.went_in.resize(kElements);
    for (uint64_t step = 0; step < kSteps; ++step) {
      WorldOptions options = options_of(std::get<0>(GetParam()), seed);
      options.io_loops = 1 + static_cast<uint32_t>(seed % 2);
      options.hostility = {0.1, 0.2, seed % 3 == 0};
      options.adjust = [&](Operation& one) { one.hop = hop_of(one); };
      EngineWorld world(options, 100 * seed + step);
      world.add({Collective::AllReduce, DataType::Float32, reduction, kElements, 0, 1, step});
      add_inputs(world, reduction, steps.went_in);
      steps.last_went_in.assign(kElements, 0);
      add_inputs(world, reduction, steps.last_went_in);
      EXPECT_TRUE(world.run());
      EXPECT_EQ(world.counters().chunks_malformed, 0U);
      steps.results.push_back(world.result(0, 0));
      for (uint32_t node = 1; node < kNodes; ++node)
        EXPECT_EQ(world.result(0, node), steps.results.back()) << node;
      for (uint64_t i = 0; i < kElements; ++i) {
        float value = 0;
        std::memcpy(&value, steps.results.back().data() + i * sizeof(value), sizeof(value));
        steps.came_out[i] += value;
      }
    }
    return steps;
  }

  static void add_inputs(const EngineWorld& world, Reduction reduction, std::vector<double>& sums) {
    const double share = reduction == Reduction::Average ? 1.0 / 5 : 1;
    for (uint32_t node = 0; node < kNodes; ++node) {
      for (const OperationInput& input : world.operation_of(0, node).inputs) {
        for (uint64_t i = 0; i < kElements; ++i) {
          float value = 0;
          std::memcpy(&value, input.find(i * sizeof(value), sizeof(value)), sizeof(value));
          sums[i] += share * value;
        }
      }
    }
  }

  // Error memory of all nodes, by element.
  std::vector<double> kept() {
    std::vector<double> sums(kElements);
    for (const auto& [node, memory] : memory_) {
      if (memory == nullptr) continue;
      const uint64_t second = kElements - kElements / 2;
      for (uint64_t i = 0; i < kElements; ++i) {
        const uint64_t place = i < second ? kElements / 2 + i : i - second;
        sums[i] += memory->elements(0, place, 1)[0];
      }
    }
    return sums;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Routes, EngineCodecs,
    testing::Combine(testing::Values(Shape{"ring", kCodecRanks, nullptr},
                                     Shape{"direct", kCodecRanks, nullptr, true},
                                     Shape{"halving", kCodecRanks, halving_route},
                                     Shape{"two_hops", kCodecRanks, two_hops_route},
                                     Shape{"racks", kCodecRanks, by_racks_of(2)}),
                     testing::Values("none", "bf16", "fp16", "int8", "int4:block=32", "fp8-e4m3",
                                     "ef-sign", "sign-vote", "1bit:block=64", "2bit:threshold=2",
                                     "topk:ratio=0.05", "dgc", "qsgd", "terngrad", "natural",
                                     "block-sparse:block=16", "2bit:threshold=2,full-every=2",
                                     "ef-sign:full-every=4")),
    [](const auto& param) {
      std::string name = std::get<0>(param.param).name + "_" + std::get<1>(param.param);
      for (char& one : name) one = std::isalnum(one) != 0 ? one : '_';
      return name;
    });

TEST_P(EngineCodecs, GiveTheSameBitsWhateverHappensOnTheWay) {
  for (const Reduction reduction : {Reduction::Sum, Reduction::Average}) {
    const Steps first = run(1, reduction);
    EXPECT_EQ(run(2, reduction).results, first.results);
    EXPECT_EQ(run(3, reduction).results, first.results);
    if (HasFailure()) return;
  }
}

// Seide et al., "1-Bit Stochastic Gradient Descent", Interspeech 2014: nothing is lost, only late.
TEST_P(EngineCodecs, KeepWhatHasNotComeOut) {
  const CodedSum coded = *make_coded_sum(spec_, kNodes, 1);
  if (coded.memory_floats != 1) return;  // of dgc, momentum goes out as well
  const Steps steps = run(4, Reduction::Average);
  const std::vector<double> left = kept();
  for (uint64_t i = 0; i < kElements; ++i)
    ASSERT_NEAR(steps.came_out[i] + left[i], steps.went_in[i], 1e-4) << i;
}

TEST_P(EngineCodecs, GiveTheSumInAStepInFull) {
  if (spec_.full_every == 0) return;
  ASSERT_EQ(kSteps % spec_.full_every, 0U);
  const Steps steps = run(6, Reduction::Sum);
  for (uint64_t i = 0; i < kElements; ++i) {
    float value = 0;
    std::memcpy(&value, steps.results.back().data() + i * sizeof(value), sizeof(value));
    ASSERT_NEAR(value, steps.last_went_in[i], 1e-4) << i;
  }
}

TEST_P(EngineCodecs, ThatLoseNothingGiveTheSum) {
  const CodedSum coded = *make_coded_sum(spec_, kNodes, 1);
  if (!coded.part->traits().is_lossless) return;
  const Steps steps = run(5, Reduction::Sum);
  for (uint64_t i = 0; i < kElements; ++i)
    ASSERT_NEAR(steps.came_out[i], steps.went_in[i], 1e-4) << i;
}

}  // namespace
}  // namespace braid::test
