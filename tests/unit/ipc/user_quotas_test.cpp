// SPDX-License-Identifier: Apache-2.0
#include "ipc/user_quotas.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uid_t kAnn = 1000;
constexpr uid_t kBob = 1001;

std::shared_ptr<UserQuotas> make_quotas(UserResource resource, uint64_t max,
                                        std::set<uid_t> exempt = {}) {
  UserLimits limits;
  const bool is_memory = std::ranges::find(kMemoryResources, resource) != kMemoryResources.end();
  (is_memory ? limits.memory_of_user : limits[resource]) = max;
  return std::make_shared<UserQuotas>(limits, std::move(exempt));
}

void expect_parts(const Status& refused, std::initializer_list<const char*> parts) {
  EXPECT_EQ(refused.code(), StatusCode::ResourceExhausted);
  for (const char* part : parts)
    EXPECT_NE(refused.message().find(part), std::string::npos) << part << ": " << refused.message();
}

TEST(UserQuotasTest, AnAmountInStepsIsToldSeldomAndNeverTooLow) {
  const auto quotas = make_quotas(UserResource::BufferBytes, 100);
  UserCharge charge(quotas, kAnn, UserResource::BufferBytes);
  const auto set = [&](uint64_t amount) {
    EXPECT_TRUE(charge.set_in_steps(amount, 10).is_ok()) << amount;
    return quotas->used(kAnn, UserResource::BufferBytes);
  };
  EXPECT_EQ(set(1), 10u);
  EXPECT_EQ(set(10), 10u);
  EXPECT_EQ(set(11), 20u);
  EXPECT_EQ(set(10), 20u) << "it may be more again at once";
  EXPECT_EQ(set(95), 100u);
  EXPECT_EQ(set(81), 100u);
  EXPECT_EQ(set(80), 80u);
  EXPECT_EQ(set(0), 0u);
  EXPECT_EQ(set(100), 100u);
  EXPECT_FALSE(charge.set_in_steps(101, 10).is_ok());
  EXPECT_EQ(quotas->used(kAnn, UserResource::BufferBytes), 100u);
}

TEST(UserQuotasTest, NobodyIsRefusedForTheSizeOfAStep) {
  const auto quotas = make_quotas(UserResource::BufferBytes, 25);
  UserCharge one(quotas, kAnn, UserResource::BufferBytes);
  UserCharge other(quotas, kAnn, UserResource::BufferBytes);
  ASSERT_TRUE(one.set_in_steps(11, 10).is_ok());
  ASSERT_TRUE(other.set_in_steps(4, 10).is_ok());
  EXPECT_EQ(quotas->used(kAnn, UserResource::BufferBytes), 24u);
  EXPECT_TRUE(other.set_in_steps(5, 10).is_ok());
  EXPECT_FALSE(other.set_in_steps(6, 10).is_ok());
  EXPECT_EQ(other.amount(), 5u);
}

TEST(UserQuotasTest, EachUserHasALimitOfItsOwn) {
  const auto quotas = make_quotas(UserResource::Jobs, 2);
  EXPECT_TRUE(quotas->take(kAnn, UserResource::Jobs, 2).is_ok());
  const Status refused = quotas->take(kAnn, UserResource::Jobs, 1);
  expect_parts(refused, {"user 1000 has 2 jobs", "1 more", "the 2 that client.user_jobs_max"});
  EXPECT_TRUE(quotas->take(kBob, UserResource::Jobs, 2).is_ok());
  EXPECT_TRUE(quotas->take(kAnn, UserResource::Tensors, 1'000'000).is_ok());
  quotas->give_back(kAnn, UserResource::Jobs, 1);
  EXPECT_TRUE(quotas->take(kAnn, UserResource::Jobs, 1).is_ok());
}

TEST(UserQuotasTest, WhatIsRefusedIsNotTaken) {
  const auto quotas = make_quotas(UserResource::ArenaBytes, 100);
  EXPECT_TRUE(quotas->take(kAnn, UserResource::ArenaBytes, 60).is_ok());
  EXPECT_FALSE(quotas->take(kAnn, UserResource::ArenaBytes, 41).is_ok());
  EXPECT_FALSE(quotas->take(kAnn, UserResource::ArenaBytes, UINT64_MAX).is_ok());
  EXPECT_EQ(quotas->used(kAnn, UserResource::ArenaBytes), 60u);
  EXPECT_TRUE(quotas->take(kAnn, UserResource::ArenaBytes, 40).is_ok());
}

