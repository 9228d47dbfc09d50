// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "client_fixture.h"

namespace braid {
namespace {

class OperationsTest : public ClientTest {
 protected:
  void SetUp() override { open({}); }
  void TearDown() override {
    if (job_ != nullptr) {
      EXPECT_EQ(braid_close(job_), BRAID_OK);
    }
  }
  void open(TestDaemon::Options options, uint32_t rank = 0) {
    if (job_ != nullptr) {
      EXPECT_EQ(braid_close(std::exchange(job_, nullptr)), BRAID_OK);
    }
    daemon_.reset();
    auto given = job_options();
    given.rank = rank;
    given.world_size = static_cast<uint32_t>(options.block_of_rank.size());
    start_daemon(std::move(options));
    job_ = open_job(given);
    ASSERT_NE(job_, nullptr);
  }

  static std::vector<float> iota(size_t count) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 1.0f);
    return values;
  }

  std::vector<float> copied(braid_ticket ticket, size_t count) {
    std::vector<float> out(count);
    EXPECT_EQ(braid_copy_result(job_, ticket, out.data(), count * sizeof(float)), BRAID_OK) << braid_error_message();
    return out;
  }

  braid_job* job_ = nullptr;
};

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
  braid_ticket ticket = 0;
  EXPECT_BRAID_ERROR(braid_submit(job_, &operation, &ticket), BRAID_ERROR_INVALID_ARGUMENT, "input");
  const std::vector<float> elsewhere(17u << 20);
  const auto large = all_reduce(tensor, 0, elsewhere.data());
  EXPECT_BRAID_ERROR(braid_submit(job_, &large, &ticket), BRAID_ERROR_RESOURCE_EXHAUSTED, "arena_bytes");
}

TEST_F(OperationsTest, ManyStepsReuseArenaAndResults) {
  const uint32_t tensor = register_tensor(job_, "a", 1u << 20);  // 4 MiB of 64, 100 times
  const auto values = iota(1u << 20);
  for (uint64_t step = 0; step < 100; ++step) {
    const braid_ticket ticket = submit(job_, all_reduce(tensor, step, values.data()));
    ASSERT_EQ(braid_wait(job_, ticket, 0), BRAID_OK) << braid_error_message();
    ASSERT_EQ(braid_release(job_, ticket), BRAID_OK) << braid_error_message();
  }
}

TEST_F(OperationsTest, TestNeverBlocks) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  const auto values = iota(4);
  daemon_->hold_operations();
  const braid_ticket ticket = submit(job_, all_reduce(tensor, 1, values.data()));
  int done = -1;
  EXPECT_EQ(braid_test(job_, ticket, &done), BRAID_OK);
  EXPECT_EQ(done, 0);
  const void* data = nullptr;
  size_t bytes = 0;
  EXPECT_BRAID_ERROR(braid_result(job_, ticket, &data, &bytes), BRAID_ERROR_INVALID_ARGUMENT, "in flight");
  EXPECT_BRAID_ERROR(braid_release(job_, ticket), BRAID_ERROR_INVALID_ARGUMENT, "in flight");
  while (done != 1) {
    daemon_->complete_held();
    ASSERT_EQ(braid_test(job_, ticket, &done), BRAID_OK);
  }
  EXPECT_EQ(braid_release(job_, ticket), BRAID_OK);
}

TEST_F(OperationsTest, WaitEndsAtItsTimeout) {
  const uint32_t tensor = register_tensor(job_, "layer.weight", 4);
  const auto values = iota(4);
  daemon_->hold_operations();
  const braid_ticket ticket = submit(job_, all_reduce(tensor, 7, values.data()));
  EXPECT_BRAID_ERROR(braid_wait(job_, ticket, 20), BRAID_ERROR_DEADLINE_EXCEEDED, "still in flight");
  EXPECT_TRUE(message_has("'layer.weight', step 7")) << braid_error_message();
  daemon_->complete_held();
  EXPECT_EQ(braid_wait(job_, ticket, 0), BRAID_OK) << braid_error_message();
}

