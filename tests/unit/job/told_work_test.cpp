// SPDX-License-Identifier: Apache-2.0
#include "job/told_work.h"

#include <functional>
#include <limits>

#include "base/errors_testing.h"

namespace braid {
namespace {

using testing::is_error;

constexpr uint64_t kNowNs = 1'000'000'000'000;

// What a trainer tells: all of it makes sense until a test changes it.
struct TestTelling {
  std::string work = "inverses";
  uint64_t at_ns = kNowNs - 1000;
  struct Item {
    std::string name;
    uint32_t owner = 0;
    double seconds = 0;
    double least_seconds = 0;
  };
  std::vector<Item> items = {{"layer0.A", 1, 0.003, 0.002},
                             {"layer1.A", WorkSpans::kEverybody, 0.007, 0}};
  std::vector<proto::WorkSpan> spans = {{at_ns - 500, at_ns - 300, 0, false},
                                        {at_ns - 300, at_ns, 1, true}};
  double interval_seconds = 0.1;
  double seconds = 0.01;
  double bound_seconds = 0.01;
};

Result<ToldWork> read(const TestTelling& telling, uint64_t now_ns = kNowNs) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<proto::WorkItem>> items;
  for (const TestTelling::Item& item : telling.items) {
    items.push_back(proto::CreateWorkItemDirect(builder, item.name.c_str(), item.owner,
                                                item.seconds, item.least_seconds));
  }
  const auto load = proto::CreateWorkLoad(builder, 5, telling.interval_seconds, telling.seconds, 0,
                                          0, 0, 0, telling.bound_seconds);
  builder.Finish(proto::CreateWorkTold(builder, builder.CreateString(telling.work), telling.at_ns,
                                       builder.CreateVector(items),
                                       builder.CreateVectorOfStructs(telling.spans), load));
  return read_told_work(*flatbuffers::GetRoot<proto::WorkTold>(builder.GetBufferPointer()), 1, 4,
                        now_ns);
}

::testing::AssertionResult is_refused(const std::function<void(TestTelling&)>& change,
                                      testing::WantedNames wanted) {
  TestTelling telling;
  change(telling);
  return is_error(read(telling), StatusCode::InvalidArgument, wanted);
}

TEST(ToldWork, IsReadAsItWasTold) {
  const ToldWork told = read(TestTelling()).value();
  EXPECT_EQ(told.spans.rank, 1u);
  EXPECT_EQ(told.spans.work, "inverses");
  ASSERT_EQ(told.spans.items.size(), 2u);
  EXPECT_EQ(told.spans.items[1].owner, WorkSpans::kEverybody);
  ASSERT_EQ(told.spans.spans.size(), 2u);
  EXPECT_EQ(told.spans.spans[0].begin_ns, kNowNs - 1500);
  EXPECT_EQ(told.spans.spans[1].end_ns, kNowNs - 1000);
  EXPECT_TRUE(told.spans.spans[1].is_wait);
  ASSERT_TRUE(told.load);
  EXPECT_EQ(told.load->updates, 5u);
  EXPECT_EQ(told.load->told_ns, kNowNs);
  ASSERT_EQ(told.load->items.size(), 2u);
  EXPECT_EQ(told.load->items[0].name, "layer1.A") << "the costliest first";
}

TEST(ToldWork, OnlyTheCostliestOfManyItemsAreKept) {
  TestTelling telling;
  for (int i = 0; i < 100; ++i)
    telling.items.push_back({"item" + std::to_string(i), 1, 1.0 + i, 0});
  telling.items.push_back({"others'", 2, 0, 0});
  const ToldWork told = read(telling).value();
  ASSERT_EQ(told.load->items.size(), PlacedWork::kItemsKept);
  EXPECT_EQ(told.load->items[0].name, "item99");
  EXPECT_EQ(told.load->items_more, 102 - PlacedWork::kItemsKept) << "those of this rank";
}

TEST(ToldWork, TimesOfAnotherClockAreMoved) {
  TestTelling telling;
  telling.at_ns += 1'000'000'000'000;  // ahead
  for (auto& span : telling.spans) {
    span = proto::WorkSpan(span.begin_ns() + 1'000'000'000'000, span.end_ns() + 1'000'000'000'000,
                           span.item(), span.is_wait());
  }
  EXPECT_EQ(read(telling).value().spans.spans[0].begin_ns, kNowNs - 500);
  const uint64_t far = kNowNs * 3;  // behind
  EXPECT_EQ(read(TestTelling(), far).value().spans.spans[1].end_ns, far);
  telling.spans = {{0, telling.at_ns, 0, false}};
  EXPECT_EQ(read(telling, 50).value().spans.spans[0].begin_ns, 0u) << "no time is before 0";
}

TEST(ToldWork, ThatMakesNoSenseIsRefused) {
  EXPECT_TRUE(is_refused([](TestTelling& told) { told.work.clear(); }, {"0 bytes"}));
  EXPECT_TRUE(is_refused([](TestTelling& told) { told.work.assign(65, 'x'); }, {"65 bytes"}));
  EXPECT_TRUE(
      is_refused([](TestTelling& told) { told.items[0].name.clear(); }, {"name has 0 bytes"}));
  EXPECT_TRUE(
      is_refused([](TestTelling& told) { told.items[0].name.assign(256, 'x'); }, {"256 bytes"}));
  EXPECT_TRUE(
      is_refused([](TestTelling& told) { told.items[1].owner = 4; }, {"rank 4", "4 ranks"}));
  EXPECT_TRUE(
      is_refused([](TestTelling& told) { told.items.resize(1025, told.items[0]); }, {"1025"}));
  EXPECT_TRUE(
      is_refused([](TestTelling& told) { told.spans.resize(4097, told.spans[0]); }, {"4097"}));
  EXPECT_TRUE(
      is_refused([](TestTelling& told) { told.items.pop_back(); }, {"item 1", "there are 1"}));
  EXPECT_TRUE(is_refused([](TestTelling& told) { told.spans[0] = {9, 8, 0, false}; }, {"9 to 8"}));
  EXPECT_TRUE(is_refused(
      [](TestTelling& told) {
        told.spans[0] = {0, UINT64_MAX, 0, false};
      },
      {"ns"}));
}

TEST(ToldWork, NumbersAreSeconds) {
  for (const double bad : {-1.0, 2e6, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()}) {
    EXPECT_TRUE(is_refused([bad](TestTelling& told) { told.items[0].seconds = bad; }, {"takes"}));
    EXPECT_TRUE(
        is_refused([bad](TestTelling& told) { told.items[0].least_seconds = bad; }, {"takes"}));
    EXPECT_TRUE(is_refused([bad](TestTelling& told) { told.interval_seconds = bad; }, {"times"}));
    EXPECT_TRUE(is_refused([bad](TestTelling& told) { told.seconds = bad; }, {"times"}));
    EXPECT_TRUE(is_refused([bad](TestTelling& told) { told.bound_seconds = bad; }, {"times"}));
  }
}

}  // namespace
}  // namespace braid