TEST(UserQuotasTest, OtherLimitsTakeNothingFromAnybody) {
  const auto quotas = make_quotas(UserResource::Jobs, 3);
  EXPECT_TRUE(quotas->take(kAnn, UserResource::Jobs, 3).is_ok());
  UserLimits lower;
  lower[UserResource::Jobs] = 2;
  lower.memory_of_all = 77;
  quotas->set_limits(lower);
  EXPECT_EQ(quotas->used(kAnn, UserResource::Jobs), 3u);
  EXPECT_EQ(quotas->memory_of_all(), 77u);
  expect_parts(quotas->take(kAnn, UserResource::Jobs, 1), {"beyond the 2 that"});
  EXPECT_FALSE(quotas->take(kBob, UserResource::ResultBytes, 78).is_ok());
  quotas->give_back(kAnn, UserResource::Jobs, 2);
  EXPECT_TRUE(quotas->take(kAnn, UserResource::Jobs, 1).is_ok());
}

TEST(UserQuotasTest, LowerLimitsOfAllHoldForDescriptorsThatAreTakenAlready) {
  UserLimits limits;
  limits.descriptors_of_all = 100;
  UserQuotas quotas(limits, {});
  EXPECT_TRUE(quotas.take(kAnn, UserResource::Descriptors, 40).is_ok());
  limits.descriptors_of_all = 10;
  quotas.set_limits(limits);
  EXPECT_FALSE(quotas.take(kBob, UserResource::Descriptors, 1).is_ok());
}

TEST(UserQuotasTest, SomeUsersHaveNoLimitOfTheirOwn) {
  const auto quotas = make_quotas(UserResource::Connections, 1, {0});
  EXPECT_TRUE(quotas->take(0, UserResource::Connections, 1000).is_ok());
  EXPECT_FALSE(quotas->take(kAnn, UserResource::Connections, 2).is_ok());
}

TEST(UserQuotasTest, ResultMemoryHasALimitOfAllThatHoldsForEverybody) {
  UserLimits limits;
  limits.memory_of_user = 70;
  limits.memory_of_all = 100;
  UserQuotas quotas(limits, {0});
  EXPECT_TRUE(quotas.take(kAnn, UserResource::ResultBytes, 70).is_ok());
  const Status refused = quotas.take(0, UserResource::ResultBytes, 31);
  EXPECT_EQ(refused.code(), StatusCode::ResourceExhausted);
  EXPECT_NE(refused.message().find("collective.result_memory_max"), std::string::npos);
  EXPECT_TRUE(quotas.take(kBob, UserResource::ResultBytes, 30).is_ok());
  quotas.give_back(kAnn, UserResource::ResultBytes, 70);
  EXPECT_TRUE(quotas.take(0, UserResource::ResultBytes, 70).is_ok());
}

TEST(UserChargeTest, GoesWithItsOwner) {
  const auto quotas = make_quotas(UserResource::Tensors, 10);
  {
    UserCharge charge(quotas, kAnn, UserResource::Tensors);
    EXPECT_TRUE(charge.set(8).is_ok());
    EXPECT_FALSE(charge.set(11).is_ok());
    EXPECT_EQ(charge.amount(), 8u);
    EXPECT_TRUE(charge.set(3).is_ok());
    EXPECT_EQ(quotas->used(kAnn, UserResource::Tensors), 3u);
    UserCharge moved = std::move(charge);
    EXPECT_EQ(moved.amount(), 3u);
    moved = UserCharge(quotas, kBob, UserResource::Tensors);
    EXPECT_EQ(quotas->used(kAnn, UserResource::Tensors), 0u);
    EXPECT_TRUE(moved.set(10).is_ok());
  }
  EXPECT_EQ(quotas->used(kBob, UserResource::Tensors), 0u);
}

TEST(UserChargeTest, WithoutQuotasEverythingGoes) {
  UserCharge charge;
  EXPECT_TRUE(charge.set(UINT64_MAX).is_ok());
  EXPECT_EQ(charge.amount(), UINT64_MAX);
}

