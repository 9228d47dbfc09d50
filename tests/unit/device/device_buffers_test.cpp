// SPDX-License-Identifier: Apache-2.0
// What a caller of libbraid's device buffers sees.
#include <string>
#include <thread>

#include "device_fixture.h"

namespace braid {
namespace {

TEST_F(DeviceTest, ResultsComeInStreamOrderAndNobodyWaits) {
  in_process({{"FAKE_CUDA_COPY_GB_S", "10"}}, [this] {
    open();
    constexpr size_t kCount = 10 << 20;  // five pieces
    const CUdeviceptr input = numbers(kCount);
    const CUdeviceptr result = allocate(kCount * sizeof(int32_t));
    hold(stream_);
    const braid_ticket ticket = submit_device(sum_of(kCount), buffers(input, result));
    EXPECT_EQ(braid_stream_wait(job_, ticket, stream_), BRAID_OK);
    EXPECT_FALSE(is_done(ticket));
    fake_cuda_counts counts{};
    fake_cuda_get_counts(&counts);
    EXPECT_EQ(counts.host_waits, 0u);
    go_on();
    finish_stream(stream_);
    EXPECT_TRUE(is_done(ticket));
    EXPECT_TRUE(are_numbers(result, kCount));
    EXPECT_EQ(braid_device_release(job_, ticket), BRAID_OK);
    close();
  });
}

// All streams in one queue, and more pieces than staging memory has room for, none of which ends
// before all copies are queued.
TEST_F(DeviceTest, AnOperationMayBeLargerThanAllStagingMemory) {
  for (const char* queues : {"1", "8"}) {
    in_process({{"FAKE_CUDA_QUEUES", queues}}, [this] {
      TestDaemon::Options options;
      options.result_bytes = 256 << 20;
      open(std::move(options), 256 << 20);
      constexpr size_t kCount = 25 << 20;  // 100 MiB
      const CUdeviceptr memory = numbers(kCount);
      daemon_->hold_operations();
      const braid_ticket ticket = submit_device(sum_of(kCount), buffers(memory, memory));
      ::usleep(50'000);  // a piece that does not wait for its memory writes it now
      while (!is_done(ticket)) daemon_->complete_held();
      finish(ticket);
      EXPECT_TRUE(are_numbers(memory, kCount));
      close();
    });
  }
}

TEST_F(DeviceTest, AResultThatNobodyWantsIsNotCopied) {
  in_process({}, [this] {
    open();
    const braid_ticket ticket = submit_device(sum_of(100), buffers(numbers(100), 0));
    EXPECT_EQ(braid_wait(job_, ticket, 0), BRAID_OK);
    fake_cuda_counts counts{};
    fake_cuda_get_counts(&counts);
    EXPECT_EQ(counts.copies, 1u);
    finish(ticket);
    close();
  });
}

TEST_F(DeviceTest, PlannedTensorsAreTakenByAThread) {
  in_process({}, [this] {
    open();
    constexpr size_t kCount = 5 << 20;  // more than the memory of one copy
    braid_tensor_options options = tensor_options("gradient", kCount);
    options.dtype = BRAID_INT32;
    options.planned = 1;
    const uint32_t gradient = register_one(job_, options);
    const CUdeviceptr memory = numbers(kCount);
    for (uint64_t step = 1; step <= 3; ++step) {
      braid_device_buffers given = buffers(memory, memory);
      given.flags = 0;
      const braid_ticket ticket = submit_device(all_reduce(gradient, step, nullptr), given);
      EXPECT_EQ(braid_wait(job_, ticket, 0), BRAID_OK) << braid_error_message();
      EXPECT_TRUE(is_done(ticket));
      finish(ticket);
      EXPECT_TRUE(are_numbers(memory, kCount));
    }
    close();
  });
}

TEST_F(DeviceTest, ATicketThatIsReleasedAtOnceCostsNothing) {
  in_process({}, [this] {
    open();
    const CUdeviceptr memory = numbers(1000);
    const CUdeviceptr result = numbers(1000);
    for (const uint32_t flags : {0u, BRAID_DEVICE_STREAM_WAITS}) {
      for (int i = 0; i < 20; ++i) {
        braid_device_buffers given = buffers(memory, result);
        given.flags = flags;
        const braid_ticket ticket = submit_device(sum_of(1000), given);
        EXPECT_EQ(braid_device_release(job_, ticket), BRAID_OK);
        EXPECT_BRAID_ERROR(braid_stream_wait(job_, ticket, stream_), BRAID_ERROR_NOT_FOUND,
                           "was released");
      }
    }
    finish(submit_device(sum_of(1000), buffers(memory, result)));
    while (daemon_->live_results() != 0) ::usleep(1000);  // as a later operation's are
    close();
  });
}

TEST_F(DeviceTest, BothWaysHoldTheThreadWhereStreamsCannotWait) {
  for (const Settings& settings :
       {Settings{{"FAKE_CUDA_WORDS", "no"}}, Settings{{"CUDA_LAUNCH_BLOCKING", "1"}},
        Settings{{"BRAID_CUDA_WAIT", "host"}}}) {
    in_process(settings, [this] {
      open();
      constexpr size_t kCount = 5 << 20;
      const CUdeviceptr memory = numbers(kCount);
      daemon_->hold_operations();
      const braid_ticket ticket = submit_device(sum_of(kCount), buffers(memory, memory));
      EXPECT_BRAID_ERROR(braid_wait(job_, ticket, 50), BRAID_ERROR_DEADLINE_EXCEEDED,
                         "still in flight after 50 ms");
      daemon_->complete_held();
      daemon_->complete_held();
      daemon_->complete_held();
      EXPECT_EQ(braid_wait(job_, ticket, 0), BRAID_OK) << braid_error_message();
      finish(ticket);
      EXPECT_TRUE(are_numbers(memory, kCount));
      close();
    });
  }
}

TEST_F(DeviceTest, WrongArgumentsAreNamed) {
  in_process({}, [this] {
    open();
    int on_host = 0;
    const CUdeviceptr memory = numbers(100);
    const braid_operation sum = sum_of(100);
    braid_operation with_input = sum;
    with_input.input = &on_host;
    EXPECT_INVALID(refused(with_input, buffers(memory, memory)), "input of the operation");
    EXPECT_INVALID(refused(sum, buffers(reinterpret_cast<CUdeviceptr>(&on_host), memory)),
                   "is no memory of a GPU");
    EXPECT_INVALID(refused(sum, buffers(0, memory)), "input of the all-reduce");
    braid_device_buffers given = buffers(memory, memory);
    given.flags = 6;
    EXPECT_INVALID(refused(sum, given), "flags");
    given = buffers(memory, memory);
    given.result_of_rank = &given.result;
    EXPECT_INVALID(refused(sum, given), "result_of_rank");
    given.struct_size = 3;
    EXPECT_INVALID(refused(sum, given), "struct_size of braid_device_buffers is 3");
    braid_operation planned = sum;
    planned.tensor = register_tensor(job_, "fixed", 100);
    EXPECT_INVALID(refused(planned, buffers(memory, memory)), "BRAID_DEVICE_STREAM_WAITS");
    planned.tensor = 77;
    EXPECT_EQ(refused(planned, buffers(memory, memory)), BRAID_ERROR_INVALID_ARGUMENT);
    finish(submit_device(sum, buffers(memory, memory)));
    close();
  });
}

TEST_F(DeviceTest, TicketsOfBothKindsAreToldApart) {
  in_process({}, [this] {
    open();
    const CUdeviceptr memory = numbers(100);
    const braid_ticket ticket = submit_device(sum_of(100), buffers(memory, memory));
    const void* data = nullptr;
    size_t bytes = 0;
    EXPECT_INVALID(braid_result(job_, ticket, &data, &bytes), "braid_stream_wait");
    EXPECT_INVALID(braid_release(job_, ticket), "braid_device_release");
    EXPECT_INVALID(braid_unregister(job_, &tensor_, 1), "braid_device_release");
    finish(ticket);
    EXPECT_EQ(braid_unregister(job_, &tensor_, 1), BRAID_OK) << braid_error_message();
    close();
  });
}

TEST_F(DeviceTest, AStreamThatIsBeingCapturedIsRefused) {
  in_process({}, [this] {
    open();
    const CUdeviceptr memory = numbers(100);
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_INVALID(refused(sum_of(100), buffers(memory, memory)), "captured into a CUDA graph");
    EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
    finish(submit_device(sum_of(100), buffers(memory, memory)));
    close();
  });
}

TEST_F(DeviceTest, ARankHasOneGpu) {
  in_process({{"FAKE_CUDA_DEVICES", "2"}}, [this] {
    open();
    const CUdeviceptr memory = numbers(100);
    finish(submit_device(sum_of(100), buffers(memory, memory)));
    CUcontext other = nullptr;
    CUstream stream = nullptr;
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetCurrent(other), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    const CUdeviceptr far = numbers(100);
    braid_device_buffers given = buffers(far, far);
    EXPECT_INVALID(refused(sum_of(100), given), "memory of another GPU");
    given.stream = stream;
    EXPECT_INVALID(refused(sum_of(100), given), "a rank has one GPU");
    close();
  });
}

TEST_F(DeviceTest, AThreadNeedsNoContextOfItsOwn) {
  in_process({}, [this] {
    open();
    const CUdeviceptr memory = numbers(100);
    braid_ticket ticket = 0;
    std::thread([&] {
      ticket = submit_device(sum_of(100), buffers(memory, memory));
      EXPECT_EQ(braid_stream_wait(job_, ticket, stream_), BRAID_OK) << braid_error_message();
      CUcontext current = nullptr;
      EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
      EXPECT_EQ(current, nullptr);
      braid_device_buffers given = buffers(memory, memory);
      given.stream = nullptr;
      EXPECT_INVALID(refused(sum_of(100), given), "this thread has no CUDA context");
    }).join();
    finish(ticket);
    EXPECT_TRUE(are_numbers(memory, 100));
    close();
  });
}

TEST_F(DeviceTest, DriversThatCannotDoItAreNamed) {
  const auto expect_refusal = [this](const Settings& settings, int code, const std::string& part) {
    in_process(settings, [&] {
      open();
      const CUdeviceptr memory = numbers(100);
      EXPECT_BRAID_ERROR(refused(sum_of(100), buffers(memory, memory)), code, part);
      // The rest works.
      EXPECT_EQ(braid_check(job_), BRAID_OK) << braid_error_message();
      close();
    });
  };
  expect_refusal({{"FAKE_CUDA_VERSION", "11040"}}, BRAID_ERROR_UNAVAILABLE, "CUDA 11.4");
  expect_refusal({{"FAKE_CUDA_MISSING", "cuStreamWaitValue32_v2"}}, BRAID_ERROR_UNAVAILABLE,
                 "cuStreamWaitValue32");
  expect_refusal({{"FAKE_CUDA_REGISTER_MAX_MIB", "0"}}, BRAID_ERROR_RESOURCE_EXHAUSTED,
                 "cannot be pinned");
  expect_refusal({{"BRAID_CUDA_WAIT", "never"}}, BRAID_ERROR_INVALID_ARGUMENT,
                 "BRAID_CUDA_WAIT is 'never'");
}

}  // namespace
}  // namespace braid
