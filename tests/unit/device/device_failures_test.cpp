// SPDX-License-Identifier: Apache-2.0
// When something fails, streams go on and results are no numbers.
#include <csignal>
#include <string>
#include <thread>

#include "device_fixture.h"

namespace braid {
namespace {

constexpr size_t kCount = 5 << 20;  // three pieces

class DeviceFailureTest : public DeviceTest {
 protected:
  // A sum that does not end, and a stream that waits for it.
  void await_sum() {
    memory_ = numbers(kCount);
    daemon_->hold_operations();
    ticket_ = submit_device(sum_of(kCount), buffers(numbers(kCount), memory_));
    EXPECT_EQ(braid_stream_wait(job_, ticket_, stream_), BRAID_OK);
  }
  void expect_failed_results() {
    finish_stream(stream_);
    EXPECT_TRUE(are_all(memory_, kCount, -1));
  }
  // Nothing but the test's time limit ends it where the daemon is not told so.
  void await_reason(const std::string& part) {
    while (daemon_->seen().reason.find(part) == std::string::npos) ::usleep(1000);
  }
  int submit_again() { return refused(sum_of(1), buffers(memory_, memory_)); }

  CUdeviceptr memory_ = 0;
  braid_ticket ticket_ = 0;
};

TEST_F(DeviceFailureTest, AJobThatFailsLetsStreamsGoOn) {
  in_process({}, [this] {
    open();
    await_sum();
    daemon_->fail_jobs("rank 3 died");
    expect_failed_results();
    EXPECT_BRAID_ERROR(submit_again(), BRAID_ERROR_JOB_FAILED, "rank 3 died");
    EXPECT_BRAID_ERROR(braid_wait(job_, ticket_, 0), BRAID_ERROR_JOB_FAILED, "rank 3 died");
    close();
  });
}

TEST_F(DeviceFailureTest, ADaemonThatDiesLetsStreamsGoOn) {
  for (const char* queues : {"1", "8"}) {
    in_process({{"FAKE_CUDA_QUEUES", queues}}, [this] {
      open();
      await_sum();
      daemon_->die();
      expect_failed_results();
      EXPECT_EQ(submit_again(), BRAID_ERROR_UNAVAILABLE) << braid_error_message();
      close();
    });
  }
}

// What has ended before is right.
TEST_F(DeviceFailureTest, ResultsThatWereThereStay) {
  in_process({}, [this] {
    open();
    const CUdeviceptr before = numbers(kCount);
    const braid_ticket ticket = submit_device(sum_of(kCount), buffers(before, before));
    EXPECT_EQ(braid_wait(job_, ticket, 0), BRAID_OK) << braid_error_message();
    await_sum();
    daemon_->fail_jobs("rank 3 died");
    expect_failed_results();
    EXPECT_TRUE(are_numbers(before, kCount));
    close();
  });
}

TEST_F(DeviceFailureTest, AThreadThatWaitsForTheSumGetsTheError) {
  in_process({}, [this] {
    open();
    memory_ = numbers(kCount);
    daemon_->hold_operations();
    braid_device_buffers given = buffers(memory_, memory_);
    given.flags = 0;
    ticket_ = submit_device(sum_of(kCount), given);
    std::thread failing([this] { daemon_->fail_jobs("rank 3 died"); });
    EXPECT_BRAID_ERROR(braid_stream_wait(job_, ticket_, stream_), BRAID_ERROR_JOB_FAILED,
                       "rank 3 died");
    failing.join();
    finish_stream(stream_);
    EXPECT_TRUE(are_numbers(memory_, kCount));
    close();
  });
}

TEST_F(DeviceFailureTest, AGpuThatDoesNotComeToItIsNamedAtTheDeadline) {
  in_process({}, [this] {
    open();
    memory_ = numbers(kCount);
    hold(stream_);
    braid_operation sum = sum_of(kCount);
    sum.timeout_ms = 100;
    ticket_ = submit_device(sum, buffers(numbers(kCount), memory_));
    while (braid_check(job_) == BRAID_OK) ::usleep(1000);
    EXPECT_BRAID_ERROR(submit_again(), BRAID_ERROR_DEADLINE_EXCEEDED,
                       "all-reduce of 'device', step 0: the GPU has not come to it");
    // The other ranks hear of it.
    await_reason("the GPU has not come to it");
    go_on();
    EXPECT_EQ(braid_stream_wait(job_, ticket_, stream_), BRAID_ERROR_DEADLINE_EXCEEDED);
    expect_failed_results();
    close();
  });
}

// At each of the calls that a sum makes.
TEST_F(DeviceFailureTest, ACallOfCudaThatFailsEndsTheJob) {
  for (const std::string call :
       {"cuMemcpyDtoHAsync:2", "cuStreamWriteValue32:3", "cuStreamWaitValue32:1",
        "cuMemcpyHtoDAsync:3", "cuStreamBatchMemOp:2", "cuStreamWriteValue32:5",
        "cuEventRecord:2"}) {
    in_process({{"FAKE_CUDA_FAIL", call}}, [&] {
      open();
      memory_ = numbers(kCount);
      const std::string function = call.substr(0, call.find(':'));
      EXPECT_BRAID_ERROR(refused(sum_of(kCount), buffers(numbers(kCount), memory_)),
                         BRAID_ERROR_UNAVAILABLE, function);
      EXPECT_BRAID_ERROR(submit_again(), BRAID_ERROR_UNAVAILABLE, function);
      await_reason(function);
      finish_stream(stream_);
      close();
    });
  }
}

TEST_F(DeviceFailureTest, AJobThatIsClosedLetsStreamsGoOn) {
  in_process({}, [this] {
    open();
    await_sum();
    close();
    expect_failed_results();
  });
}

TEST_F(DeviceFailureTest, AStreamThatStandsStillKeepsNobodyFromClosing) {
  in_process({}, [this] {
    open();
    hold(stream_);
    await_sum();
    close();
    go_on();
    finish_stream(stream_);
  });
}

TEST_F(DeviceFailureTest, AProcessEndsWhileItsStreamsWait) {
  in_process({}, [this] {
    open();
    await_sum();
  });
}

}  // namespace
}  // namespace braid
