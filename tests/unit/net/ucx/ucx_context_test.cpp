// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/ucx_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/ucx/ucx_worker.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

TEST(UcxContext, RefusesARailThatDoesNotExistAndNamesThoseThatDo) {
  // Also where a transport could do without the rail.
  for (const std::vector<std::string>& transports :
       {std::vector<std::string>{"tcp"}, {"tcp", "self"}}) {
    const auto context = UcxContext::create({"nosuch0", transports, 128 << 10});
    ASSERT_FALSE(context.is_ok());
    EXPECT_EQ(context.status().code(), StatusCode::InvalidArgument);
    EXPECT_THAT(context.status().message(), HasSubstr("'nosuch0'"));
    EXPECT_THAT(context.status().message(), HasSubstr("lo"));
  }
}

TEST(UcxContext, RefusesATransportThatDoesNotExist) {
  const auto context = UcxContext::create({"lo", {"pigeon"}, 128 << 10});
  ASSERT_FALSE(context.is_ok());
  EXPECT_THAT(context.status().message(), HasSubstr("'pigeon'"));
}

}  // namespace
}  // namespace braid
