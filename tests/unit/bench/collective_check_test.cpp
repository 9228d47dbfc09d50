// SPDX-License-Identifier: Apache-2.0
#include "bench/collective_check.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace braid::bench {
namespace {

constexpr uint32_t kWorldRanks = 4;
constexpr uint32_t kRoot = 2;
constexpr uint64_t kIteration = 7;
constexpr uint64_t kElements = Pattern::kPeriod + 60;

using Values = std::vector<float>;

float reduced_by(Reduction reduction, float total, float value) {
  switch (reduction) {
    case Reduction::Sum:
    case Reduction::Average:
      return total + value;
    case Reduction::Min:
      return std::min(total, value);
    case Reduction::Max:
      return std::max(total, value);
    case Reduction::Product:
      return total * value;
  }
  return 0;
}

// What the collectives' definitions say (braid.h), from all ranks' inputs.
class World {
 public:
  World(const CollectiveKind& kind, Reduction reduction) {
    setup_.kind = kind;
    setup_.reduction = reduction;
    setup_.root = kRoot;
    setup_.world_size = kWorldRanks;
    for (uint32_t rank = 0; rank < kWorldRanks; ++rank) {
      inputs_.emplace_back(setup_of(rank).input_count(kElements));
      if (inputs_.back().empty()) continue;
      pattern_of(rank).fill(kIteration, inputs_.back().data(), inputs_.back().size());
    }
  }

  CollectiveSetup setup_of(uint32_t rank) const {
    CollectiveSetup setup = setup_;
    setup.rank = rank;
    return setup;
  }

  Values result_of(uint32_t rank) const {
    switch (setup_.kind.collective) {
      case Collective::AllReduce:
        return reduced();
      case Collective::ReduceScatter:
        return part(reduced(), rank);
      case Collective::Broadcast:
        return inputs_[kRoot];
      case Collective::Scatter:
        return part(inputs_[kRoot], rank);
      case Collective::Gather:
        return rank == kRoot ? joined(inputs_) : Values{};
      case Collective::AllGather:
        return joined(inputs_);
      case Collective::AllToAll: {
        std::vector<Values> parts;
        for (const Values& input : inputs_) parts.push_back(part(input, rank));
        return joined(parts);
      }
      case Collective::Barrier:
        break;
    }
    return {};
  }

  // As a rank counts them in its result.
  uint64_t wrong(uint32_t rank, const Values& result) const {
    uint64_t wrong = 0;
    uint64_t seen = 0;
    for (const ResultBlock& block : blocks_of(setup_of(rank), kElements)) {
      EXPECT_EQ(block.at, seen);
      seen += block.count;
      const auto mismatch = verify(pattern_of(rank), kIteration, block, &result[block.at]);
      if (mismatch) wrong += mismatch->wrong;
    }
    EXPECT_EQ(seen, result.size()) << "no element goes unseen";
    return wrong;
  }

 private:
  Pattern pattern_of(uint32_t rank) const {
    return Pattern::create(DataType::Float32, rank, kWorldRanks, setup_.reduction_if_any()).value();
  }
  static Values part(const Values& whole, uint32_t rank) {
    const auto begin = whole.begin() + static_cast<ptrdiff_t>(rank * kElements);
    return {begin, begin + static_cast<ptrdiff_t>(kElements)};
  }
  static Values joined(const std::vector<Values>& parts) {
    Values all;
    for (const Values& one : parts) all.insert(all.end(), one.begin(), one.end());
    return all;
  }
  Values reduced() const {
    Values total = inputs_[0];
    for (uint32_t rank = 1; rank < kWorldRanks; ++rank) {
      for (size_t i = 0; i < total.size(); ++i)
        total[i] = reduced_by(setup_.reduction, total[i], inputs_[rank][i]);
    }
    if (setup_.reduction == Reduction::Average) {
      for (float& value : total) value /= kWorldRanks;
    }
    return total;
  }

  CollectiveSetup setup_;
  std::vector<Values> inputs_;
};

class CollectiveCheck : public testing::TestWithParam<CollectiveKind> {
 protected:
  static void for_each_reduction(auto call) {
    const size_t reductions = GetParam().is_reducing ? kReductionCount : 1;
    for (uint8_t i = 0; i < reductions; ++i) call(World(GetParam(), static_cast<Reduction>(i)));
  }
};

TEST_P(CollectiveCheck, ARightResultIsRight) {
  for_each_reduction([](const World& world) {
    for (uint32_t rank = 0; rank < kWorldRanks; ++rank)
      EXPECT_EQ(world.wrong(rank, world.result_of(rank)), 0u) << rank;
  });
}

TEST_P(CollectiveCheck, EveryElementThatIsSpoiledCounts) {
  for_each_reduction([](const World& world) {
    for (uint32_t rank = 0; rank < kWorldRanks; ++rank) {
      const Values right = world.result_of(rank);
      if (right.empty()) continue;
      for (const size_t index : {size_t{0}, right.size() / 2, right.size() - 1}) {
        Values spoiled = right;
        spoiled[index] += 1;
        EXPECT_EQ(world.wrong(rank, spoiled), 1u) << rank << ' ' << index;
      }
      Values spoiled = right;
      for (float& value : spoiled) value = -value;
      EXPECT_EQ(world.wrong(rank, spoiled), spoiled.size());
    }
  });
}

TEST_P(CollectiveCheck, PartsInAnotherOrderAreWrong) {
  for_each_reduction([](const World& world) {
    for (uint32_t rank = 0; rank < kWorldRanks; ++rank) {
      Values moved = world.result_of(rank);
      if (moved.empty()) continue;
      std::rotate(moved.begin(), moved.begin() + (moved.size() > kElements ? kElements : 1),
                  moved.end());
      EXPECT_GT(world.wrong(rank, moved), kElements / 10) << rank;
    }
  });
}

TEST_P(CollectiveCheck, WhatAnotherRankGetsIsWrongWhereTheyDiffer) {
  const World world(GetParam(), Reduction::Sum);
  const Values other = world.result_of(1);
  const Values own = world.result_of(0);
  if (own.empty()) return;  // it is the root's
  EXPECT_EQ(world.wrong(0, other) > 0, own != other);
}

INSTANTIATE_TEST_SUITE_P(All, CollectiveCheck,
                         testing::ValuesIn(collective_kinds().begin(), collective_kinds().end()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace braid::bench
