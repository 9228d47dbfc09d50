// SPDX-License-Identifier: Apache-2.0
#include "base/hash_tree.h"

#include <gtest/gtest.h>

#include "base/hash.h"

namespace braid {
namespace {

TEST(HashTreeTest, FindsWhatWasAdded) {
  constexpr uint64_t kEntries = 100'000;  // several levels
  HashTree<uint64_t> tree;
  for (uint64_t i = 0; i < kEntries; ++i) tree.add(mix64(i), i);
  for (uint64_t i = 0; i < kEntries; ++i) {
    ASSERT_NE(tree.find(mix64(i)), nullptr) << i;
    EXPECT_EQ(*tree.find(mix64(i)), i);
  }
  for (uint64_t i = kEntries; i < 2 * kEntries; ++i) EXPECT_FALSE(tree.contains(mix64(i))) << i;
}

TEST(HashTreeTest, WhatIsThereStays) {
  HashTree<int> tree;
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < 1000; ++i) tree.add(mix64(i), round);
  }
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(*tree.find(mix64(i)), 0);
}

TEST(HashTreeTest, HashesMayDifferInTheirLastBitsOnly) {
  HashTree<uint64_t> tree;
  for (uint64_t i = 0; i < 2000; ++i) tree.add(i, i);
  for (uint64_t i = 0; i < 2000; ++i) EXPECT_EQ(*tree.find(i), i);
  EXPECT_EQ(tree.find(2000), nullptr);
}

TEST(HashTreeTest, WhatIsRemovedIsGoneAndMayComeAgain) {
  constexpr uint64_t kEntries = 10'000;
  HashTree<uint64_t> tree;
  for (uint64_t i = 0; i < kEntries; ++i) tree.add(mix64(i), i);
  for (uint64_t i = 0; i < kEntries; i += 2) tree.remove(mix64(i));
  tree.remove(mix64(kEntries));  // never there
  for (uint64_t i = 0; i < kEntries; ++i) EXPECT_EQ(tree.contains(mix64(i)), i % 2 == 1) << i;
  tree.add(mix64(0), 7);
  EXPECT_EQ(*tree.find(mix64(0)), 7u);
}

}  // namespace
}  // namespace braid
