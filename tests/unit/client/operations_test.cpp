// SPDX-License-Identifier: Apache-2.0
#include "open_job_fixture.h"

namespace braid {
namespace {

class OperationsTest : public OpenJobTest {};

TEST_F(OperationsTest, InputFromAnywhereComesBack) {
  const uint32_t tensor = register_tensor(job_, "a", 1000);
  auto values = iota(1000);
  const auto expected = values;
  const braid_ticket ticket = submit(job_, all_reduce(tensor, 1, values.data()));
  EXPECT_NE(ticket, 0u);
  values.assign(1000, 0);  // it was copied: ours again at once
  ASSERT_EQ(braid_wait(job_, ticket, 0), BRAID_OK) << braid_error_message();
  EXPECT_EQ(copied(ticket, 1000), expected);
  const void* data = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(braid_result(job_, ticket, &data, &bytes), BRAID_OK);
  EXPECT_EQ(bytes, 4000u);
  EXPECT_EQ(std::memcmp(data, expected.data(), bytes), 0);
  EXPECT_EQ(daemon_->live_results(), 1u);
  EXPECT_EQ(braid_release(job_, ticket), BRAID_OK);
  EXPECT_EQ(daemon_->live_results(), 0u);
  EXPECT_BRAID_ERROR(braid_result(job_, ticket, &data, &bytes), BRAID_ERROR_NOT_FOUND, "released");
}

TEST_F(OperationsTest, InputInTheArenaIsReadInPlace) {
  const uint32_t tensor = register_tensor(job_, "a", 1000);
  void* memory = nullptr;
  ASSERT_EQ(braid_allocate(job_, 4000, &memory), BRAID_OK);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
  auto* values = static_cast<float*>(memory);
  std::fill(values, values + 1000, 1.0f);
  daemon_->hold_operations();
  const braid_ticket ticket = submit(job_, all_reduce(tensor, 1, values));
  std::fill(values, values + 1000, 2.0f);  // not allowed to trainers: shows that nothing was copied
  daemon_->complete_held();
  ASSERT_EQ(braid_wait(job_, ticket, 0), BRAID_OK);
  EXPECT_EQ(copied(ticket, 1000), std::vector<float>(1000, 2.0f));
  EXPECT_EQ(braid_release(job_, ticket), BRAID_OK);
  EXPECT_EQ(braid_free(job_, memory), BRAID_OK);
  EXPECT_BRAID_ERROR(braid_free(job_, memory), BRAID_ERROR_NOT_FOUND, "braid_allocate");
  EXPECT_BRAID_ERROR(braid_free(job_, this), BRAID_ERROR_NOT_FOUND, "braid_allocate");
  EXPECT_EQ(braid_free(job_, nullptr), BRAID_OK);
}

TEST_F(OperationsTest, InputThatLeavesTheArenaIsRefused) {
  const uint32_t tensor = register_tensor(job_, "a", 17u << 20);  // 68 MiB; the arena has 64
  void* memory = nullptr;
  ASSERT_EQ(braid_allocate(job_, 64, &memory), BRAID_OK);
  const auto operation = all_reduce(tensor, 0, memory);
  EXPECT_INVALID(refused(operation), "input");
  const std::vector<float> elsewhere(17u << 20);
  const auto large = all_reduce(tensor, 0, elsewhere.data());
  EXPECT_BRAID_ERROR(refused(large), BRAID_ERROR_RESOURCE_EXHAUSTED, "arena_bytes");
}

TEST_F(OperationsTest, ManyStepsReuseArenaAndResults) {
  const uint32_t tensor = register_tensor(job_, "a", 1u << 20);  // 4 MiB of 64, 100 times
  const auto values = iota(1u << 20);
  for (uint64_t step = 0; step < 100; ++step) {
    const braid_ticket ticket = done(all_reduce(tensor, step, values.data()));
    ASSERT_EQ(braid_release(job_, ticket), BRAID_OK) << braid_error_message();
  }
}

TEST_F(OperationsTest, TicketsAreLimitedUntilReleased) {
  const uint32_t tensor = register_dynamic(job_, "stream");
  const float value = 1;
  auto operation = all_reduce(tensor, 0, &value);
  operation.dtype = BRAID_FLOAT32;
  operation.count = 1;
  std::vector<braid_ticket> tickets;
  for (uint64_t step = 0; step < 8192; ++step) {
    operation.step = step;
    tickets.push_back(submit(job_, operation));
  }
  operation.step = 8192;
  EXPECT_BRAID_ERROR(refused(operation), BRAID_ERROR_RESOURCE_EXHAUSTED, "braid_release");
  for (const braid_ticket done : tickets) {
    ASSERT_EQ(braid_wait(job_, done, 0), BRAID_OK);
    ASSERT_EQ(braid_release(job_, done), BRAID_OK) << braid_error_message();
  }
  EXPECT_EQ(refused(operation), BRAID_OK) << braid_error_message();
}

TEST_F(OperationsTest, AllGatherComesInTheOrderOfRanks) {
  open({.block_of_rank = {2, 0, 1}}, 0);
  const uint32_t tensor = register_tensor(job_, "a", 4);
  auto operation = all_reduce(tensor, 0, values_.data());
  operation.collective = BRAID_ALL_GATHER;
  const braid_ticket ticket = done(operation);
  const auto all = copied(ticket, 12);
  EXPECT_EQ(std::vector<float>(all.begin(), all.begin() + 4), values_);
  EXPECT_EQ(std::vector<float>(all.begin() + 4, all.end()), std::vector<float>(8, 0.0f));
  const void* data = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(braid_result_of_rank(job_, ticket, 0, &data, &bytes), BRAID_OK);
  EXPECT_EQ(bytes, 16u);
  EXPECT_EQ(std::memcmp(data, values_.data(), bytes), 0);
  EXPECT_INVALID(braid_result_of_rank(job_, ticket, 3, &data, &bytes), "rank 3");
  EXPECT_INVALID(braid_result(job_, ticket, &data, &bytes), "braid_result_of_rank");
}

TEST_F(OperationsTest, ReduceScatterGivesEachRankItsBlock) {
  open({.block_of_rank = {2, 0, 1}}, 1);
  const uint32_t tensor = register_tensor(job_, "a", 2);
  const auto values = iota(6);
  auto operation = all_reduce(tensor, 0, values.data());
  operation.collective = BRAID_REDUCE_SCATTER;
  const braid_ticket ticket = done(operation);
  EXPECT_EQ(copied(ticket, 2), (std::vector<float>{3, 4}));
}

TEST_F(OperationsTest, BroadcastReadsOnlyTheRootsInput) {
  open({.block_of_rank = {0, 1}}, 1);
  const uint32_t tensor = register_tensor(job_, "a", 4);
  auto operation = all_reduce(tensor, 0, nullptr);
  operation.collective = BRAID_BROADCAST;
  operation.root = 0;
  done(operation);
  operation.step = 1;
  operation.root = 1;
  EXPECT_INVALID(refused(operation), "NULL");
  operation.root = 2;
  EXPECT_INVALID(refused(operation), "root");
}

TEST_F(OperationsTest, OnlyTheRootOfAGatherGetsAResult) {
  open({.block_of_rank = {0, 1}}, 1);
  const uint32_t tensor = register_tensor(job_, "a", 2);
  const auto values = iota(2);
  auto operation = all_reduce(tensor, 0, values.data());
  operation.collective = BRAID_GATHER;
  operation.root = 1;
  const braid_ticket at_root = done(operation);
  EXPECT_EQ(copied(at_root, 4), (std::vector<float>{0, 0, 1, 2}));
  operation.step = 1;
  operation.root = 0;
  const braid_ticket elsewhere = done(operation);
  EXPECT_EQ(braid_copy_result(job_, elsewhere, nullptr, 0), BRAID_OK) << braid_error_message();
  operation.step = 2;
  operation.root = 2;
  EXPECT_BRAID_ERROR(refused(operation), BRAID_ERROR_INVALID_ARGUMENT,
                     "root of the gather of 'a' is 2; the job has ranks 0 to 1");
}

TEST_F(OperationsTest, OnlyTheRootsInputIsScattered) {
  open({.block_of_rank = {0, 1}}, 1);
  const uint32_t tensor = register_tensor(job_, "a", 2);
  auto operation = all_reduce(tensor, 0, values_.data());
  operation.collective = BRAID_SCATTER;
  operation.root = 1;
  const braid_ticket at_root = done(operation);
  EXPECT_EQ(copied(at_root, 2), (std::vector<float>{3, 4}));
  operation.step = 1;
  operation.root = 0;
  operation.input = nullptr;
  done(operation);
}

TEST_F(OperationsTest, AnAllToAllIsSplitAsTheCallerSays) {
  open({.block_of_rank = {0, 1, 2}}, 1);
  const uint32_t tensor = register_dynamic(job_, "stream");
  const auto values = iota(6);
  std::vector<uint64_t> to = {1, 2, 3};
  std::vector<uint64_t> from = {0, 2, 5};
  auto operation = all_reduce(tensor, 0, values.data());
  operation.collective = BRAID_ALL_TO_ALL;
  operation.input_splits = to.data();
  operation.output_splits = from.data();
  const braid_ticket ticket = submit(job_, operation);
  to.assign(3, 99);  // they were read
  ASSERT_EQ(braid_wait(job_, ticket, 0), BRAID_OK) << braid_error_message();
  EXPECT_EQ(daemon_->seen().splits, (std::vector<uint64_t>{1, 2, 3, 0, 2, 5}));
  EXPECT_EQ(copied(ticket, 7), (std::vector<float>{2, 3, 0, 0, 0, 0, 0}));
}

TEST_F(OperationsTest, SplitsThatMakeNoSenseAreRefused) {
  const uint32_t tensor = register_dynamic(job_, "stream");
  const auto values = iota(6);
  const uint64_t huge = UINT64_MAX / 4 + 1;
  auto operation = all_reduce(tensor, 0, values.data());
  operation.collective = BRAID_ALL_TO_ALL;
  operation.input_splits = &huge;
  EXPECT_INVALID(refused(operation), "the all-to-all of 'stream' has input_splits only");
  operation.output_splits = &huge;
  EXPECT_INVALID(refused(operation),
                 "input_splits of the all-to-all of 'stream' have more than 281474976710656");
}

TEST_F(OperationsTest, AStepThatIsNoNumberOfAStepIsRefused) {
  const uint32_t tensor = register_dynamic(job_, "stream");
  const auto values = iota(6);
  const auto operation = all_reduce(tensor, UINT64_MAX, values.data());
  EXPECT_BRAID_ERROR(refused(operation), BRAID_ERROR_INVALID_ARGUMENT,
                     "step is 18446744073709551615; right are 0 to 4611686018427387904");
}

TEST_F(OperationsTest, ABarrierHasNoData) {
  const uint32_t tensor = register_dynamic(job_, "stream");
  auto operation = all_reduce(tensor, 0, nullptr);
  operation.collective = BRAID_BARRIER;
  operation.dtype = 99;
  const braid_ticket ticket = done(operation);
  const void* data = &operation;
  size_t bytes = 1;
  EXPECT_EQ(braid_result(job_, ticket, &data, &bytes), BRAID_OK);
  EXPECT_EQ(data, nullptr);
  EXPECT_EQ(bytes, 0u);
  EXPECT_EQ(braid_copy_result(job_, ticket, nullptr, 0), BRAID_OK) << braid_error_message();
}

}  // namespace
}  // namespace braid
