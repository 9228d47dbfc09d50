// SPDX-License-Identifier: Apache-2.0
#include "bench/collective_kinds.h"

#include <array>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace braid::bench {
namespace {

CollectiveSetup setup_of(const std::string& name, uint32_t world_size) {
  CollectiveSetup setup;
  setup.world_size = world_size;
  for (const CollectiveKind& kind : collective_kinds()) {
    if (kind.name == name) setup.kind = kind;
  }
  EXPECT_EQ(setup.kind.name, name);
  return setup;
}

TEST(CollectiveKinds, AreAllOfBraidButTheBarrier) {
  EXPECT_EQ(collective_kinds().size(), kCollectiveCount - 1u);
}

// nccl-tests, doc/PERFORMANCE.md, "Summary".
TEST(BusFactor, IsNcclTests) {
  const std::map<std::string, double> of_four = {
      {"all_reduce", 1.5},  {"reduce_scatter", 0.75}, {"all_gather", 0.75}, {"broadcast", 1},
      {"all_to_all", 0.75}, {"gather", 0.75},         {"scatter", 0.75}};
  for (const CollectiveKind& kind : collective_kinds())
    EXPECT_DOUBLE_EQ(bus_factor(kind, 4), of_four.at(kind.name)) << kind.name;
}

TEST(BusFactor, OneRankSendsNothing) {
  EXPECT_EQ(bus_factor(setup_of("all_reduce", 1).kind, 1), 0);
  EXPECT_EQ(bus_factor(setup_of("all_gather", 1).kind, 1), 0);
}

TEST(CollectiveSetup, AWholeSizeIsEachRanks) {
  const auto setup = setup_of("all_reduce", 3);
  EXPECT_EQ(setup.count_of(8), 2u);
  EXPECT_EQ(setup.count_of(11), 2u);
  EXPECT_EQ(setup.count_of(3), 0u);
  EXPECT_EQ(setup.bytes_of(2), 8u);
  EXPECT_EQ(setup.bytes_least(), 4u);
}

TEST(CollectiveSetup, PartsAreMultiplesOf16Bytes) {
  const auto setup = setup_of("all_gather", 3);
  EXPECT_EQ(setup.count_of(1 << 20), 87'380u);
  EXPECT_EQ(setup.bytes_of(87'380), 1'048'560u);
  EXPECT_EQ(setup.count_of(47), 0u);
  EXPECT_EQ(setup.bytes_least(), 48u);
}

TEST(CollectiveSetup, WhatEachRankGivesAndGets) {
  struct Case {
    std::string name;
    std::array<uint64_t, 2> root, other;  // gives, gets; times count
  };
  for (const Case& one : {Case{"all_reduce", {1, 1}, {1, 1}},
                          {"broadcast", {1, 1}, {0, 1}},
                          {"all_gather", {1, 3}, {1, 3}},
                          {"reduce_scatter", {3, 1}, {3, 1}},
                          {"gather", {1, 3}, {1, 0}},
                          {"scatter", {3, 1}, {0, 1}},
                          {"all_to_all", {3, 3}, {3, 3}}}) {
    auto setup = setup_of(one.name, 3);
    setup.root = 2;
    for (const uint32_t rank : {0u, 2u}) {
      setup.rank = rank;
      const auto& expected = rank == 2 ? one.root : one.other;
      EXPECT_EQ(setup.input_count(5), 5 * expected[0]) << one.name << rank;
      EXPECT_EQ(setup.result_count(5), 5 * expected[1]) << one.name << rank;
    }
  }
}

TEST(CollectiveSetup, ARootThatIsNotThereIsNamed) {
  auto setup = setup_of("gather", 3);
  setup.root = 3;
  EXPECT_EQ(setup.check_root().message(),
            "--root: there is no rank 3; right is 0 to 2, for WORLD_SIZE is 3");
  setup.root = 2;
  EXPECT_TRUE(setup.check_root().is_ok());
}

TEST(CollectiveSetup, AnExactSizeMustDivide) {
  EXPECT_EQ(setup_of("scatter", 3).check_exact(std::array{uint64_t{12}, uint64_t{1000}}).message(),
            "--sizes: 1000 is no multiple of the 12 bytes of one float32 for each of 3 ranks; use "
            "1008");
  EXPECT_EQ(setup_of("all_reduce", 3).check_exact(std::array{uint64_t{10}}).message(),
            "--sizes: 10 is no multiple of the 4 bytes of one float32; use 12");
  EXPECT_TRUE(setup_of("all_reduce", 3).check_exact(std::array{uint64_t{1000}}).is_ok());
}

}  // namespace
}  // namespace braid::bench
