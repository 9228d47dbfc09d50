// SPDX-License-Identifier: Apache-2.0
#include "loop/resolver.h"

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>

#include "base/fd.h"
#include "loop_testing.h"

namespace braid {
namespace {

class ResolverTest : public testing::LoopTest {
 protected:
  // Not the process's: look-ups that an earlier test has forgotten may still be under way.
  const std::shared_ptr<LookUps> under_way_ = std::make_shared<LookUps>();
};

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
  run_rounds();
  EXPECT_EQ(calls, 0);
}

// libuv's pool has four threads, and four names whose servers do not answer would hold up all
// others.
TEST_F(ResolverTest, SlowNamesHoldUpNobodyElse) {
  const auto release = std::make_shared<std::promise<void>>();
  const std::shared_future<void> released = release->get_future().share();
  const auto ended = std::make_shared<std::atomic<int>>(0);
  const auto slow_look_up = [released, ended](const char*, const char*, const addrinfo*,
                                              addrinfo**) {
    released.wait();
    ++*ended;
    return EAI_AGAIN;
  };
  std::vector<std::unique_ptr<Resolver>> slow;
  int slow_calls = 0;
  for (int i = 0; i < 8; ++i) {
    slow.push_back(std::make_unique<Resolver>(*loop_, slow_look_up, under_way_));
    ASSERT_TRUE(slow.back()
                    ->resolve("slow.example", 1,
                              [&](const Result<std::vector<SocketAddress>>& found) {
                                EXPECT_EQ(found.status().code(), StatusCode::Unavailable);
                                ++slow_calls;
                              })
                    .is_ok());
  }
  Resolver resolver(*loop_);
  bool is_found = false;
  ASSERT_TRUE(resolver
                  .resolve("127.0.0.1", 1,
                           [&](const Result<std::vector<SocketAddress>>& found) {
                             is_found = found.is_ok();
                           })
                  .is_ok());
  run_until([&] { return is_found; });
  EXPECT_EQ(slow_calls, 0);
  slow.resize(4);  // the others are forgotten while their look-ups run
  release->set_value();
  run_until([&] { return slow_calls == 4 && *ended == 8; });
  run_rounds();
  EXPECT_EQ(slow_calls, 4);
}

TEST_F(ResolverTest, TooManyAtOnceAreRefused) {
  const auto release = std::make_shared<std::promise<void>>();
  const std::shared_future<void> released = release->get_future().share();
  const auto look_up = [released](const char*, const char*, const addrinfo*, addrinfo**) {
    released.wait();
    return EAI_NONAME;
  };
  std::vector<std::unique_ptr<Resolver>> resolvers;
  size_t calls = 0;
  Status refused;
  while (refused.is_ok() && resolvers.size() <= LookUps::kMax) {
    resolvers.push_back(std::make_unique<Resolver>(*loop_, look_up, under_way_));
    refused = resolvers.back()->resolve(
        "slow.example", 1, [&](const Result<std::vector<SocketAddress>>&) { ++calls; });
  }
  EXPECT_EQ(refused.code(), StatusCode::Unavailable) << "it may be tried again";
  EXPECT_NE(refused.message().find("'slow.example'"), std::string::npos);
  release->set_value();
  run_until([&] { return calls == resolvers.size() - 1; });
}

TEST_F(ResolverTest, AUserHasHisShareAndLeavesTheOthersTheirs) {
  const auto release = std::make_shared<std::promise<void>>();
  const std::shared_future<void> released = release->get_future().share();
  const auto look_up = [released](const char*, const char*, const addrinfo*, addrinfo**) {
    released.wait();
    return EAI_NONAME;
  };
  std::vector<std::unique_ptr<Resolver>> resolvers;
  size_t begun = 0;
  size_t calls = 0;
  const auto resolve = [&](std::optional<uint32_t> user) {
    resolvers.push_back(std::make_unique<Resolver>(*loop_, look_up, under_way_));
    Status status = resolvers.back()->resolve(
        "slow.example", 1, [&](const Result<std::vector<SocketAddress>>&) { ++calls; }, user);
    if (status) ++begun;
    return status;
  };
  for (size_t i = 0; i < LookUps::kPerUserMax; ++i) ASSERT_TRUE(resolve(1001).is_ok());
  const Status refused = resolve(1001);
  EXPECT_EQ(refused.code(), StatusCode::Unavailable) << "it may be tried again";
  EXPECT_NE(refused.message().find("'slow.example' cannot be looked up now: 16 look-ups of user "
                                   "1001 wait for this node's name servers already"),
            std::string::npos)
      << refused.message();
  EXPECT_TRUE(resolve(1002).is_ok());
  EXPECT_TRUE(resolve(std::nullopt).is_ok());
  release->set_value();
  run_until([&] { return calls == begun; });
  EXPECT_TRUE(resolve(1001).is_ok()) << "those have ended";
  run_until([&] { return calls == begun; });
}

TEST_F(ResolverTest, SlowNamesOfManyUsersShutNobodyOut) {
  const auto release = std::make_shared<std::promise<void>>();
  const std::shared_future<void> released = release->get_future().share();
  const auto look_up = [released](const char*, const char*, const addrinfo*, addrinfo**) {
    released.wait();
    return EAI_NONAME;
  };
  std::vector<std::unique_ptr<Resolver>> resolvers;
  size_t begun = 0;
  size_t calls = 0;
  const auto resolve = [&](std::optional<uint32_t> user) {
    resolvers.push_back(std::make_unique<Resolver>(*loop_, look_up, under_way_));
    Status status = resolvers.back()->resolve(
        "slow.example", 1, [&](const Result<std::vector<SocketAddress>>&) { ++calls; }, user);
    if (status) ++begun;
    return status;
  };
  constexpr uint32_t kFirstUser = 2000;
  for (size_t i = 0; i < LookUps::kMax; ++i) {
    const auto user = static_cast<uint32_t>(i / LookUps::kPerUserMax);
    ASSERT_TRUE(resolve(kFirstUser + user).is_ok());
  }
  EXPECT_TRUE(resolve(3000).is_ok());
  EXPECT_EQ(resolve(3000).code(), StatusCode::Unavailable) << "one, and no more";
  EXPECT_TRUE(resolve(std::nullopt).is_ok()) << "the daemon's own";
  EXPECT_EQ(resolve(std::nullopt).code(), StatusCode::Unavailable);
  release->set_value();
  run_until([&] { return calls == begun; });
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

TEST_F(ResolverTest, WithoutDescriptorsTheNameIsNotLookedUpAndTheDaemonLives) {
  Resolver resolver(*loop_, ::getaddrinfo, under_way_);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(Fd(::open("/dev/null", O_RDONLY)).get());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Status refused =
      resolver.resolve("127.0.0.1", 1, [](const Result<std::vector<SocketAddress>>&) { FAIL(); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(refused.code(), StatusCode::ResourceExhausted);
  EXPECT_NE(refused.message().find("no file descriptors left"), std::string::npos);
  int calls = 0;
  ASSERT_TRUE(resolver.resolve("127.0.0.1", 1,
                               [&](const Result<std::vector<SocketAddress>>&) { ++calls; }));
  run_until([&] { return calls == 1; });
}

}  // namespace
}  // namespace braid
