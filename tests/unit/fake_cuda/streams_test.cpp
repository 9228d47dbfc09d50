// SPDX-License-Identifier: Apache-2.0
// Streams, events, words and hardware queues.
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include <cuda.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "driver_testing.h"

namespace fake_cuda_testing {
namespace {

TEST(FakeCudaStreams, AStreamWaitsForTheRecordOfTheTimeOfTheCall) {
  in_process({}, [] {
    const Program program;
    const CUstream one = make_stream(), two = make_stream(), three = make_stream();
    const CUevent event = make_event();
    EXPECT_OK(cuStreamWaitEvent(three, event, 0));  // never recorded: nothing to wait for
    EXPECT_OK(cuStreamSynchronize(three));
    EXPECT_OK(cuEventQuery(event));
    Gate first, second;
    first.hold(one);
    EXPECT_OK(cuEventRecord(event, one));
    EXPECT_OK(cuStreamWaitEvent(two, event, 0));
    second.hold(one);
    EXPECT_OK(cuEventRecord(event, one));
    EXPECT_EQ(cuStreamQuery(two), CUDA_ERROR_NOT_READY);
    first.open();
    EXPECT_OK(cuStreamSynchronize(two));
    EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    second.open();
    EXPECT_OK(cuEventSynchronize(event));
    EXPECT_EQ(counts().host_waits, 3U);
  });
}

TEST(FakeCudaStreams, CopiesOfSeveralStreamsAreOrderedByEvents) {
  in_process({{"DRIFT", "7"}}, [] {
    const Program program;
    constexpr std::size_t kBytes = 3 << 20;
    const Pinned in(kBytes), out(kBytes);
    const CUdeviceptr first = make_device_memory(kBytes), second = make_device_memory(kBytes);
    std::vector<CUstream> streams;
    for (int i = 0; i < 3; ++i) streams.push_back(make_stream());
    const CUevent event = make_event();
    for (std::uint8_t round = 1; round <= 20; ++round) {
      std::memset(in.data, round, kBytes);
      EXPECT_OK(cuMemcpyHtoDAsync(first, in.data, kBytes, streams[0]));
      EXPECT_OK(cuEventRecord(event, streams[0]));
      EXPECT_OK(cuStreamWaitEvent(streams[1], event, 0));
      EXPECT_OK(cuMemcpyDtoDAsync(second, first, kBytes, streams[1]));
      EXPECT_OK(cuEventRecord(event, streams[1]));
      EXPECT_OK(cuStreamWaitEvent(streams[2], event, 0));
      EXPECT_OK(cuMemcpyDtoHAsync(out.data, second, kBytes, streams[2]));
      EXPECT_OK(cuStreamSynchronize(streams[2]));
      EXPECT_EQ(std::memcmp(in.data, out.data, kBytes), 0) << int{round};
    }
    EXPECT_EQ(counts().copies, 60U);
    EXPECT_EQ(counts().unregistered_copies, 0U);
  });
}

TEST(FakeCudaStreams, TheLegacyStreamIsOrderedWithStreamsThatBlock) {
  in_process({}, [] {
    const Program program;
    CUstream blocking = nullptr;
    EXPECT_OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    const CUstream independent = make_stream();
    Gate gate;
    gate.hold(blocking);
    int done = 0;
    EXPECT_EQ(fake_cuda_launch(
                  nullptr, [](void* number) { ++*static_cast<int*>(number); }, &done),
              0);
    EXPECT_EQ(fake_cuda_launch(
                  CU_STREAM_PER_THREAD, [](void*) {}, nullptr),
              0);
    EXPECT_EQ(fake_cuda_launch(
                  independent, [](void*) {}, nullptr),
              0);
    EXPECT_OK(cuStreamSynchronize(independent));
    EXPECT_EQ(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
    gate.open();
    EXPECT_OK(cuStreamSynchronize(nullptr));
    EXPECT_EQ(done, 1);
    EXPECT_OK(cuCtxSynchronize());
  });
}

TEST(FakeCudaStreams, WordsAreComparedAsTheManualSays) {
  in_process({}, [] {
    const Program program;
    const CUstream stream = make_stream();
    Word word;
    struct Case {
      unsigned flags;
      std::uint32_t value, fails, holds;
    };
    for (const Case& one :
         {Case{CU_STREAM_WAIT_VALUE_GEQ, 5, 4, 6},
          Case{CU_STREAM_WAIT_VALUE_GEQ, 0xFFFFFFF0, 0xFFFFFF00, 3},  // cyclic
          Case{CU_STREAM_WAIT_VALUE_EQ, 5, 6, 5}, Case{CU_STREAM_WAIT_VALUE_AND, 6, 8, 2},
          Case{CU_STREAM_WAIT_VALUE_NOR, 0xFFFF0000, 0x0000FFFF, 0x00000FFF}}) {
      word.store(one.fails);
      EXPECT_OK(cuStreamWaitValue32(stream, word.address, one.value, one.flags));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY) << one.flags << " " << one.value;
      word.store(one.holds);
      EXPECT_TRUE(wait_until([&] { return cuStreamQuery(stream) == CUDA_SUCCESS; })) << one.flags;
    }
    EXPECT_EQ(cuStreamWaitValue32(stream, word.address + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
    std::uint32_t unregistered = 0;
    EXPECT_EQ(cuStreamWriteValue32(stream, reinterpret_cast<CUdeviceptr>(&unregistered), 0, 0),
              CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(FakeCudaStreams, ACopyIsSeenBeforeTheWordBehindIt) {
  in_process({}, [] {
    const Program program;
    const CUstream in = make_stream(), out = make_stream();
    constexpr std::size_t kBytes = 100'000;
    const Pinned slot(kBytes), result(kBytes);
    const CUdeviceptr source = make_device_memory(kBytes), target = make_device_memory(kBytes);
    const auto* const bytes = static_cast<std::uint8_t*>(fake_cuda_bytes(target));
    // Between two words this thread does not call the driver, so nothing but words orders what it
    // does.
    Word copied, added, finished;
    for (std::uint32_t round = 1; round <= 50; ++round) {
      EXPECT_OK(cuMemsetD8Async(source, static_cast<unsigned char>(round), kBytes, in));
      EXPECT_OK(cuMemcpyDtoHAsync(slot.data, source, kBytes, in));
      EXPECT_OK(cuStreamWriteValue32(in, copied.address, round, 0));
      EXPECT_OK(cuStreamWaitValue32(out, added.address, round, CU_STREAM_WAIT_VALUE_GEQ));
      EXPECT_OK(cuMemcpyHtoDAsync(target, result.data, kBytes, out));
      EXPECT_OK(cuStreamWriteValue32(out, finished.address, round, 0));
      EXPECT_TRUE(wait_until([&] { return copied.load() == round; }));
      for (std::size_t i = 0; i < kBytes; ++i)
        result.data[i] = static_cast<std::uint8_t>(slot.data[i] + 1);
      added.store(round);
      EXPECT_TRUE(wait_until([&] { return finished.load() == round; }));
      EXPECT_EQ(bytes[kBytes - 1], static_cast<std::uint8_t>(round + 1));
    }
  });
}

TEST(FakeCudaStreams, ABatchOfWordsIsDoneInItsOrder) {
  in_process({{"DEPTH", "1"}}, [] {
    const Program program;
    const CUstream stream = make_stream();
    Word go, done;
    CUstreamBatchMemOpParams operations[2] = {};
    operations[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    operations[0].waitValue.address = go.address;
    operations[0].waitValue.value = 1;
    operations[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    operations[1].writeValue.address = done.address;
    operations[1].writeValue.value = 9;
    EXPECT_OK(cuStreamBatchMemOp(stream, 2, operations, 0));
    EXPECT_EQ(done.load(), 0U);
    go.store(1);
    EXPECT_OK(cuStreamSynchronize(stream));
    EXPECT_EQ(done.load(), 9U);
  });
}

TEST(FakeCudaStreams, AWaitHoldsAllStreamsOfItsQueue) {
  in_process({{"QUEUES", "1"}}, [] {
    const Program program;
    const CUstream one = make_stream(), two = make_stream();
    Word word;
    EXPECT_OK(cuStreamWaitValue32(one, word.address, 1, 0));
    EXPECT_EQ(fake_cuda_launch(
                  two, [](void*) {}, nullptr),
              0);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(cuStreamQuery(two), CUDA_ERROR_NOT_READY);
    word.store(1);
    EXPECT_OK(cuStreamSynchronize(two));
  });
}

TEST(FakeCudaStreams, AWaitHoldsNoStreamOfAnotherQueue) {
  in_process({{"QUEUES", "2"}}, [] {
    const Program program;
    const CUstream one = make_stream(), two = make_stream();
    Word word;
    EXPECT_OK(cuStreamWaitValue32(one, word.address, 1, 0));
    EXPECT_EQ(fake_cuda_launch(
                  two, [](void*) {}, nullptr),
              0);
    EXPECT_OK(cuStreamSynchronize(two));
    EXPECT_EQ(cuStreamQuery(one), CUDA_ERROR_NOT_READY);
    word.store(1);
    EXPECT_OK(cuStreamSynchronize(one));
  });
}

TEST(FakeCudaStreams, ACallWaitsBehindAFullQueue) {
  in_process({{"DEPTH", "3"}}, [] {
    const Program program;
    const CUstream stream = make_stream();
    Gate gate;
    gate.hold(stream);
    std::atomic<int> queued = 1, id = 0;
    std::thread caller([&] {
      id = gettid();
      EXPECT_OK(cuCtxSetCurrent(program.context));
      for (int i = 0; i < 9; ++i) {
        EXPECT_EQ(fake_cuda_launch(
                      stream, [](void*) {}, nullptr),
                  0);
        ++queued;
      }
    });
    EXPECT_TRUE(wait_until_held(id));
    EXPECT_EQ(queued, 3);
    EXPECT_EQ(counts().pending_works, 3U);
    gate.open();
    caller.join();
    EXPECT_OK(cuStreamSynchronize(stream));
    EXPECT_EQ(counts().kernels, 10U);
  });
}

TEST(FakeCudaStreams, AKernelMustNotCallTheDriver) {
  in_process({}, [] {
    const Program program;
    const CUstream stream = make_stream();
    CUresult result = CUDA_SUCCESS;
    EXPECT_EQ(
        fake_cuda_launch(
            stream, [](void* to) { *static_cast<CUresult*>(to) = cuCtxSynchronize(); }, &result),
        0);
    EXPECT_OK(cuStreamSynchronize(stream));
    EXPECT_EQ(result, CUDA_ERROR_NOT_PERMITTED);
  });
}

}  // namespace
}  // namespace fake_cuda_testing
