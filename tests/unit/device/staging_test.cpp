// SPDX-License-Identifier: Apache-2.0
// How operations are cut into pieces, and where these are staged.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "device/pieces.h"
#include "device/staging_pool.h"
#include "device/staging_ring.h"

namespace braid::client {
namespace {

constexpr uint64_t kMiB = 1 << 20;

Request request_of(Collective collective, uint64_t count, uint64_t input_bytes,
                   uint64_t result_bytes) {
  Request request;
  request.collective = collective;
  request.count = count;
  request.input_bytes = input_bytes;
  request.result_bytes = result_bytes;
  return request;
}

Pieces cut(const Request& request, uint32_t world_size) {
  return {request, Rank{0, world_size}, false, true};
}

TEST(DevicePieces, SmallOperationsAreOnePiece) {
  const Pieces pieces = cut(request_of(Collective::AllReduce, 1000, 4000, 4000), 3);
  ASSERT_EQ(pieces.count(), 1u);
  EXPECT_EQ(pieces[0].count, 1000u);
  EXPECT_EQ(pieces[0].input.bytes(), 4000u);
  EXPECT_EQ(pieces[0].result.bytes(), 4000u);
}

TEST(DevicePieces, PiecesOfAnAllReduceFollowEachOther) {
  const uint64_t count = 5 * kMiB + 3;  // 20 MiB and 12 bytes of floats
  const Pieces pieces = cut(request_of(Collective::AllReduce, count, count * 4, count * 4), 2);
  ASSERT_EQ(pieces.count(), 3u);
  uint64_t elements = 0;
  for (uint32_t i = 0; i < pieces.count(); ++i) {
    EXPECT_EQ(pieces[i].input.rows, 1u);
    EXPECT_EQ(pieces[i].input.offset, elements * 4);
    EXPECT_LE(pieces[i].input.bytes(), kDevicePieceBytes);
    elements += pieces[i].count;
  }
  EXPECT_EQ(elements, count);
}

TEST(DevicePieces, EachPieceHasItsPartOfEveryRanksBlock) {
  const uint64_t count = 3 * kMiB;
  const Pieces pieces =
      cut(request_of(Collective::ReduceScatter, count, 4 * count * 4, count * 4), 4);
  ASSERT_EQ(pieces.count(), 6u);
  uint64_t elements = 0;
  for (uint32_t i = 0; i < pieces.count(); ++i) {
    const Piece piece = pieces[i];
    EXPECT_EQ(piece.input.rows, 4u);
    EXPECT_EQ(piece.input.pitch, count * 4);
    EXPECT_EQ(piece.input.width, piece.count * 4);
    EXPECT_EQ(piece.input.offset, elements * 4);
    EXPECT_EQ(piece.result.rows, 1u);
    EXPECT_EQ(piece.result.offset, elements * 4);
    elements += piece.count;
  }
  EXPECT_EQ(elements, count);
}

// Else two ranks would submit operations of different sizes.
TEST(DevicePieces, RanksThatGiveOrGetNothingCutAlike) {
  const uint64_t count = 3 * kMiB;
  const Pieces root = cut(request_of(Collective::Gather, count, count * 4, 4 * count * 4), 4);
  const Pieces other = cut(request_of(Collective::Gather, count, count * 4, 0), 4);
  ASSERT_EQ(root.count(), other.count());
  for (uint32_t i = 0; i < root.count(); ++i) {
    EXPECT_EQ(root[i].count, other[i].count);
    EXPECT_EQ(other[i].result.bytes(), 0u);
  }
}

TEST(DevicePieces, MoreRanksThanAPieceHasBytesStillGetAFewElementsEach) {
  const Pieces pieces = cut(request_of(Collective::AllGather, 1000, 4000, 4000ull * 65536), 65536);
  ASSERT_EQ(pieces.count(), 8u);
  EXPECT_EQ(pieces[0].count, 128u);
}

TEST(DevicePieces, WhatIsNotDynamicAndWhatHasSplitsIsOnePiece) {
  const uint64_t bytes = 100 * kMiB;
  const Request request = request_of(Collective::AllToAll, 0, bytes, bytes + 4);
  EXPECT_EQ(Pieces(request, Rank{0, 2}, true, true).count(), 1u);
  const Request sum = request_of(Collective::AllReduce, bytes / 4, bytes, bytes);
  const Pieces whole(sum, Rank{0, 2}, false, false);
  EXPECT_EQ(whole.count(), 1u);
  EXPECT_EQ(whole[0].input.bytes(), bytes);
}

TEST(StagingCounters, WrapAround) {
  EXPECT_TRUE(has_reached(5, 5));
  EXPECT_FALSE(has_reached(4, 5));
  EXPECT_TRUE(has_reached(2, UINT32_MAX - 1));
  EXPECT_FALSE(has_reached(UINT32_MAX, 1));
}

// Slabs on the heap.
class StagingTest : public ::testing::Test {
 protected:
  StagingRing::Make maker() {
    return [this](uint64_t bytes, uint8_t*& memory) -> Status {
      if (slabs_.size() == slabs_max_) return Status(StatusCode::ResourceExhausted, "no more");
      slabs_.push_back(std::make_unique<uint8_t[]>(bytes));
      memory = slabs_.back().get();
      return {};
    };
  }
  static StagingRing::Place place(StagingRing& ring, uint64_t bytes, uint32_t number,
                                  uint32_t over) {
    StagingRing::Place place;
    const Status status = ring.place(bytes, number, over, place);
    EXPECT_TRUE(status.is_ok()) << status.message();
    return place;
  }

