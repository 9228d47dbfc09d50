// SPDX-License-Identifier: Apache-2.0
#include "loop/resolver.h"

#include <memory>
#include <string>

#include "loop_testing.h"

namespace braid {
namespace {

class ResolverTest : public testing::LoopTest {};

TEST_F(ResolverTest, FindsANumericHostWithoutANameServer) {
  Resolver resolver(*loop_);
  int calls = 0;
  ASSERT_TRUE(resolver
                  .resolve("127.0.0.1", 7410,
                           [&](Result<std::vector<SocketAddress>> found) {
                             ++calls;
                             ASSERT_TRUE(found.is_ok());
                             ASSERT_FALSE(found->empty());
                             EXPECT_EQ(found->front().to_string(), "127.0.0.1:7410");
                           })
                  .is_ok());
  EXPECT_EQ(calls, 0);
  run_until([&] { return calls > 0; });
  EXPECT_EQ(calls, 1);
}

TEST_F(ResolverTest, NamesTheHostThatIsNone) {
  // Longer than a label can be: no name server is asked.
  const std::string host = std::string(64, 'x') + ".invalid";
  Resolver resolver(*loop_);
  Status status;
  const Status begun = resolver.resolve(
      host, 1, [&](const Result<std::vector<SocketAddress>>& found) { status = found.status(); });
  if (begun.is_ok()) {
    run_until([&] { return !status.is_ok(); });
  } else {
    status = begun;
  }
  EXPECT_NE(status.message().find(host), std::string::npos) << status.message();
}

TEST_F(ResolverTest, DestroyedItDoesNotCallBack) {
  auto resolver = std::make_unique<Resolver>(*loop_);
  int calls = 0;
  ASSERT_TRUE(
      resolver->resolve("127.0.0.1", 1, [&](const Result<std::vector<SocketAddress>>&) { ++calls; })
          .is_ok());
  resolver.reset();
  loop_.reset();  // waits for the look-up
  EXPECT_EQ(calls, 0);
}

TEST_F(ResolverTest, MayBeUsedAgainFromItsCallback) {
  Resolver resolver(*loop_);
  int calls = 0;
  Resolver::Callback again = [&](const Result<std::vector<SocketAddress>>&) {
    if (++calls == 2) return;
    EXPECT_TRUE(resolver.resolve("127.0.0.1", 1, again).is_ok());
  };
  ASSERT_TRUE(resolver.resolve("127.0.0.1", 1, again).is_ok());
  run_until([&] { return calls == 2; });
}

}  // namespace
}  // namespace braid
