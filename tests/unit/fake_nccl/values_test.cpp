// SPDX-License-Identifier: Apache-2.0
// Every collective, with every type and reduction, against sums that are computed here.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ranks.h"

namespace fake_nccl_testing {
namespace {

constexpr int kRanks = 4;
constexpr std::size_t kCount = 1'001, kLargeCount = 70'001;  // the second takes several messages
constexpr NcclReduction kReductions[] = {NcclReduction::Sum, NcclReduction::Product,
                                         NcclReduction::Max, NcclReduction::Min,
                                         NcclReduction::Average};

// A type's name, and how a number is written in it. All numbers are exact in all types, but for
// averages of integers, which are cut off.
struct Float32 {
  using Stored = float;
  static constexpr NcclType kType = NcclType::Float32;
  static Stored of(double number) { return static_cast<float>(number); }
};
struct Float64 {
  using Stored = double;
  static constexpr NcclType kType = NcclType::Float64;
  static Stored of(double number) { return number; }
};
struct Float16 {
  using Stored = _Float16;
  static constexpr NcclType kType = NcclType::Float16;
  static Stored of(double number) { return static_cast<_Float16>(number); }
};
struct Bfloat16 {
  using Stored = std::uint16_t;
  static constexpr NcclType kType = NcclType::Bfloat16;
  static Stored of(double number) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(number)) >>
                                      16);
  }
};
struct Int32 {
  using Stored = std::int32_t;
  static constexpr NcclType kType = NcclType::Int32;
  static Stored of(double number) { return static_cast<std::int32_t>(number); }
};
struct Int64 {
  using Stored = std::int64_t;
  static constexpr NcclType kType = NcclType::Int64;
  static Stored of(double number) { return static_cast<std::int64_t>(number); }
};
struct Uint8 {
  using Stored = std::uint8_t;
  static constexpr NcclType kType = NcclType::Uint8;
  static Stored of(double number) { return static_cast<std::uint8_t>(number); }
};

int number_of(int rank, std::size_t at) {
  return 1 + static_cast<int>((at + static_cast<std::size_t>(rank) * (at % 5 + 1)) % 3);
}

double reduced(NcclReduction reduction, std::size_t at) {
  double result = number_of(0, at);
  for (int rank = 1; rank < kRanks; ++rank) {
    const double number = number_of(rank, at);
    switch (reduction) {
      case NcclReduction::Sum:
      case NcclReduction::Average:
        result += number;
        break;
      case NcclReduction::Product:
        result *= number;
        break;
      case NcclReduction::Max:
        result = std::max(result, number);
        break;
      case NcclReduction::Min:
        result = std::min(result, number);
        break;
    }
  }
  return reduction == NcclReduction::Average ? result / kRanks : result;
}

/// The collectives of one rank with one type and count, on memory for all ranks' blocks.
template <typename Type>
class Collectives {
 public:
  using Stored = typename Type::Stored;
  using Values = std::vector<Stored>;

  Collectives(Rank& rank, std::size_t count, bool is_in_place)
      : rank_(rank),
        count_(count),
        is_in_place_(is_in_place),
        memory_(2 * kRanks * count * sizeof(Stored)) {}

  void all_reduce(NcclReduction reduction) {
    put(0, inputs(rank_.rank, 0, count_));
    EXPECT_NCCL(ncclAllReduce(memory_.at(), result(0), count_, Type::kType, reduction, rank_.comm,
                              rank_.stream));
    expect(result_block(0), sums(reduction, 0));
  }

  void reduce_scatter(NcclReduction reduction) {
    put(0, inputs(rank_.rank, 0, count_ * kRanks));
    const auto own = static_cast<std::size_t>(rank_.rank);
    void* const to = is_in_place_ ? at_block(own) : at_block(kRanks);
    EXPECT_NCCL(ncclReduceScatter(memory_.at(), to, count_, Type::kType, reduction, rank_.comm,
                                  rank_.stream));
    expect(is_in_place_ ? own : kRanks, sums(reduction, own * count_));
  }

  void reduce(NcclReduction reduction, int root) {
    put(0, inputs(rank_.rank, 0, count_));
    const bool is_root = rank_.rank == root;
    EXPECT_NCCL(ncclReduce(memory_.at(), is_root ? result(0) : nullptr, count_, Type::kType,
                           reduction, root, rank_.comm, rank_.stream));
    expect(is_root ? result_block(0) : 0,
           is_root ? sums(reduction, 0) : inputs(rank_.rank, 0, count_));
  }

