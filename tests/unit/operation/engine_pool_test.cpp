// SPDX-License-Identifier: Apache-2.0
#include "operation/engine_pool.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include "loop/loop_testing.h"
#include "net/fake_transport.h"

namespace braid {
namespace {

class EnginePoolTest : public testing::LoopTest, public OperationEvents {
 protected:
  explicit EnginePoolTest(size_t timeline_events = 0) {
    EngineOptions options;
    options.io_loops = 3;
    options.unit_bytes = 256;
    auto pool = EnginePool::create(*loop_, options, timeline_events);
    EXPECT_TRUE(pool.is_ok());
    pool_ = std::move(pool).value();
    pool_->set_transport(transport_);
    for (const uint64_t job : {1, 2})
      pool_->begin_job(
          job, *this, [](NodeId, const Status&) {}, [] { return UserCharge(); });
    ring_->ranks_of_node = {2};
    ring_->block_of_rank = {0, 1};
    ring_->routes = basic_routes(1, 0);
    ring_->world_size = 2;
  }

  void on_done(const OperationKey& key) override {
    EXPECT_TRUE(loop_->is_in_loop());
    done_.push_back(key.step);
  }
  void on_retired(const OperationKey& key) override { retired_.push_back(key.step); }

  Operation operation(uint64_t job_key, uint64_t step) {
    Operation result;
    result.key = {job_key, 1, step};
    result.count = kCount;
    result.ring = ring_;
    result.inputs = {reinterpret_cast<const uint8_t*>(first_.data()),
                     reinterpret_cast<const uint8_t*>(second_.data())};
    result.result = reinterpret_cast<uint8_t*>(result_.data());
    return result;
  }

  static constexpr uint64_t kCount = 1000;  // 16 units over three loops
  std::vector<float> first_ = std::vector<float>(kCount, 1.0f);
  std::vector<float> second_ = std::vector<float>(kCount, 2.0f);
  std::vector<float> result_ = std::vector<float>(kCount, 0.0f);
  const std::shared_ptr<Ring> ring_ = std::make_shared<Ring>();
  testing::FakeTransport transport_{*loop_};
  std::vector<uint64_t> done_;
  std::vector<uint64_t> retired_;
  std::unique_ptr<EnginePool> pool_;
};

TEST_F(EnginePoolTest, AnOperationIsDoneOnceWhenAllLoopsAreDone) {
  pool_->run_threads();
  EXPECT_EQ(pool_->io_loops().size(), 3u);
  ASSERT_TRUE(pool_->start(operation(1, 5)));
  run_until([this] { return !retired_.empty(); });
  run_rounds();
  EXPECT_EQ(done_, (std::vector<uint64_t>{5}));
  EXPECT_EQ(retired_, (std::vector<uint64_t>{5}));
  EXPECT_EQ(result_, std::vector<float>(kCount, 3.0f));
  EXPECT_EQ(pool_->counters().units_done, 16u);
}

TEST_F(EnginePoolTest, NoEventOfAnAbortedJobComesEvenIfItWasOnItsWay) {
  pool_->run_threads();
  ASSERT_TRUE(pool_->start(operation(1, 5)));
  pool_->stop_threads();  // whatever was done has been reported, and waits at the door
  pool_->abort_job(1);
  run_rounds();
  EXPECT_TRUE(done_.empty());
  EXPECT_TRUE(retired_.empty());
}

TEST_F(EnginePoolTest, AbortingOneJobLeavesTheOthersAlone) {
  pool_->run_threads();
  ASSERT_TRUE(pool_->start(operation(1, 5)));
  Operation other = operation(2, 6);
  std::vector<float> other_result(kCount, 0.0f);
  other.result = reinterpret_cast<uint8_t*>(other_result.data());
  ASSERT_TRUE(pool_->start(other));
  pool_->abort_job(1);
  run_until([this] { return !retired_.empty(); });
  EXPECT_EQ(done_, (std::vector<uint64_t>{6}));
  EXPECT_EQ(other_result, std::vector<float>(kCount, 3.0f));
}

TEST_F(EnginePoolTest, TakesNoMoreThanItsDoorsHold) {
  // Nobody takes anything out yet, and two jobs have begun.
  for (size_t i = 2; i < EnginePool::kDoorCapacity; ++i) ASSERT_TRUE(pool_->go({1, 1, i}));
  EXPECT_FALSE(pool_->go({1, 1, 0}));
  EXPECT_FALSE(pool_->start(operation(1, 5)));
  pool_->abort_job(1);  // there is always room for this
  pool_->run_threads();
  run_until([this] { return pool_->go({1, 1, 0}); });
}

struct EnginePoolTimelineTest : EnginePoolTest {
  EnginePoolTimelineTest() : EnginePoolTest(256) {}

  std::vector<TimelineSource::Piece> copy(const TimelineFilter& wanted) {
    std::optional<std::vector<TimelineSource::Piece>> copied;
    pool_->timeline_copier()->copy(wanted, [&copied](std::vector<TimelineSource::Piece> pieces,
                                                     uint64_t) { copied = std::move(pieces); });
    EXPECT_FALSE(copied) << "it comes later";
    run_until([&copied] { return copied.has_value(); });
    return *copied;
  }
};

TEST_F(EnginePoolTimelineTest, UnitsOfAllLoopsAreNoted) {
  pool_->run_threads();
  // One after the other: they have one result.
  ASSERT_TRUE(pool_->start(operation(1, 5)));
  run_until([this] { return retired_.size() == 1; });
  ASSERT_TRUE(pool_->start(operation(2, 6)));
  run_until([this] { return retired_.size() == 2; });
  std::vector<uint32_t> units;
  std::set<uint32_t> loops;
  for (const auto& piece : copy({1})) {
    loops.insert(piece.io_loop);
    for (const TimelineEvent& event : piece.events) {
      EXPECT_EQ(event.kind, SpanKind::Unit);
      EXPECT_EQ(event.step, 5u);
      EXPECT_LE(event.begin_ns, event.end_ns);
      EXPECT_NE(event.begin_ns, 0u);
      EXPECT_EQ(event.slot, TimelineEvent::kNoSlot) << "on one node nothing is sent";
      units.push_back(event.number);
    }
  }
  std::ranges::sort(units);
  std::vector<uint32_t> expected(16);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(units, expected);
  EXPECT_EQ(loops.size(), 3u);
  EXPECT_TRUE(copy({3}).empty());
  EXPECT_TRUE(copy({1, 0, 1}).empty()) << "that was before";
}

TEST_F(EnginePoolTest, WithoutEventsNothingIsNoted) {
  EXPECT_EQ(pool_->timeline(), nullptr);
  EXPECT_EQ(pool_->timeline_copier(), nullptr);
  for (const IoLoop& loop : pool_->io_loops()) EXPECT_EQ(loop.timeline, nullptr);
}

}  // namespace
}  // namespace braid
