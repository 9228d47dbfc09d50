// SPDX-License-Identifier: Apache-2.0
#include "operation/placed_work.h"

#include "base/errors_testing.h"

namespace braid {
namespace {

using testing::is_error;

ToldWork told(uint32_t rank, const std::string& work, size_t spans = 1, double seconds = 0) {
  ToldWork told;
  told.spans.rank = rank;
  told.spans.work = work;
  told.spans.items = {{"layer0.A", rank}};
  told.spans.spans.resize(spans);
  if (seconds > 0) {
    WorkLoad load;
    load.rank = rank;
    load.work = work;
    load.seconds = seconds;
    told.load = load;
  }
  return told;
}

TEST(PlacedWork, KeepsTheLatestLoadOfEachRankAndWork) {
  PlacedWork work;
  EXPECT_TRUE(work.take(told(1, "inverses", 1, 3), {}).is_ok());
  EXPECT_TRUE(work.take(told(0, "updates", 1, 5), {}).is_ok());
  EXPECT_TRUE(work.take(told(0, "inverses", 1, 2), {}).is_ok());
  EXPECT_TRUE(work.take(told(0, "inverses", 1, 4), {}).is_ok());
  EXPECT_TRUE(work.take(told(0, "inverses", 1), {}).is_ok());  // only spans
  const std::vector<WorkLoad> loads = work.loads();
  ASSERT_EQ(loads.size(), 3u);
  EXPECT_EQ(loads[0].work, "inverses");
  EXPECT_EQ(loads[0].seconds, 4);
  EXPECT_EQ(loads[1].work, "updates");
  EXPECT_EQ(loads[2].rank, 1u);
}

TEST(PlacedWork, KeepsAsManySpansAsHaveRoom) {
  PlacedWork work;
  constexpr size_t kSpans = 1000;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(work.take(told(0, "inverses", kSpans), {}).is_ok());
  EXPECT_TRUE(work.take(told(1, "inverses"), {}).is_ok());
  EXPECT_TRUE(work.take(told(0, "inverses", 7), {}).is_ok());
  EXPECT_TRUE(work.take(told(0, "inverses", 0), {}).is_ok()) << "nothing to keep";
  const auto spans = work.spans();
  const size_t most = PlacedWork::kBytesMax / (kSpans * sizeof(WorkSpans::Span));
  ASSERT_GE(spans.size(), most / 2);
  ASSERT_LE(spans.size(), most + 2);
  EXPECT_EQ(spans[spans.size() - 2]->spans.size(), 7u) << "the latest of rank 0";
  EXPECT_EQ(spans.back()->rank, 1u);
}

TEST(PlacedWork, SpansAreTheUsersMemory) {
  UserLimits limits;
  limits.memory_of_user = 20'000;
  const auto quotas = std::make_shared<UserQuotas>(limits, std::set<uid_t>{});
  const auto charge = [&] { return UserCharge(quotas, 7, UserResource::BufferBytes); };
  {
    PlacedWork work;
    EXPECT_TRUE(work.take(told(0, "inverses", 100, 1), charge()).is_ok());
    const uint64_t used = quotas->used(7, UserResource::BufferBytes);
    EXPECT_GE(used, 100 * sizeof(WorkSpans::Span));
    EXPECT_TRUE(work.take(told(0, "inverses", 10'000, 2), charge()).is_ok());
    EXPECT_EQ(quotas->used(7, UserResource::BufferBytes), used);
    EXPECT_EQ(work.spans().size(), 1u) << "there is no room for more";
    EXPECT_EQ(work.loads()[0].seconds, 2) << "what is small comes all the same";
  }
  EXPECT_EQ(quotas->used(7, UserResource::BufferBytes), 0u);
}

TEST(PlacedWork, ARankHasFewWorks) {
  PlacedWork work;
  for (size_t i = 0; i < PlacedWork::kWorksMax; ++i)
    EXPECT_TRUE(work.take(told(0, "work" + std::to_string(i)), {}).is_ok());
  EXPECT_TRUE(is_error(work.take(told(0, "more"), {}), StatusCode::ResourceExhausted,
                       {"'more'", "8 others"}));
  EXPECT_TRUE(work.take(told(0, "work3"), {}).is_ok());
  EXPECT_TRUE(work.take(told(1, "more"), {}).is_ok()) << "of another rank";
}

}  // namespace
}  // namespace braid