  void all_gather() {
    const auto own = static_cast<std::size_t>(rank_.rank);
    const std::size_t from = is_in_place_ ? own : kRanks;
    put(from, inputs(rank_.rank, 0, count_));
    EXPECT_NCCL(
        ncclAllGather(at_block(from), memory_.at(), count_, Type::kType, rank_.comm, rank_.stream));
    for (int other = 0; other < kRanks; ++other) {
      expect(static_cast<std::size_t>(other), inputs(other, 0, count_));
    }
  }

  void broadcast(int root) {
    put(0, inputs(rank_.rank, 0, count_));
    const bool is_root = rank_.rank == root;
    EXPECT_NCCL(ncclBroadcast(is_root ? memory_.at() : nullptr, result(0), count_, Type::kType,
                              root, rank_.comm, rank_.stream));
    expect(result_block(0), inputs(root, 0, count_));
  }

 private:
  Values inputs(int rank, std::size_t first, std::size_t count) const {
    Values values;
    for (std::size_t at = first; at < first + count; ++at) {
      values.push_back(Type::of(number_of(rank, at)));
    }
    return values;
  }
  Values sums(NcclReduction reduction, std::size_t first) const {
    Values values;
    for (std::size_t at = first; at < first + count_; ++at) {
      values.push_back(Type::of(reduced(reduction, at)));
    }
    return values;
  }
  std::size_t byte_of(std::size_t block) const { return block * count_ * sizeof(Stored); }
  void* at_block(std::size_t block) const { return memory_.at(byte_of(block)); }
  std::size_t result_block(std::size_t input) const { return is_in_place_ ? input : kRanks; }
  void* result(std::size_t input) const { return at_block(result_block(input)); }
  void put(std::size_t block, const Values& values) { memory_.store(values, byte_of(block)); }
  void expect(std::size_t block, const Values& expected) {
    rank_.synchronize();
    EXPECT_TRUE(memory_.template load<Stored>(count_, byte_of(block)) == expected)
        << "rank " << rank_.rank << ", " << count_ << " values"
        << (is_in_place_ ? ", in place" : "");
  }

  Rank& rank_;
  const std::size_t count_;
  const bool is_in_place_;
  DeviceBytes memory_;
};

template <typename Type>
void run_collectives(Rank& rank, std::size_t largest) {
  rank.init();
  for (const std::size_t count : {std::size_t{1}, largest}) {
    for (const bool is_in_place : {false, true}) {
      Collectives<Type> collectives(rank, count, is_in_place);
      for (const NcclReduction reduction : kReductions) {
        collectives.all_reduce(reduction);
        collectives.reduce_scatter(reduction);
        collectives.reduce(reduction, 1);
      }
      collectives.all_gather();
      collectives.broadcast(2);
    }
  }
  EXPECT_EQ(async_error(rank.comm), NcclResult::Success);
  EXPECT_NCCL(ncclCommDestroy(rank.comm));
}

template <typename Type>
struct FakeNcclValues : testing::Test {};
using AllTypes = testing::Types<Float32, Float64, Float16, Bfloat16, Int32, Int64, Uint8>;
TYPED_TEST_SUITE(FakeNcclValues, AllTypes);

TYPED_TEST(FakeNcclValues, AreReducedAndCarried) {
  run_threads(kRanks, {}, [](Rank& rank) { run_collectives<TypeParam>(rank, kCount); });
}

TEST(FakeNccl, CarriesBetweenProcesses) {
  run_processes(kRanks, {}, [](Rank& rank) { run_collectives<Float32>(rank, kLargeCount); });
}

TEST(FakeNccl, AddsSixteenBitFloatsAsFloat32) {
  run_threads(3, {}, [](Rank& rank) {
    rank.init();
    // In bfloat16 256 + 1 is 256. In float16 2048 + 1 is 2048.
    DeviceBytes brain(2), half(2);
    brain.store<std::uint16_t>({Bfloat16::of(rank.rank == 0 ? 256 : 1)});
    half.store<_Float16>({Float16::of(rank.rank == 0 ? 2048 : 1)});
    EXPECT_NCCL(ncclAllReduce(brain.at(), brain.at(), 1, NcclType::Bfloat16, NcclReduction::Sum,
                              rank.comm, rank.stream));
    EXPECT_NCCL(ncclAllReduce(half.at(), half.at(), 1, NcclType::Float16, NcclReduction::Sum,
                              rank.comm, rank.stream));
    rank.synchronize();
    EXPECT_EQ(brain.load<std::uint16_t>(1).front(), Bfloat16::of(258));
    EXPECT_TRUE(half.load<_Float16>(1).front() == Float16::of(2050));
  });
}

}  // namespace
}  // namespace fake_nccl_testing
