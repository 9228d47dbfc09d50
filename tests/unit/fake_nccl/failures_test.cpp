// SPDX-License-Identifier: Apache-2.0
// Meeting, what is refused, what never ends, and aborts.
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fake_cuda/driver_testing.h"
#include "ranks.h"

namespace fake_nccl_testing {
namespace {

using ::testing::HasSubstr;

constexpr auto kType = NcclType::Float32;
constexpr auto kSum = NcclReduction::Sum;

std::string last_error() { return ncclGetLastError(nullptr); }

NcclResult all_reduce(const Rank& rank, const DeviceBytes& memory, std::size_t count = 1) {
  return ncclAllReduce(memory.at(), memory.at(), count, kType, kSum, rank.comm, rank.stream);
}

TEST(FakeNcclMeeting, RefusesTwoRanksOfOneGpu) {
  run_processes(2, {}, [](Rank& rank) {
    rank.open_gpu(1);
    EXPECT_EQ(rank.try_init(rank.comm), NcclResult::InvalidUsage);
    EXPECT_EQ(last_error(), "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1");
    EXPECT_EQ(rank.comm, nullptr);
  });
}

TEST(FakeNcclMeeting, RefusesTwoVersions) {
  run_processes(
      2, {},
      [](Rank& rank) {
        EXPECT_EQ(rank.try_init(rank.comm), NcclResult::InvalidUsage);
        EXPECT_THAT(last_error(), HasSubstr("rank 0 and rank 1 have 22809 and 22602"));
        int version = 0;
        EXPECT_NCCL(ncclGetVersion(&version));
        EXPECT_EQ(version, rank.rank == 0 ? 22809 : 22602);
      },
      [](int rank) {
        if (rank == 1) setenv("FAKE_NCCL_VERSION", "22602", 1);
      });
}

TEST(FakeNcclMeeting, EndsWhenARankDoesNotCome) {
  run_processes(2, {{"FAKE_NCCL_INIT_SECONDS", "1"}}, [](Rank& rank) {
    if (rank.rank == 1) return;
    EXPECT_EQ(rank.try_init(rank.comm), NcclResult::SystemError);
    EXPECT_EQ(last_error(), "rank 1 has not come in time");
    EXPECT_EQ(ncclCommInitRank(&rank.comm, 3, rank.common.share_id(1, 0), 1),
              NcclResult::InvalidArgument);
    EXPECT_EQ(last_error(), "rank 1 is one of 3, others are of 2");
  });
}

TEST(FakeNcclMeeting, RefusesWrongRanksAndIds) {
  run_threads(1, {}, [](Rank& rank) {
    NcclUniqueId none{};
    EXPECT_EQ(ncclCommInitRank(&rank.comm, 1, none, 0), NcclResult::InvalidArgument);
    EXPECT_THAT(last_error(), HasSubstr("not one of ncclGetUniqueId"));
    NcclUniqueId id{};
    EXPECT_NCCL(ncclGetUniqueId(&id));
    EXPECT_EQ(ncclCommInitRank(&rank.comm, 2, id, 2), NcclResult::InvalidArgument);
    EXPECT_NCCL(ncclCommInitRank(&rank.comm, 1, id, 0));
    NcclComm again = nullptr;
    EXPECT_NE(ncclCommInitRank(&again, 1, id, 0), NcclResult::Success);
    EXPECT_EQ(again, nullptr);
  });
}

TEST(FakeNcclMeeting, HangsIfItIsTold) {
  run_processes(
      2, {},
      [](Rank& rank) {
        if (rank.rank == 0) {
          std::atomic<int> thread_id = 0;
          std::thread([&] {
            rank.open_gpu(0);
            thread_id = gettid();
            (void)rank.try_init(rank.comm);
            ADD_FAILURE() << "ncclCommInitRank returned";
          }).detach();
          EXPECT_TRUE(wait_until([&] { return thread_id != 0; }));
          EXPECT_TRUE(fake_cuda_testing::wait_until_held(thread_id));
          own_process::end_with_failures();
        }
      },
      [](int) { setenv("FAKE_NCCL_INIT_HANG", "1", 1); });
}

TEST(FakeNcclAbort, EndsWhatHangs) {
  run_threads(2, {{"FAKE_NCCL_HANG", "3"}}, [](Rank& rank) {
    rank.init();
    DeviceBytes memory(4);
    EXPECT_NCCL(all_reduce(rank, memory));
    rank.synchronize();
    // The third of both threads: one rank hangs by itself, and the other one waits for it.
    EXPECT_NCCL(all_reduce(rank, memory));
    EXPECT_FALSE(rank.is_idle());
    EXPECT_EQ(async_error(rank.comm), NcclResult::Success);
    std::thread([&] { EXPECT_NCCL(ncclCommAbort(rank.comm)); }).join();
    rank.synchronize();
    EXPECT_EQ(ncclCommAbort(rank.comm), NcclResult::InvalidArgument);
    NcclResult error = NcclResult::Success;
    EXPECT_EQ(ncclCommGetAsyncError(rank.comm, &error), NcclResult::InvalidArgument);
    EXPECT_EQ(all_reduce(rank, memory), NcclResult::InvalidArgument);
  });
}

TEST(FakeNcclAbort, EndsAllKernelsOfTheCommunicator) {
  run_threads(2, {}, [](Rank& rank) {
    rank.init();
    DeviceBytes memory(4);
    if (rank.rank == 1) return;
    const CUstream other = rank.make_stream();
    EXPECT_NCCL(all_reduce(rank, memory));
    EXPECT_NCCL(ncclAllReduce(memory.at(), memory.at(), 1, kType, kSum, rank.comm, other));
    EXPECT_NCCL(ncclCommAbort(rank.comm));
    rank.synchronize();
    EXPECT_EQ(cuStreamSynchronize(other), CUDA_SUCCESS);
    EXPECT_TRUE(wait_until([] {
      fake_nccl_counts counts{};
      fake_nccl_get_counts(&counts);
      return counts.pending_kernels == 0;
    }));
  });
}

TEST(FakeNcclAbort, EndsTheWaitForAKilledRank) {
  run_processes(2, {}, [](Rank& rank) {
    rank.init();
    DeviceBytes memory(4);
    EXPECT_NCCL(all_reduce(rank, memory));
    rank.synchronize();
    if (rank.rank == 1) raise(SIGKILL);
    EXPECT_NCCL(all_reduce(rank, memory));
    EXPECT_EQ(async_error(rank.comm), NcclResult::Success);
    EXPECT_FALSE(rank.is_idle());
    EXPECT_NCCL(ncclCommAbort(rank.comm));
    rank.synchronize();
  });
}

// The kernel keeps another thread in cuMemFree, which keeps all other calls of the driver waiting.
TEST(FakeNcclAbort, EndsTheKernelBeforeItCallsTheDriver) {
  run_threads(1, {{"FAKE_NCCL_HANG", "1"}, {"FAKE_CUDA_FREE", "locks"}}, [](Rank& rank) {
    rank.init();
    DeviceBytes memory(4);
    const DeviceBytes other(4);
    EXPECT_NCCL(all_reduce(rank, memory));
    std::atomic<int> thread_id = 0;
    CUcontext context = nullptr;
    EXPECT_EQ(cuCtxGetCurrent(&context), CUDA_SUCCESS);
    std::thread freeing([&] {
      EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
      thread_id = gettid();
      EXPECT_EQ(cuMemFree(reinterpret_cast<CUdeviceptr>(other.at())), CUDA_SUCCESS);
    });
    EXPECT_TRUE(wait_until([&] { return thread_id != 0; }));
    EXPECT_TRUE(fake_cuda_testing::wait_until_held(thread_id));
    EXPECT_NCCL(ncclCommAbort(rank.comm));
    freeing.join();
    rank.synchronize();
  });
}

TEST(FakeNcclErrors, OfMemoryThatWasFreedAreTheDevices) {
  run_threads(1, {{"FAKE_CUDA_FREE", "now"}}, [](Rank& rank) {
    rank.init();
    DeviceBytes memory(4);
    fake_cuda_testing::Gate gate;
    gate.hold(rank.stream);
    EXPECT_NCCL(all_reduce(rank, memory));
    EXPECT_EQ(cuMemFree(reinterpret_cast<CUdeviceptr>(memory.at())), CUDA_SUCCESS);
    gate.open();
    EXPECT_EQ(cuStreamSynchronize(rank.stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(ncclCommDestroy(rank.comm), NcclResult::UnhandledCudaError);
  });
}

TEST(FakeNcclErrors, OfTheSettingsHangUntilTheAbort) {
  run_processes(
      2, {},
      [](Rank& rank) {
        rank.init();
        DeviceBytes memory(4);
        EXPECT_NCCL(all_reduce(rank, memory));
        rank.synchronize();
        EXPECT_EQ(async_error(rank.comm), NcclResult::Success);
        EXPECT_NCCL(all_reduce(rank, memory));
        if (rank.rank == 0) {
          EXPECT_TRUE(
              wait_until([&] { return async_error(rank.comm) == NcclResult::RemoteError; }));
        }
        EXPECT_FALSE(rank.is_idle());
        EXPECT_NCCL(ncclCommAbort(rank.comm));
        rank.synchronize();
      },
      [](int rank) {
        if (rank == 0) setenv("FAKE_NCCL_ASYNC_ERROR", "2:6", 1);
      });
}

/// Each of two ranks makes its call. Both hear of it, by the first text that is written.
void expect_mismatch(const std::function<NcclResult(const Rank&, const DeviceBytes&)>& call,
                     const std::string& first, const std::string& second) {
  run_processes(2, {}, [&](Rank& rank) {
    rank.init();
    const DeviceBytes memory(64);
    EXPECT_NCCL(call(rank, memory));
    EXPECT_TRUE(wait_until([&] { return async_error(rank.comm) == NcclResult::InvalidUsage; }));
    EXPECT_THAT(last_error(), HasSubstr("rank 0 calls " + first));
    EXPECT_THAT(last_error(), HasSubstr("rank 1 calls " + second));
    EXPECT_FALSE(rank.is_idle());
    rank.common.raise(rank.rank == 0 ? 0 : 1);
    rank.common.wait_for(rank.rank == 0 ? 1 : 0);
    EXPECT_NCCL(ncclCommAbort(rank.comm));
    rank.synchronize();
  });
}

TEST(FakeNcclMismatch, OfCollectivesNamesBoth) {
  expect_mismatch(
      [](const Rank& rank, const DeviceBytes& memory) {
        return rank.rank == 0
                   ? all_reduce(rank, memory, 4)
                   : ncclAllGather(memory.at(0), memory.at(32), 4, kType, rank.comm, rank.stream);
      },
      "ncclAllReduce (4 float32, sum)", "ncclAllGather (4 float32)");
}

TEST(FakeNcclMismatch, OfRootsNamesBoth) {
  expect_mismatch(
      [](const Rank& rank, const DeviceBytes& memory) {
        return ncclBroadcast(memory.at(), memory.at(), 2, kType, rank.rank, rank.comm, rank.stream);
      },
      "ncclBroadcast (2 float32, root 0)", "ncclBroadcast (2 float32, root 1)");
}

TEST(FakeNcclMismatch, OfReductionsTypesAndCountsNamesBoth) {
  expect_mismatch(
      [](const Rank& rank, const DeviceBytes& memory) {
        return rank.rank == 0 ? ncclReduce(memory.at(), memory.at(), 3, NcclType::Float16,
                                           NcclReduction::Max, 0, rank.comm, rank.stream)
                              : ncclReduce(memory.at(), nullptr, 2, NcclType::Bfloat16,
                                           NcclReduction::Min, 0, rank.comm, rank.stream);
      },
      "ncclReduce (3 float16, max, root 0)", "ncclReduce (2 bfloat16, min, root 0)");
}

TEST(FakeNcclMismatch, OfAReceiveNamesBoth) {
  run_processes(2, {}, [](Rank& rank) {
    rank.init();
    DeviceBytes memory(64);
    if (rank.rank == 0) {
      EXPECT_NCCL(ncclSend(memory.at(), 4, kType, 1, rank.comm, rank.stream));
      rank.synchronize();
    } else {
      EXPECT_NCCL(ncclRecv(memory.at(), 3, kType, 0, rank.comm, rank.stream));
    }
    EXPECT_TRUE(wait_until([&] { return async_error(rank.comm) == NcclResult::InvalidUsage; }));
    EXPECT_THAT(last_error(), HasSubstr("rank 1 calls ncclSend or ncclRecv (3 float32)"));
    EXPECT_THAT(last_error(), HasSubstr("rank 0 calls ncclSend or ncclRecv (4 float32)"));
    EXPECT_NCCL(ncclCommAbort(rank.comm));
    rank.synchronize();
  });
}

TEST(FakeNcclArguments, AreChecked) {
  own_process::run({{"FAKE_CUDA_DEVICES", "2"}}, [] {
    Common common;
    Rank rank(0, 1, common);
    rank.open_gpu(1);
    const CUstream stream_of_other = rank.stream;
    const DeviceBytes of_other(16);
    rank.open_gpu(0);
    rank.init();
    const DeviceBytes memory(16);
    std::vector<float> host(4);
    const auto broadcast = [&](const void* from, void* to, std::size_t count, NcclType type,
                               int root, CUstream stream) {
      return ncclBroadcast(from, to, count, type, root, rank.comm, stream);
    };
    const auto refused = [&](NcclResult result, const char* text) {
      EXPECT_EQ(result, NcclResult::InvalidArgument);
      EXPECT_THAT(last_error(), HasSubstr(text));
    };
    void* const at = memory.at();
    refused(broadcast(host.data(), at, 4, kType, 0, rank.stream), "sendbuff is not memory of the");
    refused(broadcast(at, host.data(), 4, kType, 0, rank.stream), "recvbuff is not memory of the");
    refused(broadcast(of_other.at(), at, 4, kType, 0, rank.stream), "communicator's device, 0");
    refused(broadcast(at, nullptr, 4, kType, 0, rank.stream), "recvbuff is not memory");
    refused(broadcast(at, at, 5, kType, 0, rank.stream), "sendbuff has 16 bytes, and 20 are");
    refused(broadcast(at, memory.at(4), 3, kType, 0, rank.stream), "overlap");
    refused(broadcast(at, at, 4, static_cast<NcclType>(10), 0, rank.stream), "no such datatype");
    refused(broadcast(at, at, 4, kType, 1, rank.stream), "there is no rank 1 among 1");
    refused(broadcast(at, at, 4, kType, 0, stream_of_other), "stream is not of the");
    refused(broadcast(at, at, SIZE_MAX / 4, kType, 0, rank.stream), "count is too large");
    refused(ncclAllReduce(at, at, 4, kType, static_cast<NcclReduction>(5), rank.comm, rank.stream),
            "no such op");
    EXPECT_NCCL(broadcast(at, at, 4, kType, 0, rank.stream));
    rank.synchronize();
    EXPECT_EQ(cuStreamBeginCapture(rank.stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    EXPECT_EQ(broadcast(at, at, 4, kType, 0, rank.stream), NcclResult::InvalidUsage);
  });
}

TEST(FakeNcclSettings, FailACall) {
  run_threads(1, {{"FAKE_NCCL_FAIL", "ncclGetUniqueId:2"}}, [](Rank&) {
    NcclUniqueId id{};
    EXPECT_NCCL(ncclGetUniqueId(&id));
    EXPECT_EQ(ncclGetUniqueId(&id), NcclResult::InternalError);
    EXPECT_EQ(last_error(), "FAKE_NCCL_FAIL");
    EXPECT_STREQ(ncclGetErrorString(NcclResult::RemoteError),
                 "remote process exited or there was a network error");
    EXPECT_NCCL(ncclGetUniqueId(&id));
    EXPECT_EQ(fake_nccl_calls_of(gettid()), 4U);
    std::string called;
    fake_nccl_thread_calls(
        [](int, const char* function, uint64_t calls, void* to) {
          *static_cast<std::string*>(to) +=
              std::string(function) + ' ' + std::to_string(calls) + ' ';
        },
        &called);
    EXPECT_EQ(called, "ncclGetUniqueId 3 ncclGetErrorString 1 ");
  });
}

TEST(FakeNcclSettings, ThatAreWrongEndTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto use = [](const char* name, const char* value) {
    setenv(name, value, 1);
    int version = 0;
    (void)ncclGetVersion(&version);
  };
  EXPECT_DEATH(use("FAKE_NCCL_HANGS", "1"), "FAKE_NCCL_HANGS='1': right is one of the settings");
  EXPECT_DEATH(use("FAKE_NCCL_HANG", "0"), "right is the number of a collective, from 1");
  EXPECT_DEATH(use("FAKE_NCCL_FAIL", "ncclFoo:1"), "right is FUNCTION:CALL or");
  EXPECT_DEATH(use("FAKE_NCCL_FAIL", "ncclSend:1:9"), "right is FUNCTION:CALL or");
  EXPECT_DEATH(use("FAKE_NCCL_ASYNC_ERROR", "1"), "right is NUMBER:RESULT");
  EXPECT_DEATH(use("FAKE_NCCL_VERSION", "2"), "right is 20900 to 99999");
}

}  // namespace
}  // namespace fake_nccl_testing