  std::vector<std::unique_ptr<uint8_t[]>> slabs_;
  size_t slabs_max_ = 100;
};

TEST_F(StagingTest, SmallPiecesShareOneSmallSlab) {
  StagingRing ring(64 * kMiB, maker());
  std::set<uint8_t*> places;
  for (uint32_t i = 1; i <= 100; ++i) {
    const auto placed = place(ring, 1000, i, 0);
    EXPECT_FALSE(placed.after);
    places.insert(placed.memory);
  }
  EXPECT_EQ(places.size(), 100u);
  EXPECT_EQ(slabs_.size(), 1u);
}

TEST_F(StagingTest, WhatIsOverIsUsedAgainBeforeThereIsMore) {
  StagingRing ring(64 * kMiB, maker());
  for (uint32_t i = 1; i <= 50; ++i) EXPECT_FALSE(place(ring, 200'000, i, i - 1).after);
  EXPECT_LE(slabs_.size(), 2u);
}

TEST_F(StagingTest, WhenAllIsUsedAPieceComesAfterTheOldestSlab) {
  StagingRing ring(16 * kMiB, maker());
  EXPECT_FALSE(place(ring, 8 * kMiB, 1, 0).after);
  EXPECT_FALSE(place(ring, 8 * kMiB, 2, 0).after);
  const auto third = place(ring, 8 * kMiB, 3, 0);
  EXPECT_EQ(third.after, 1u);
  EXPECT_EQ(third.memory, slabs_[0].get());
  EXPECT_EQ(place(ring, 8 * kMiB, 4, 1).after, 2u);
  EXPECT_FALSE(place(ring, 8 * kMiB, 5, 3).after);
}

// Two pieces whose numbers lie on both sides of the wrap.
TEST_F(StagingTest, NumbersWrap) {
  StagingRing ring(8 * kMiB, maker());
  EXPECT_FALSE(place(ring, 8 * kMiB, UINT32_MAX, UINT32_MAX - 1).after);
  EXPECT_EQ(place(ring, 8 * kMiB, 0, UINT32_MAX - 1).after, UINT32_MAX);
  EXPECT_FALSE(place(ring, 8 * kMiB, 1, 0).after);
}

TEST_F(StagingTest, APieceLargerThanAllGetsMemoryOfItsOwn) {
  StagingRing ring(8 * kMiB, maker());
  EXPECT_FALSE(place(ring, 8 * kMiB, 1, 0).after);
  EXPECT_FALSE(place(ring, 20 * kMiB, 2, 0).after);
  EXPECT_EQ(place(ring, 30 * kMiB, 3, 1).after, 2u);
  EXPECT_EQ(slabs_.size(), 2u);
}

TEST_F(StagingTest, WhereNoMoreCanBePinnedPiecesWait) {
  slabs_max_ = 1;
  StagingRing ring(64 * kMiB, maker());
  EXPECT_FALSE(place(ring, 8 * kMiB, 1, 0).after);
  EXPECT_EQ(place(ring, 8 * kMiB, 2, 0).after, 1u);
  StagingRing::Place larger;
  EXPECT_EQ(ring.place(20 * kMiB, 3, 2, larger).code(), StatusCode::ResourceExhausted);
}

TEST_F(StagingTest, APoolGivesTheSameMemoryAgainAndNeverTwiceAtOnce) {
  StagingPool pool(maker());
  std::vector<StagingPool::Buffer> first(100);
  for (StagingPool::Buffer& buffer : first) ASSERT_TRUE(pool.take(5000, buffer).is_ok());
  std::set<uint8_t*> memory;
  for (const StagingPool::Buffer& buffer : first) memory.insert(buffer.data());
  EXPECT_EQ(memory.size(), 100u);
  const size_t slabs = slabs_.size();
  for (int step = 0; step < 10; ++step) {
    first.clear();
    first.resize(100);
    for (StagingPool::Buffer& buffer : first) {
      ASSERT_TRUE(pool.take(5000, buffer).is_ok());
      EXPECT_TRUE(memory.contains(buffer.data()));
    }
  }
  EXPECT_EQ(slabs_.size(), slabs);
}

TEST_F(StagingTest, APoolCutsAnewWhatNobodyUses) {
  StagingPool pool(maker());
  for (uint64_t bytes = 1000; bytes < 2'000'000; bytes += 1000) {
    StagingPool::Buffer buffer;
    ASSERT_TRUE(pool.take(bytes, buffer).is_ok());
  }
  EXPECT_LE(slabs_.size(), 3u);
}

}  // namespace
}  // namespace braid::client
