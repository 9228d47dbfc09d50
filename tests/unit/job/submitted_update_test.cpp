// SPDX-License-Identifier: Apache-2.0
#include "job/submitted_update.h"

#include <cstring>

#include <gtest/gtest.h>

#include "base/errors_testing.h"

namespace braid {
namespace {

using testing::names;

class SubmittedUpdateTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kArenaBytes = 4096;

  SubmittedUpdateTest() {
    auto made = SharedMemory::create("test", kArenaBytes, SharedMemory::Access::ReadWrite);
    EXPECT_TRUE(made.is_ok());
    arena_ = std::move(*made);
    tensor_.name = std::make_shared<const std::string>("w");
    tensor_.state_slots = 2;
    step_.learning_rate = 0.5;
  }
  Result<UpdateStep> read(uint64_t table, const Signature& signature = {}) {
    if (table <= kArenaBytes - sizeof(proto::UpdateEntry)) {
      const proto::UpdateEntry entry = to_entry(step_);
      std::memcpy(arena_.data() + table, &entry, sizeof(entry));
    }
    return submitted_update(tensor_, signature, arena_, table);
  }

  SharedMemory arena_;
  Tensor tensor_;
  UpdateStep step_;
};

TEST_F(SubmittedUpdateTest, IsReadFromWhereTheSubmissionSays) {
  for (const uint64_t table :
       {uint64_t{0}, uint64_t{64}, kArenaBytes - sizeof(proto::UpdateEntry)}) {
    const auto update = read(table);
    ASSERT_TRUE(update.is_ok()) << table;
    EXPECT_EQ(*update, step_);
  }
}

TEST_F(SubmittedUpdateTest, IsInsideTheArenaAndAligned) {
  for (const uint64_t table : {uint64_t{4}, kArenaBytes - 56, kArenaBytes, uint64_t{1} << 63}) {
    EXPECT_TRUE(names(read(table).status().message(),
                      {"64 bytes", std::to_string(table), "4096 bytes", "8"}));
  }
}

TEST_F(SubmittedUpdateTest, GoesWithSumsAndAverages) {
  Signature signature;
  signature.reduction = Reduction::Average;
  EXPECT_TRUE(read(0, signature));
  signature.reduction = Reduction::Max;
  EXPECT_TRUE(names(read(0, signature).status().message(), {"(max)", "float32 × 0"}));
  signature = {};
  signature.collective = Collective::Broadcast;
  EXPECT_FALSE(read(0, signature));
}

TEST_F(SubmittedUpdateTest, NeedsNoMoreSlotsThanThereAre) {
  step_.momentum = 0.5;
  EXPECT_TRUE(read(0));
  tensor_.state_slots = 1;
  EXPECT_TRUE(names(read(0).status().message(), {"momentum 0.5", "2 state slots", "1"}));
}

TEST_F(SubmittedUpdateTest, WhatMakesNoSenseIsRefused) {
  step_.learning_rate = -1;
  EXPECT_FALSE(read(0));
}

}  // namespace
}  // namespace braid
