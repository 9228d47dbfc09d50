// SPDX-License-Identifier: Apache-2.0
#include "open_job_fixture.h"

namespace braid {
namespace {

class TimeoutsTest : public OpenJobTest {
 protected:
  void SetUp() override {
    OpenJobTest::SetUp();
    tensor_ = register_tensor(job_, "a", 4);
  }

  braid_ticket submit_one(uint32_t own_ms = 0) {
    auto operation = all_reduce(tensor_, ++step_, values_.data());
    operation.timeout_ms = own_ms;
    return submit(job_, operation);
  }

  void end(braid_ticket ticket) {
    int done = 0;
    while (done != 1) {
      daemon_->complete_held();
      ASSERT_EQ(braid_test(job_, ticket, &done), BRAID_OK) << braid_error_message();
    }
    ASSERT_EQ(braid_release(job_, ticket), BRAID_OK);
  }

  // The timeout of an operation that ends at once.
  uint32_t timeout_of_next(uint32_t own_ms = 0) {
    end(submit_one(own_ms));
    return daemon_->seen().timeouts_ms.back();
  }

  uint32_t tensor_ = 0;
  uint64_t step_ = 0;
};

TEST_F(TimeoutsTest, OperationsWithoutATimeGetTheOneThatWasSetLast) {
  const uint32_t opened = timeout_of_next();
  EXPECT_GT(opened, 0u);
  ASSERT_EQ(braid_set_timeout(job_, opened / 2), BRAID_OK);
  EXPECT_EQ(timeout_of_next(), opened / 2);
  ASSERT_EQ(braid_set_timeout(job_, opened * 3), BRAID_OK);
  EXPECT_EQ(timeout_of_next(), opened * 3);
  EXPECT_EQ(timeout_of_next(70'000), 70'000u);
  ASSERT_EQ(braid_set_timeout(job_, 0), BRAID_OK);
  EXPECT_EQ(timeout_of_next(), opened);
}

TEST_F(TimeoutsTest, AnExtensionIsForOperationsUntilTheFirstOfThemHasEnded) {
  ASSERT_EQ(braid_set_timeout(job_, 60'000), BRAID_OK);
  ASSERT_EQ(braid_extend_timeout(job_, 5'000), BRAID_OK);
  ASSERT_EQ(braid_extend_timeout(job_, 2'000), BRAID_OK);
  daemon_->hold_operations();
  const braid_ticket first = submit_one();
  const braid_ticket second = submit_one(70'000);
  end(first);
  end(second);
  end(submit_one());
  EXPECT_EQ(daemon_->seen().timeouts_ms, (std::vector<uint32_t>{67'000, 77'000, 60'000}));
}

TEST_F(TimeoutsTest, AnOperationFromBeforeDoesNotEndTheExtension) {
  ASSERT_EQ(braid_set_timeout(job_, 60'000), BRAID_OK);
  daemon_->hold_operations();
  const braid_ticket before = submit_one();
  ASSERT_EQ(braid_extend_timeout(job_, 5'000), BRAID_OK);
  end(before);
  end(submit_one());
  EXPECT_EQ(daemon_->seen().timeouts_ms, (std::vector<uint32_t>{60'000, 65'000}));
}

TEST_F(TimeoutsTest, WhatIsTooLongIsTheLongest) {
  ASSERT_EQ(braid_extend_timeout(job_, UINT32_MAX), BRAID_OK);
  EXPECT_EQ(timeout_of_next(70'000), UINT32_MAX);
}

}  // namespace
}  // namespace braid
