// SPDX-License-Identifier: Apache-2.0
// Which algorithm an all-reduce takes, and readiness where it goes by another route.
#include "base/errors_testing.h"
#include "engine/early_limits.h"
#include "operation/operation_table_testing.h"

namespace braid {
namespace {

using testing::all_reduce;
using testing::is_error;
using testing::signature_of;

// This node is at place 0 of four: by halving it has to do with places 1 and 2, by racks of two it
// sends to 1 and 2 and hears from them. Ranks are those of the places, but for the last two nodes.
class OperationTableAlgorithmTest : public testing::OperationTableTest {
 protected:
  static constexpr uint64_t kHalvingBytes = 400;

  OperationTableAlgorithmTest() {
    make({{0}, {1}, {3}, {2}}, 0);
    ring_->halving_bytes = kHalvingBytes;
    ring_->halving = std::make_shared<Route>(halving_route(4, 0));
    ring_->hierarchical = std::make_shared<Route>(hierarchical_route(2, 2, 0));
  }
  const Route* route_of(const Signature& signature) {
    EXPECT_TRUE(submit(0, ++step_, signature).is_ok());
    return actions_.started.back().route;
  }
  const Route* route_of(const Signature& signature, const TransferSettings& settings) {
    OperationForm form = form_of(signature.count);
    form.settings = std::make_shared<TransferSettings>(settings);
    EXPECT_TRUE(table_->submit(submission(0, ++step_, signature), planned_as(std::move(form))));
    return actions_.started.back().route;
  }
  Status ready(uint32_t place, const Signature& signature = all_reduce(10)) {
    return table_->on_node_ready(place, key(1), signature);
  }