TEST_F(OperationsTest, ADaemonThatHangsIsNoticed) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  const auto values = iota(4);
  daemon_->hold_operations();
  auto operation = all_reduce(tensor, 7, values.data());
  operation.timeout_ms = 1;
  const braid_ticket ticket = submit(job_, operation);
  EXPECT_BRAID_ERROR(braid_wait(job_, ticket, 0), BRAID_ERROR_DEADLINE_EXCEEDED, "does not answer");
  int done = 0;
  EXPECT_BRAID_ERROR(braid_test(job_, ticket, &done), BRAID_ERROR_DEADLINE_EXCEEDED, "does not answer");
  EXPECT_EQ(done, 1);
}

TEST_F(OperationsTest, FailureEndsEverythingButWhatWasDone) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  const auto values = iota(4);
  const braid_ticket good = submit(job_, all_reduce(tensor, 1, values.data()));
  ASSERT_EQ(braid_wait(job_, good, 0), BRAID_OK);
  daemon_->hold_operations();
  const braid_ticket bad = submit(job_, all_reduce(tensor, 2, values.data()));
  daemon_->fail_jobs("rank 3 on node 'n2' died");
  EXPECT_BRAID_ERROR(braid_wait(job_, bad, 0), BRAID_ERROR_JOB_FAILED, "rank 3 on node 'n2' died");
  EXPECT_EQ(braid_wait(job_, good, 0), BRAID_OK);
  EXPECT_EQ(copied(good, 4), values);
  int done = 0;
  EXPECT_BRAID_ERROR(braid_test(job_, bad, &done), BRAID_ERROR_JOB_FAILED, "rank 3");
  EXPECT_EQ(done, 1);
  const auto operation = all_reduce(tensor, 3, values.data());
  braid_ticket ticket = 0;
  EXPECT_BRAID_ERROR(braid_submit(job_, &operation, &ticket), BRAID_ERROR_JOB_FAILED, "rank 3");
  const auto options = tensor_options("b", 1);
  uint32_t handle = 0;
  EXPECT_BRAID_ERROR(braid_register(job_, &options, 1, &handle), BRAID_ERROR_JOB_FAILED, "rank 3");
  EXPECT_EQ(braid_release(job_, bad), BRAID_OK);
  EXPECT_EQ(braid_release(job_, good), BRAID_OK);
}

TEST_F(OperationsTest, DaemonDiesWhileThreadsWait) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  const auto values = iota(4);
  daemon_->hold_operations();
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i) {
    const braid_ticket ticket = submit(job_, all_reduce(tensor, i, values.data()));
    threads.emplace_back([&, ticket] {
      if (braid_wait(job_, ticket, 0) == BRAID_ERROR_UNAVAILABLE && message_has("went away")) ++right;
    });
  }
  daemon_->die();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 4);
}

TEST_F(OperationsTest, ThreadsEachGetTheirOwnResult) {
  constexpr int kThreads = 6;
  constexpr uint64_t kSteps = 300;
  std::vector<uint32_t> tensors;
  for (int t = 0; t < kThreads; ++t) tensors.push_back(register_tensor(job_, std::to_string(t).c_str(), 64));
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t step = 0; step < kSteps; ++step) {
        const std::vector<float> values(64, static_cast<float>(t * 1000) + static_cast<float>(step));
        const auto operation = all_reduce(tensors[static_cast<size_t>(t)], step, values.data());
        braid_ticket ticket = 0;
        std::vector<float> out(64);
        if (braid_submit(job_, &operation, &ticket) == BRAID_OK && braid_wait(job_, ticket, 0) == BRAID_OK &&
            braid_copy_result(job_, ticket, out.data(), 256) == BRAID_OK &&
            braid_release(job_, ticket) == BRAID_OK && out == values) {
          ++right;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, kThreads * static_cast<int>(kSteps)) << braid_error_message();
  EXPECT_EQ(daemon_->live_results(), 0u);
}