// A job's memory goes where its last chunk does, on an I/O thread.
TEST(UserChargeTest, ComesAndGoesOnAnyThread) {
  const auto quotas = make_quotas(UserResource::ResultBytes, 4000);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (uint64_t round = 1; round <= 1000; ++round) {
        UserCharge charge(quotas, kAnn, UserResource::ResultBytes);
        EXPECT_TRUE(charge.set(round).is_ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(quotas->used(kAnn, UserResource::ResultBytes), 0u);
}

TEST(UserQuotasTest, DescriptorsAreSharedSoThatTheNextUserAlwaysFindsSome) {
  UserLimits limits;
  limits.descriptors_of_all = 1000;
  UserQuotas quotas(limits, {0});
  const auto take_all = [&](uid_t user) {
    while (quotas.take(user, UserResource::Descriptors, 1)) {
    }
    return quotas.used(user, UserResource::Descriptors);
  };
  EXPECT_EQ(take_all(kAnn), 500u);
  for (uid_t user = kBob; user < kBob + 6; ++user) EXPECT_GT(take_all(user), 0u) << user;
  const Status refused = quotas.take(kAnn, UserResource::Descriptors, 1);
  expect_parts(refused, {"user 1000 has 500 file descriptors", "LimitNOFILE"});
  EXPECT_FALSE(quotas.take(0, UserResource::Descriptors, 1000)) << "also for who has no limit";
  quotas.give_back(kAnn, UserResource::Descriptors, 500);
  EXPECT_TRUE(quotas.take(kAnn, UserResource::Descriptors, 100));
  EXPECT_TRUE(quotas.take(0, UserResource::Descriptors, 300));
}

class UserQuotasPagesTest : public ::testing::Test {
 protected:
  UserQuotasPagesTest() {
    UserLimits limits;
    limits.memory_of_user = 70;
    limits.memory_of_all = 100;
    limits.shared_bytes = [this] { return shared_bytes_; };
    quotas_ = std::make_shared<UserQuotas>(limits, std::set<uid_t>{0});
  }

  uint64_t shared_bytes_ = 1000;
  std::shared_ptr<UserQuotas> quotas_;
};

TEST_F(UserQuotasPagesTest, InputsWithoutPagesAndResultsShareTheMemory) {
  ASSERT_TRUE(quotas_->take(kBob, UserResource::ResultBytes, 50).is_ok());
  ASSERT_TRUE(quotas_->take(kAnn, UserResource::InputPages, 40).is_ok());
  const Status refused = quotas_->take(0, UserResource::InputPages, 11);
  expect_parts(refused, {"all jobs have 90 bytes", "50 of results", "40 of inputs", "0 of buffers",
                         "11 more of inputs", "the 100 that collective.result_memory_max"});
  EXPECT_FALSE(quotas_->take(kBob, UserResource::ResultBytes, 11).is_ok());
  EXPECT_EQ(quotas_->result_bytes(), 50u);
}

TEST_F(UserQuotasPagesTest, AUserIsToldTheKey) {
  const Status refused = quotas_->take(kAnn, UserResource::InputPages, 71);
  expect_parts(refused, {"user 1000 has 0 bytes", "71 more of inputs",
                         "the 70 that client.user_result_bytes_max"});
}

TEST_F(UserQuotasPagesTest, AUsersResultsPagesAndBuffersAreOneSum) {
  ASSERT_TRUE(quotas_->take(kAnn, UserResource::ResultBytes, 30).is_ok());
  ASSERT_TRUE(quotas_->take(kAnn, UserResource::InputPages, 20).is_ok());
  ASSERT_TRUE(quotas_->take(kAnn, UserResource::BufferBytes, 15).is_ok());
  for (const UserResource resource :
       {UserResource::ResultBytes, UserResource::InputPages, UserResource::BufferBytes}) {
    const Status refused = quotas_->take(kAnn, resource, 6);
    expect_parts(refused,
                 {"user 1000 has 65 bytes", "30 of results, 20 of inputs", "15 of buffers"});
  }
  EXPECT_TRUE(quotas_->take(kBob, UserResource::BufferBytes, 35).is_ok()) << "it has its own";
  EXPECT_FALSE(quotas_->take(kBob, UserResource::BufferBytes, 1).is_ok()) << "of all";
  EXPECT_FALSE(quotas_->take(kAnn, UserResource::BufferBytes, 5).is_ok()) << "of all";
}

// Who goes may have given the arena to somebody else, and its pages are still there.
TEST_F(UserQuotasPagesTest, PagesCountUntilTheyAreGone) {
  const auto use_pages = [this](uid_t user) {
    UserCharge pages(quotas_, user, UserResource::InputPages);
    return pages.set(45);
  };
  EXPECT_TRUE(use_pages(kAnn));
  EXPECT_TRUE(use_pages(kBob)) << "they count as the user's";
  EXPECT_FALSE(use_pages(kAnn));
  EXPECT_EQ(quotas_->used(kAnn, UserResource::LingeringBytes), 45u);
  EXPECT_FALSE(quotas_->take(0, UserResource::ResultBytes, 11).is_ok()) << "and as those of all";
  shared_bytes_ = 20;  // the kernel's word
  EXPECT_TRUE(use_pages(kAnn));
  EXPECT_TRUE(quotas_->take(0, UserResource::ResultBytes, 35).is_ok());
}

TEST_F(UserQuotasPagesTest, WhatLingersCountsUntilTheKernelKnowsOfLess) {
  UserCharge results(quotas_, kAnn, UserResource::ResultBytes);
  ASSERT_TRUE(results.set(45).is_ok());
  results.let_linger();
  EXPECT_EQ(results.amount(), 0u);
  EXPECT_EQ(quotas_->used(kAnn, UserResource::ResultBytes), 0u);
  const Status refused = results.set(26);
  expect_parts(refused, {"45 that processes keep of sessions that are over"});
  EXPECT_TRUE(results.set(25).is_ok());
  shared_bytes_ = 44;
  EXPECT_TRUE(results.set(26).is_ok());
}

}  // namespace
}  // namespace braid
