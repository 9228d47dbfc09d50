// SPDX-License-Identifier: Apache-2.0
// How much a caller of libbraid's device buffers may have under way.
#include <string>

#include "device_fixture.h"

namespace braid {
namespace {

constexpr int kPiecesMax = 4096;
constexpr int kTicketsMax = 8192;
constexpr size_t kFewElements = 16;

// Nobody waits between these operations, so their results do not come into their inputs' memory.
// The GPU's queues would hold the caller earlier.
const std::map<std::string, std::string> kLongQueues = {{"FAKE_CUDA_DEPTH", "65536"}};

TEST_F(DeviceTest, ACallerWhoNeverWaitsIsHeldUntilTheDeadline) {
  in_process(kLongQueues, [this] {
    open();
    const CUdeviceptr memory = numbers(kFewElements);
    const CUdeviceptr result = allocate(kFewElements * sizeof(int32_t));
    daemon_->hold_operations();
    for (int i = 0; i < kPiecesMax; ++i) {
      const braid_ticket ticket = submit_device(sum_of(kFewElements), buffers(memory, result));
      EXPECT_EQ(braid_device_release(job_, ticket), BRAID_OK);
    }
    braid_operation operation = sum_of(kFewElements);
    operation.timeout_ms = 50;
    EXPECT_EQ(refused(operation, buffers(memory, result)), BRAID_ERROR_DEADLINE_EXCEEDED);
    EXPECT_NE(std::string(braid_error_message()).find("4096 pieces of earlier operations"),
              std::string::npos)
        << braid_error_message();
    EXPECT_EQ(braid_set_patience(job_, 50), BRAID_OK);
    EXPECT_EQ(refused(sum_of(kFewElements), buffers(memory, result)),
              BRAID_ERROR_DEADLINE_EXCEEDED);
    // Nothing was queued, and the job goes on.
    daemon_->complete_held();
    finish(submit_device(sum_of(kFewElements), buffers(memory, result)));
    EXPECT_TRUE(are_numbers(result, kFewElements));
    close();
  });
}

TEST_F(DeviceTest, ACallerWhoNeverWaitsGetsAllResults) {
  for (const char* queues : {"1", "8"}) {
    in_process({{"FAKE_CUDA_QUEUES", queues}, {"FAKE_CUDA_DEPTH", "65536"}}, [this] {
      open();
      const CUdeviceptr memory = numbers(kFewElements);
      const CUdeviceptr result = allocate(kFewElements * sizeof(int32_t));
      braid_operation operation = sum_of(kFewElements);
      operation.timeout_ms = 600'000;  // thousands wait for each other, on a busy machine, too
      braid_ticket last = 0;
      for (int i = 0; i < kPiecesMax + 500; ++i) {
        if (last != 0) {
          EXPECT_EQ(braid_device_release(job_, last), BRAID_OK);
        }
        last = submit_device(operation, buffers(memory, result));
      }
      finish(last);
      EXPECT_TRUE(are_numbers(result, kFewElements));
      close();
    });
  }
}

TEST_F(DeviceTest, TicketsThatAreNotReleasedAreLimited) {
  in_process({}, [this] {
    open();
    const CUdeviceptr memory = numbers(kFewElements);
    const CUdeviceptr result = allocate(kFewElements * sizeof(int32_t));
    braid_ticket last = 0;
    for (int i = 0; i < kTicketsMax; ++i)
      last = submit_device(sum_of(kFewElements), buffers(memory, result));
    EXPECT_EQ(refused(sum_of(kFewElements), buffers(memory, result)),
              BRAID_ERROR_RESOURCE_EXHAUSTED);
    EXPECT_NE(std::string(braid_error_message()).find("call braid_device_release"),
              std::string::npos)
        << braid_error_message();
    EXPECT_EQ(braid_device_release(job_, last), BRAID_OK);
    finish(submit_device(sum_of(kFewElements), buffers(memory, result)));
    close();
  });
}

}  // namespace
}  // namespace braid
