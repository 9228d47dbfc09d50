// SPDX-License-Identifier: Apache-2.0
#include "loop/resolver.h"

#include <atomic>
#include <future>

#include <fcntl.h>
#include <sys/resource.h>

#include "base/fd.h"
#include "loop_testing.h"

namespace braid {
namespace {

using Found = Result<std::vector<SocketAddress>>;

class ResolverTest : public testing::LoopTest {
 protected:
  // Looks up a name whose server does not answer before release().
  Status resolve_slowly(std::optional<uint32_t> user = std::nullopt) {
    const auto look_up = [released = released_, ended = ended_](const char*, const char*,
                                                                const addrinfo*, addrinfo**) {
      released.wait();
      ++*ended;
      return EAI_AGAIN;
    };
    slow_.push_back(std::make_unique<Resolver>(*loop_, look_up, under_way_));
    Status status = slow_.back()->resolve(
        "slow.example", 1,
        [this](const Found& found) {
          EXPECT_EQ(found.status().code(), StatusCode::Unavailable);
          ++answers_;
        },
        user);
    if (status) ++begun_;
    return status;
  }
  // Ends the look-ups, and waits for their answers.
  void release() {
    release_.set_value();
    run_until([this] { return answers_ == begun_; });
  }

  // Not the process's: look-ups that an earlier test has forgotten may still be under way.
  const std::shared_ptr<LookUps> under_way_ = std::make_shared<LookUps>();
  std::promise<void> release_;
  const std::shared_future<void> released_ = release_.get_future().share();
  const std::shared_ptr<std::atomic<int>> ended_ = std::make_shared<std::atomic<int>>(0);
  std::vector<std::unique_ptr<Resolver>> slow_;
  size_t begun_ = 0;
  size_t answers_ = 0;
};

TEST_F(ResolverTest, FindsANumericHostWithoutANameServer) {
  Resolver resolver(*loop_);
  int calls = 0;
  ASSERT_TRUE(resolver
                  .resolve("127.0.0.1", 7410,
                           [&](const Found& found) {
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
  const Status begun =
      resolver.resolve(host, 1, [&](const Found& found) { status = found.status(); });
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
  ASSERT_TRUE(resolver->resolve("127.0.0.1", 1, [&](const Found&) { ++calls; }).is_ok());
  resolver.reset();
  run_rounds();
  EXPECT_EQ(calls, 0);
}

// libuv's pool has four threads, and four names whose servers do not answer would hold up all
// others.
TEST_F(ResolverTest, SlowNamesHoldUpNobodyElse) {
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(resolve_slowly());
  Resolver resolver(*loop_);
  bool is_found = false;
  ASSERT_TRUE(
      resolver.resolve("127.0.0.1", 1, [&](const Found& found) { is_found = found.is_ok(); }));
  run_until([&] { return is_found; });
  EXPECT_EQ(answers_, 0u);
  slow_.resize(4);  // the others are forgotten while their look-ups run
  release_.set_value();
  run_until([&] { return answers_ == 4 && *ended_ == 8; });
  run_rounds();
  EXPECT_EQ(answers_, 4u);
}

TEST_F(ResolverTest, TooManyAtOnceAreRefused) {
  Status refused;
  while (refused && begun_ <= LookUps::kMax) refused = resolve_slowly();
  EXPECT_EQ(refused.code(), StatusCode::Unavailable) << "it may be tried again";
  EXPECT_NE(refused.message().find("'slow.example'"), std::string::npos);
  release();
}

TEST_F(ResolverTest, AUserHasHisShareAndLeavesTheOthersTheirs) {
  for (size_t i = 0; i < LookUps::kPerUserMax; ++i) ASSERT_TRUE(resolve_slowly(1001));
  const Status refused = resolve_slowly(1001);
  EXPECT_EQ(refused.code(), StatusCode::Unavailable) << "it may be tried again";
  for (const char* part : {"'slow.example'", "16 look-ups of user 1001"})
    EXPECT_NE(refused.message().find(part), std::string::npos) << refused.message();
  EXPECT_TRUE(resolve_slowly(1002));
  EXPECT_TRUE(resolve_slowly());
  release();
  EXPECT_TRUE(resolve_slowly(1001)) << "those have ended";
  run_until([&] { return answers_ == begun_; });
}

TEST_F(ResolverTest, SlowNamesOfManyUsersShutNobodyOut) {
  constexpr uint32_t kFirstUser = 2000;
  for (size_t i = 0; i < LookUps::kMax; ++i) {
    const auto user = static_cast<uint32_t>(i / LookUps::kPerUserMax);
    ASSERT_TRUE(resolve_slowly(kFirstUser + user));
  }
  EXPECT_TRUE(resolve_slowly(3000));
  EXPECT_EQ(resolve_slowly(3000).code(), StatusCode::Unavailable) << "one, and no more";
  EXPECT_TRUE(resolve_slowly()) << "the daemon's own";
  EXPECT_EQ(resolve_slowly().code(), StatusCode::Unavailable);
  release();
}

TEST_F(ResolverTest, MayBeUsedAgainFromItsCallback) {
  Resolver resolver(*loop_);
  int calls = 0;
  Resolver::Callback again = [&](const Found&) {
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
  const Status refused = resolver.resolve("127.0.0.1", 1, [](const Found&) { FAIL(); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(refused.code(), StatusCode::ResourceExhausted);
  EXPECT_NE(refused.message().find("no file descriptors left"), std::string::npos);
  int calls = 0;
  ASSERT_TRUE(resolver.resolve("127.0.0.1", 1, [&](const Found&) { ++calls; }));
  run_until([&] { return calls == 1; });
}

}  // namespace
}  // namespace braid