TEST_F(OperationsTest, AWaitingThreadDoesNotKeepAnotherFromItsResult) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  const auto values = iota(4);
  daemon_->hold_operations();
  const braid_ticket never = submit(job_, all_reduce(tensor, 0, values.data()));
  std::thread leader([&] { EXPECT_EQ(braid_wait(job_, never, 0), BRAID_ERROR_JOB_FAILED); });
  const braid_ticket second = submit(job_, all_reduce(tensor, 1, values.data()));
  EXPECT_EQ(braid_wait(job_, second, 20), BRAID_ERROR_DEADLINE_EXCEEDED);
  const uint32_t late = register_tensor(job_, "late", 4);  // a reply on the socket, which the leader reads
  EXPECT_EQ(late, 1u);
  daemon_->fail_jobs("enough");
  leader.join();
}

TEST_F(OperationsTest, TicketsAreLimitedUntilReleased) {
  const uint32_t tensor = register_dynamic(job_, "stream");
  const float value = 1;
  auto operation = all_reduce(tensor, 0, &value);
  operation.dtype = BRAID_FLOAT32;
  operation.count = 1;
  std::vector<braid_ticket> tickets;
  for (uint64_t step = 0; step < 4096; ++step) {
    operation.step = step;
    tickets.push_back(submit(job_, operation));
  }
  operation.step = 4096;
  braid_ticket ticket = 0;
  EXPECT_BRAID_ERROR(braid_submit(job_, &operation, &ticket), BRAID_ERROR_RESOURCE_EXHAUSTED, "braid_release");
  for (const braid_ticket done : tickets) {
    ASSERT_EQ(braid_wait(job_, done, 0), BRAID_OK);
    ASSERT_EQ(braid_release(job_, done), BRAID_OK) << braid_error_message();
  }
  EXPECT_EQ(braid_submit(job_, &operation, &ticket), BRAID_OK) << braid_error_message();
}

TEST_F(OperationsTest, AFullRingIsWaitedFor) {
  std::vector<uint32_t> tensors;
  for (int i = 0; i < 64; ++i) tensors.push_back(register_tensor(job_, std::to_string(i).c_str(), 1));
  const auto values = iota(64);
  daemon_->ignore_submissions();
  auto operation = all_reduce(0, 0, values.data());
  operation.timeout_ms = 50;
  braid_ticket ticket = 0;
  int code = BRAID_OK;
  int accepted = 0;
  while (code == BRAID_OK && accepted <= 200) {
    code = braid_submit_bucket(job_, &operation, tensors.data(), tensors.size(), &ticket);
    if (code == BRAID_OK) ++accepted;
    ++operation.step;
  }
  EXPECT_EQ(accepted, 8192 / 64);
  EXPECT_EQ(code, BRAID_ERROR_DEADLINE_EXCEEDED);
  EXPECT_TRUE(message_has("submit ring")) << braid_error_message();
}

TEST_F(OperationsTest, ABucketIsOneOperationOfManyTensors) {
  const uint32_t a = register_tensor(job_, "a", 3);
  const uint32_t b = register_tensor(job_, "b", 5);
  const uint32_t tensors[] = {b, a};
  const auto values = iota(8);
  const auto operation = all_reduce(12345, 1, values.data());
  braid_ticket ticket = 0;
  ASSERT_EQ(braid_submit_bucket(job_, &operation, tensors, 2, &ticket), BRAID_OK) << braid_error_message();
  ASSERT_EQ(braid_wait(job_, ticket, 0), BRAID_OK) << braid_error_message();
  EXPECT_EQ(copied(ticket, 8), values);
  EXPECT_EQ(daemon_->last_bucket(), (std::vector<uint32_t>{b, a}));
  const auto again = all_reduce(a, 1, values.data());
  braid_ticket second = 0;
  EXPECT_BRAID_ERROR(braid_submit(job_, &again, &second), BRAID_ERROR_ALREADY_EXISTS, "step 1 of tensor 'a'");
}