  uint64_t step_ = 0;
};

TEST_F(OperationTableAlgorithmTest, SizeSaysWhichAlgorithmAnAllReduceTakes) {
  EXPECT_EQ(route_of(all_reduce(100)), ring_->halving.get());
  EXPECT_EQ(route_of(signature_of(Collective::Barrier)), ring_->halving.get());
  EXPECT_EQ(route_of(all_reduce(101)), ring_->hierarchical.get());
  EXPECT_EQ(route_of(signature_of(Collective::Broadcast, 4)), nullptr);
  EXPECT_EQ(route_of(signature_of(Collective::AllGather, 4)), nullptr);
  EXPECT_EQ(route_of(signature_of(Collective::ReduceScatter, 4)), nullptr);
  ring_->hierarchical.reset();
  EXPECT_EQ(route_of(all_reduce(101)), nullptr);
}

TEST_F(OperationTableAlgorithmTest, WhatIsDirectGoesByNone) {
  ring_->direct_bytes = 40;
  EXPECT_EQ(route_of(all_reduce(10)), nullptr);
  EXPECT_TRUE(actions_.started.back().is_direct);
  EXPECT_EQ(route_of(all_reduce(11)), ring_->halving.get());
  EXPECT_FALSE(actions_.started.back().is_direct);
}

TEST_F(OperationTableAlgorithmTest, TwoHopsComeBetweenDirectAndHalves) {
  ring_->direct_bytes = 40;
  ring_->two_hops = std::make_shared<Route>(two_hops_route(4, 0));
  ring_->two_hops_bytes = 200;
  EXPECT_TRUE(route_of(all_reduce(10)) == nullptr && actions_.started.back().is_direct);
  EXPECT_EQ(route_of(all_reduce(11)), ring_->two_hops.get());
  EXPECT_EQ(route_of(all_reduce(50)), ring_->two_hops.get());
  EXPECT_EQ(route_of(all_reduce(51)), ring_->halving.get());
  EXPECT_EQ(route_of(signature_of(Collective::Broadcast, 4)), nullptr);
}

// Among four nodes from 768 bytes to somewhat less than 4 × 455 KiB, and in one unit.
TEST_F(OperationTableAlgorithmTest, ByTwoHopsPartsGoEarlyWhereTheyAlwaysHaveRoom) {
  make({{0}, {1}, {3}, {2}}, 0, 64 << 20);
  ring_->two_hops = std::make_shared<Route>(two_hops_route(4, 0));
  ring_->two_hops_bytes = 8 << 20;
  ring_->unit_bytes = 8 << 20;
  const auto is_early_of = [&](uint64_t count) {
    EXPECT_EQ(route_of(all_reduce(count)), ring_->two_hops.get());
    return is_early(actions_.started.back());
  };
  EXPECT_FALSE(is_early_of(191));
  EXPECT_TRUE(is_early_of(192));
  EXPECT_TRUE(is_early_of(early_two_hops_bytes_max(4) / 4));
  EXPECT_FALSE(is_early_of(early_two_hops_bytes_max(4) / 4 + 1));
  ring_->unit_bytes = 1000;
  EXPECT_TRUE(is_early_of(250));
  EXPECT_FALSE(is_early_of(251));
  TransferSettings settings;
  settings.unit_bytes = 2000;
  settings.two_hops_bytes = 8 << 20;
  EXPECT_EQ(route_of(all_reduce(500), settings), ring_->two_hops.get());
  EXPECT_TRUE(is_early(actions_.started.back()));
  EXPECT_EQ(route_of(all_reduce(501), settings), ring_->two_hops.get());
  EXPECT_FALSE(is_early(actions_.started.back()));
}

TEST_F(OperationTableAlgorithmTest, WhatIsEarlySaysThatItIsReadyOnlyIfItHangs) {
  ring_->two_hops = std::make_shared<Route>(two_hops_route(4, 0));
  ring_->two_hops_bytes = ring_->unit_bytes = 8 << 20;
  ASSERT_TRUE(submit(0, 1, all_reduce(200)).is_ok());
  ASSERT_TRUE(table_->tell_readiness().is_ok());
  EXPECT_TRUE(actions_.told.empty());
  ASSERT_TRUE(table_->tell_readiness().is_ok());
  EXPECT_EQ(actions_.told, (std::vector<uint32_t>{1, 2, 3}));
  for (const uint32_t place : {1U, 2U, 3U}) ASSERT_TRUE(ready(place, all_reduce(200)).is_ok());
  EXPECT_TRUE(actions_.gone.empty()) << "it has begun without";
  EXPECT_EQ(ready(2, all_reduce(201)).code(), StatusCode::Mismatch);
}

TEST_F(OperationTableAlgorithmTest, SettingsSayItWhereThereIsARoute) {
  TransferSettings settings;
  settings.halving_bytes = 8;
  settings.is_hierarchical = false;
  EXPECT_EQ(route_of(all_reduce(2), settings), ring_->halving.get());
  EXPECT_EQ(route_of(all_reduce(3), settings), nullptr);
  settings.is_hierarchical = true;
  EXPECT_EQ(route_of(all_reduce(3), settings), ring_->hierarchical.get());
  ring_->halving.reset();
  ring_->hierarchical.reset();
  EXPECT_EQ(route_of(all_reduce(2), settings), nullptr);
}

TEST_F(OperationTableAlgorithmTest, SettingsSayWhatGoesByTwoHops) {
  TransferSettings settings;
  settings.two_hops_bytes = 8;
  EXPECT_NE(route_of(all_reduce(2), settings), nullptr) << "by halving: no links for two hops";
  ring_->two_hops = std::make_shared<Route>(two_hops_route(4, 0));
  EXPECT_EQ(route_of(all_reduce(2), settings), ring_->two_hops.get());
  EXPECT_EQ(route_of(all_reduce(3), settings), ring_->halving.get());
  settings.two_hops_bytes = 0;
  EXPECT_EQ(route_of(all_reduce(2), settings), ring_->halving.get());
}

TEST_F(OperationTableAlgorithmTest, AllSourcesHearAndAllTargetsAreAwaited) {
  ASSERT_TRUE(submit(0, 1, all_reduce(10)).is_ok());
  EXPECT_EQ(actions_.told, (std::vector<uint32_t>{1, 2}));
  ASSERT_TRUE(ready(2).is_ok());
  ASSERT_TRUE(ready(2).is_ok());  // said twice
  ASSERT_TRUE(ready(3).is_ok());  // who is not sent to
  EXPECT_TRUE(actions_.gone.empty());
  ASSERT_TRUE(ready(1).is_ok());
  ASSERT_TRUE(ready(1).is_ok());
  EXPECT_EQ(actions_.gone, std::vector<OperationKey>{key(1)});
}

TEST_F(OperationTableAlgorithmTest, ReadinessMayComeEarlyFromEach) {
  ASSERT_TRUE(ready(1).is_ok());
  ASSERT_TRUE(ready(1).is_ok());
  ASSERT_TRUE(submit(0, 1, all_reduce(10)).is_ok());
  EXPECT_TRUE(actions_.gone.empty());
  ASSERT_TRUE(ready(2).is_ok());
  EXPECT_EQ(actions_.gone.size(), 1u);
}

// One that takes another algorithm because of its size says so to whom it takes for its neighbour.
TEST_F(OperationTableAlgorithmTest, WhoDisagreesIsNamedWhoeverItIs) {
  for (const auto& [place, rank] : {std::pair{1U, "rank 1"}, {2U, "rank 3"}, {3U, "rank 2"}}) {
    make({{0}, {1}, {3}, {2}}, 0);
    ring_->halving_bytes = kHalvingBytes;
    ring_->halving = std::make_shared<Route>(halving_route(4, 0));
    ASSERT_TRUE(submit(0, 1, all_reduce(10)).is_ok());
    EXPECT_TRUE(is_error(ready(place, all_reduce(1000)), StatusCode::Mismatch,
                         {"'layer.weight' step 1", "rank 0", "float32 × 10", rank}));
  }
}

TEST_F(OperationTableAlgorithmTest, WhoDisagreedEarlyIsNamed) {
  ASSERT_TRUE(ready(1).is_ok());
  ASSERT_TRUE(ready(3, all_reduce(1000)).is_ok());
  EXPECT_TRUE(
      is_error(submit(0, 1, all_reduce(10)), StatusCode::Mismatch, {"rank 2", "float32 × 1000"}));
}

}  // namespace
}  // namespace braid
