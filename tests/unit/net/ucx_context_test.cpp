// SPDX-License-Identifier: Apache-2.0
#include "net/ucx_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/ucx_worker.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

TEST(UcxContext, RefusesARailThatDoesNotExistAndNamesThoseThatDo) {
  const auto context = UcxContext::create({"nosuch0", {"tcp"}, 128 << 10});
  ASSERT_FALSE(context.is_ok());
  EXPECT_EQ(context.status().code(), StatusCode::InvalidArgument);
  EXPECT_THAT(context.status().message(), HasSubstr("'nosuch0' does not exist"));
  EXPECT_THAT(context.status().message(), HasSubstr("lo"));
}

TEST(UcxContext, RefusesTheRailAlsoWhenAnotherTransportCouldDoWithout) {
  const auto context = UcxContext::create({"nosuch0", {"tcp", "self"}, 128 << 10});
  ASSERT_FALSE(context.is_ok());
  EXPECT_THAT(context.status().message(), HasSubstr("'nosuch0'"));
}

TEST(UcxContext, RefusesATransportThatDoesNotExist) {
  const auto context = UcxContext::create({"lo", {"pigeon"}, 128 << 10});
  ASSERT_FALSE(context.is_ok());
  EXPECT_THAT(context.status().message(), HasSubstr("'pigeon'"));
}

TEST(UcxContext, WorkersHaveAnAddressAndSleep) {
  auto context = UcxContext::create({"lo", {"tcp"}, 128 << 10});
  ASSERT_TRUE(context.is_ok()) << context.status().to_string();
  std::atomic<uint64_t> strangers = 0;
  auto worker = UcxWorker::create(*context, {}, strangers);
  ASSERT_TRUE(worker.is_ok()) << worker.status().to_string();
  EXPECT_GE((*worker)->event_fd(), 0);
  EXPECT_FALSE((*worker)->address().empty());
  while ((*worker)->progress() > 0) {
  }
  EXPECT_TRUE((*worker)->arm());
}

}  // namespace
}  // namespace braid