TEST_F(OperationsTest, ABucketsTensorsMustFit) {
  const uint32_t a = register_tensor(job_, "a", 3);
  const uint32_t stream = register_dynamic(job_, "stream");
  auto options = tensor_options("d", 3);
  options.dtype = BRAID_FLOAT64;
  uint32_t d = 0;
  ASSERT_EQ(braid_register(job_, &options, 1, &d), BRAID_OK);
  const auto values = iota(64);
  auto operation = all_reduce(0, 1, values.data());
  braid_ticket ticket = 0;
  const auto bucket = [&](std::vector<uint32_t> tensors) {
    return braid_submit_bucket(job_, &operation, tensors.data(), tensors.size(), &ticket);
  };
  EXPECT_BRAID_ERROR(bucket({a, a}), BRAID_ERROR_INVALID_ARGUMENT, "twice");
  EXPECT_BRAID_ERROR(bucket({a, d}), BRAID_ERROR_INVALID_ARGUMENT, "one dtype");
  EXPECT_BRAID_ERROR(bucket({stream}), BRAID_ERROR_INVALID_ARGUMENT, "dynamic");
  EXPECT_BRAID_ERROR(bucket({77}), BRAID_ERROR_NOT_FOUND, "77");
  EXPECT_BRAID_ERROR(bucket({}), BRAID_ERROR_INVALID_ARGUMENT, "tensor_count");
  EXPECT_BRAID_ERROR(bucket(std::vector<uint32_t>(8193, a)), BRAID_ERROR_INVALID_ARGUMENT, "8193");
  operation.collective = BRAID_BROADCAST;
  EXPECT_BRAID_ERROR(bucket({a}), BRAID_ERROR_INVALID_ARGUMENT, "collective");
}

TEST_F(OperationsTest, AllGatherComesInTheOrderOfRanks) {
  TestDaemon::Options options;
  options.block_of_rank = {2, 0, 1};
  open(options, 0);
  const uint32_t tensor = register_tensor(job_, "a", 4);
  const auto values = iota(4);
  auto operation = all_reduce(tensor, 0, values.data());
  operation.collective = BRAID_ALL_GATHER;
  const braid_ticket ticket = submit(job_, operation);
  ASSERT_EQ(braid_wait(job_, ticket, 0), BRAID_OK) << braid_error_message();
  const auto all = copied(ticket, 12);
  EXPECT_EQ(std::vector<float>(all.begin(), all.begin() + 4), values);
  EXPECT_EQ(std::vector<float>(all.begin() + 4, all.end()), std::vector<float>(8, 0.0f));
  const void* data = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(braid_result_of_rank(job_, ticket, 0, &data, &bytes), BRAID_OK);
  EXPECT_EQ(bytes, 16u);
  EXPECT_EQ(std::memcmp(data, values.data(), bytes), 0);
  EXPECT_BRAID_ERROR(braid_result_of_rank(job_, ticket, 3, &data, &bytes), BRAID_ERROR_INVALID_ARGUMENT, "rank 3");
  EXPECT_BRAID_ERROR(braid_result(job_, ticket, &data, &bytes), BRAID_ERROR_INVALID_ARGUMENT,
                     "braid_result_of_rank");
}

TEST_F(OperationsTest, ReduceScatterGivesEachRankItsBlock) {
  TestDaemon::Options options;
  options.block_of_rank = {2, 0, 1};
  open(options, 1);
  const uint32_t tensor = register_tensor(job_, "a", 2);
  const auto values = iota(6);
  auto operation = all_reduce(tensor, 0, values.data());
  operation.collective = BRAID_REDUCE_SCATTER;
  const braid_ticket ticket = submit(job_, operation);
  ASSERT_EQ(braid_wait(job_, ticket, 0), BRAID_OK) << braid_error_message();
  EXPECT_EQ(copied(ticket, 2), (std::vector<float>{3, 4}));
}

