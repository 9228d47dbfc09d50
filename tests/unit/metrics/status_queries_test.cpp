// SPDX-License-Identifier: Apache-2.0
#include "metrics/status_queries.h"

#include <utility>

#include <gtest/gtest.h>

namespace braid {
namespace {

class StatusQueriesTest : public ::testing::Test {
 protected:
  // The I/O loops answer, after whatever has happened meanwhile.
  void answer() {
    ASSERT_EQ(gathering_.size(), 1u) << "loops are asked once at a time";
    const auto callback = std::move(gathering_.back());
    gathering_.pop_back();
    callback(StatusQueries::Flows(1));
  }

  std::vector<std::function<void(const StatusQueries::Flows&)>> gathering_;
  std::vector<uint64_t> answered_;
  StatusQueries queries_{[this](auto callback) { gathering_.push_back(std::move(callback)); },
                         [this](uint64_t client, const StatusQueries::Flows& flows) {
                           EXPECT_EQ(flows.size(), 1u);
                           answered_.push_back(client);
                         }};
};

TEST_F(StatusQueriesTest, EachIsAnsweredOnce) {
  EXPECT_TRUE(queries_.add(7));
  EXPECT_TRUE(answered_.empty());
  answer();
  EXPECT_EQ(answered_, std::vector<uint64_t>{7});
  EXPECT_TRUE(gathering_.empty());
  EXPECT_TRUE(queries_.add(7));
  EXPECT_TRUE(queries_.add(8));
  EXPECT_TRUE(queries_.add(8));
  answer();  // to whom asked before the loops were asked
  EXPECT_EQ(answered_, (std::vector<uint64_t>{7, 7}));
  answer();
  EXPECT_EQ(answered_, (std::vector<uint64_t>{7, 7, 8, 8}));
  EXPECT_TRUE(gathering_.empty());
}

TEST_F(StatusQueriesTest, ThoseThatWaitAreBoundedByClient) {
  constexpr uint32_t kMax = StatusQueries::kPerClientMax;
  for (uint32_t i = 0; i < kMax; ++i) ASSERT_TRUE(queries_.add(7));
  for (int i = 0; i < 1000; ++i) {
    const Status status = queries_.add(7);
    ASSERT_EQ(status.code(), StatusCode::ResourceExhausted);
    ASSERT_TRUE(status.message().starts_with("16 status queries of this client wait"));
  }
  EXPECT_TRUE(queries_.add(8)) << "others are not held back";
  EXPECT_EQ(gathering_.size(), 1u);
  answer();
  EXPECT_TRUE(queries_.add(7)) << "one was answered";
  EXPECT_EQ(queries_.add(7).code(), StatusCode::ResourceExhausted);
  answer();
  answer();
  EXPECT_EQ(answered_.size(), kMax + 2);
}

}  // namespace
}  // namespace braid
