// SPDX-License-Identifier: Apache-2.0
#include "job/input_arenas.h"

#include <cerrno>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loop/loop_testing.h"

namespace braid {
namespace {

constexpr uint64_t kArenaPage = 4096;
constexpr uint64_t kArena = 64 * kArenaPage;
constexpr uid_t kTrainerUser = 1000;

class InputArenasTest : public testing::LoopTest {
 protected:
  // Its pages are there up to `written`. Returns its number.
  uint32_t add(SharedMemory::Holes holes, uint64_t written) {
    auto made = SharedMemory::create_input("test", kArena, holes);
    EXPECT_TRUE(made) << made.status().message();
    std::fill_n(made->data(), written, uint8_t{1});
    made_ = std::move(*made);
    auto number = arenas_.add(Fd(::fcntl(made_.fd(), F_DUPFD_CLOEXEC, 0)), kArena);
    EXPECT_TRUE(number) << number.status().message();
    return *number;
  }
  uint64_t counted() const { return quotas_->used(kTrainerUser, UserResource::InputPages); }
  UserCharge charge(UserResource resource) { return {quotas_, kTrainerUser, resource}; }

  std::shared_ptr<UserQuotas> quotas_ =
      std::make_shared<UserQuotas>(UserLimits(), std::set<uid_t>());
  WorkThread worker_{*loop_, "test"};
  InputArenas arenas_{worker_, UINT64_MAX, charge(UserResource::ArenaBytes),
                      charge(UserResource::InputPages), charge(UserResource::Descriptors)};
  SharedMemory made_;
};

TEST_F(InputArenasTest, AHoleThatIsMadeLaterCounts) {
  const uint32_t arena = add(SharedMemory::Holes::Possible, 4 * kArenaPage);
  EXPECT_TRUE(arenas_.count_missing_pages(arena, 0, 4 * kArenaPage));
  EXPECT_EQ(counted(), 0u);
  ASSERT_TRUE(made_.give_back(0, 2 * kArenaPage));
  EXPECT_TRUE(arenas_.count_missing_pages(arena, 0, 4 * kArenaPage));
  EXPECT_EQ(counted(), 2 * kArenaPage);
}

// Seen at what the kernel would tell another user: that it knows of no page.
TEST_F(InputArenasTest, WhereHolesAreImpossibleTheKernelIsAskedOnce) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  const uint32_t arena = add(SharedMemory::Holes::Never, 4 * kArenaPage);
  if (!made_.keeps_pages()) GTEST_SKIP() << "this kernel has no seal against holes";
  EXPECT_TRUE(arenas_.count_missing_pages(arena, 0, 4 * kArenaPage));
  ASSERT_EQ(::fchmod(made_.fd(), S_IRUSR), 0);
  const auto count_as_another = [&](uint64_t offset, uint64_t bytes) {
    EXPECT_EQ(::syscall(SYS_setresuid, -1, 65534, -1), 0);  // of this thread alone
    EXPECT_TRUE(arenas_.count_missing_pages(arena, offset, bytes));
    EXPECT_EQ(::syscall(SYS_setresuid, -1, 0, -1), 0);
    return counted();
  };
  EXPECT_EQ(count_as_another(0, 4 * kArenaPage), 0u);
  EXPECT_EQ(count_as_another(kArenaPage + 10, 100), 0u);
  EXPECT_EQ(count_as_another(4 * kArenaPage, kArenaPage), kArenaPage)
      << "this page was not looked at before";
  EXPECT_EQ(count_as_another(0, 5 * kArenaPage), kArenaPage) << "it counts once";
}

TEST_F(InputArenasTest, WhatLiesOutsideOfTheArenaIsNotLookedAt) {
  const uint32_t arena = add(SharedMemory::Holes::Never, 0);
  EXPECT_TRUE(arenas_.count_missing_pages(arena, kArena, 100));
  EXPECT_TRUE(arenas_.count_missing_pages(arena, UINT64_MAX, 100));
  EXPECT_EQ(counted(), 0u);
  EXPECT_TRUE(arenas_.count_missing_pages(arena, kArena - 1, UINT64_MAX));
  EXPECT_EQ(counted(), kArenaPage);
}

}  // namespace
}  // namespace braid