TEST_F(OperationsTest, BroadcastReadsOnlyTheRootsInput) {
  TestDaemon::Options options;
  options.block_of_rank = {0, 1};
  open(options, 1);
  const uint32_t tensor = register_tensor(job_, "a", 4);
  auto operation = all_reduce(tensor, 0, nullptr);
  operation.collective = BRAID_BROADCAST;
  operation.root = 0;
  const braid_ticket ticket = submit(job_, operation);
  EXPECT_EQ(braid_wait(job_, ticket, 0), BRAID_OK) << braid_error_message();
  operation.step = 1;
  operation.root = 1;
  braid_ticket second = 0;
  EXPECT_BRAID_ERROR(braid_submit(job_, &operation, &second), BRAID_ERROR_INVALID_ARGUMENT, "NULL");
  operation.root = 2;
  EXPECT_BRAID_ERROR(braid_submit(job_, &operation, &second), BRAID_ERROR_INVALID_ARGUMENT, "root");
}

TEST_F(OperationsTest, ABarrierHasNoData) {
  const uint32_t tensor = register_dynamic(job_, "stream");
  auto operation = all_reduce(tensor, 0, nullptr);
  operation.collective = BRAID_BARRIER;
  operation.dtype = 99;
  const braid_ticket ticket = submit(job_, operation);
  ASSERT_EQ(braid_wait(job_, ticket, 0), BRAID_OK) << braid_error_message();
  const void* data = &operation;
  size_t bytes = 1;
  EXPECT_EQ(braid_result(job_, ticket, &data, &bytes), BRAID_OK);
  EXPECT_EQ(data, nullptr);
  EXPECT_EQ(bytes, 0u);
  EXPECT_EQ(braid_copy_result(job_, ticket, nullptr, 0), BRAID_OK) << braid_error_message();
}

TEST_F(OperationsTest, ArgumentsAreNamed) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  const uint32_t stream = register_dynamic(job_, "stream");
  const auto values = iota(4);
  braid_ticket ticket = 0;
  const auto good = all_reduce(tensor, 0, values.data());
  auto bad = good;
  const auto refused = [&] { return braid_submit(job_, &bad, &ticket); };
  bad.tensor = 9;
  EXPECT_BRAID_ERROR(refused(), BRAID_ERROR_NOT_FOUND, "tensor handle 9");
  bad = good;
  bad.collective = 5;
  EXPECT_BRAID_ERROR(refused(), BRAID_ERROR_INVALID_ARGUMENT, "collective");
  bad = good;
  bad.reduction = 5;
  EXPECT_BRAID_ERROR(refused(), BRAID_ERROR_INVALID_ARGUMENT, "reduction");
  bad = good;
  bad.input = nullptr;
  EXPECT_BRAID_ERROR(refused(), BRAID_ERROR_INVALID_ARGUMENT, "input");
  bad = good;
  bad.struct_size = 8;
  EXPECT_BRAID_ERROR(refused(), BRAID_ERROR_INVALID_ARGUMENT, "struct_size");
  bad = good;
  bad.tensor = stream;
  bad.dtype = 7;
  EXPECT_BRAID_ERROR(refused(), BRAID_ERROR_INVALID_ARGUMENT, "dtype");
  bad.dtype = BRAID_FLOAT64;
  bad.count = 0;
  EXPECT_BRAID_ERROR(refused(), BRAID_ERROR_INVALID_ARGUMENT, "count");
  bad.count = 1ull << 61;
  EXPECT_BRAID_ERROR(refused(), BRAID_ERROR_INVALID_ARGUMENT, "64 bits");
  EXPECT_BRAID_ERROR(braid_submit(job_, &good, nullptr), BRAID_ERROR_INVALID_ARGUMENT, "ticket");
  EXPECT_BRAID_ERROR(braid_submit(nullptr, &good, &ticket), BRAID_ERROR_INVALID_ARGUMENT, "job");
  EXPECT_BRAID_ERROR(braid_wait(job_, 4711, 0), BRAID_ERROR_NOT_FOUND, "4711");
  ticket = submit(job_, good);
  EXPECT_BRAID_ERROR(refused(), BRAID_ERROR_INVALID_ARGUMENT, "count");
  ASSERT_EQ(braid_wait(job_, ticket, 0), BRAID_OK);
  float out[4];
  EXPECT_BRAID_ERROR(braid_copy_result(job_, ticket, out, 15), BRAID_ERROR_INVALID_ARGUMENT, "15 bytes");
  EXPECT_BRAID_ERROR(braid_result(job_, ticket, nullptr, nullptr), BRAID_ERROR_INVALID_ARGUMENT, "data");
}

TEST_F(OperationsTest, RegistrationIsChecked) {
  uint32_t handles[2];
  braid_tensor_options options[] = {tensor_options("a", 1), tensor_options("a", 1)};
  EXPECT_BRAID_ERROR(braid_register(job_, options, 2, handles), BRAID_ERROR_ALREADY_EXISTS, "'a'");
  options[1] = tensor_options("b", 0);
  EXPECT_BRAID_ERROR(braid_register(job_, options, 2, handles), BRAID_ERROR_INVALID_ARGUMENT, "count of tensor 'b'");
  options[1] = tensor_options("b", UINT64_MAX / 2);
  EXPECT_BRAID_ERROR(braid_register(job_, options, 2, handles), BRAID_ERROR_INVALID_ARGUMENT, "count of tensor 'b'");
  options[1] = tensor_options("b", 1);
  options[1].dtype = 7;
  EXPECT_BRAID_ERROR(braid_register(job_, options, 2, handles), BRAID_ERROR_INVALID_ARGUMENT, "dtype of tensor 'b'");
  options[1] = tensor_options("", 1);
  EXPECT_BRAID_ERROR(braid_register(job_, options, 2, handles), BRAID_ERROR_INVALID_ARGUMENT, "name");
  options[1] = tensor_options("b", 1);
  EXPECT_BRAID_ERROR(braid_register(job_, options, 0, handles), BRAID_ERROR_INVALID_ARGUMENT, "tensor_count");
  EXPECT_BRAID_ERROR(braid_register(job_, options, 2, nullptr), BRAID_ERROR_INVALID_ARGUMENT, "tensors");
  ASSERT_EQ(braid_register(job_, options, 2, handles), BRAID_OK) << braid_error_message();
  EXPECT_EQ(handles[0], 0u);
  EXPECT_EQ(handles[1], 1u);
  EXPECT_BRAID_ERROR(braid_register(job_, options, 1, handles), BRAID_ERROR_ALREADY_EXISTS, "'a'");
}

// More than the socket takes at once.
TEST_F(OperationsTest, RegistersManyTensors) {
  std::vector<std::string> names;
  for (int i = 0; i < 20'000; ++i) names.push_back("model.layer." + std::to_string(i) + std::string(40, 'x'));
  std::vector<braid_tensor_options> options;
  for (const auto& name : names) options.push_back(tensor_options(name.c_str(), 1));
  std::vector<uint32_t> handles(names.size());
  ASSERT_EQ(braid_register(job_, options.data(), options.size(), handles.data()), BRAID_OK) << braid_error_message();
  EXPECT_EQ(handles.back(), 19'999u);
}

TEST_F(OperationsTest, AnImpossibleCompletionEndsTheJob) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  const auto values = iota(4);
  daemon_->hold_operations();
  const braid_ticket ticket = submit(job_, all_reduce(tensor, 0, values.data()));
  daemon_->complete_unknown_ticket();
  EXPECT_BRAID_ERROR(braid_wait(job_, ticket, 0), BRAID_ERROR_PROTOCOL, "999999");
}

TEST_F(OperationsTest, AForkedChildIsTurnedAway) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  const auto values = iota(4);
  const auto operation = all_reduce(tensor, 0, values.data());
  const pid_t child = ::fork();
  if (child == 0) {
    braid_ticket ticket = 0;
    const bool right = braid_submit(job_, &operation, &ticket) == BRAID_ERROR_INVALID_ARGUMENT &&
                       message_has("fork") && braid_close(job_) == BRAID_ERROR_INVALID_ARGUMENT;
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  const braid_ticket ticket = submit(job_, operation);
  EXPECT_EQ(braid_wait(job_, ticket, 0), BRAID_OK) << braid_error_message();
}

}  // namespace
}  // namespace braid
