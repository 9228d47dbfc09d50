// SPDX-License-Identifier: Apache-2.0
// Groups, sends and receives, streams.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "fake_cuda/driver_testing.h"
#include "ranks.h"

namespace fake_nccl_testing {
namespace {

using fake_cuda_testing::Gate;

// Larger than what a mailbox holds, so that a send alone does not end.
constexpr std::size_t kLarge = 1'000'000;
constexpr auto kNumber = NcclType::Int32;
using Numbers = std::vector<std::int32_t>;

Numbers filled(std::size_t count, std::int32_t value) { return Numbers(count, value); }

TEST(FakeNcclGroup, SendsAndReceivesAroundTheRing) {
  run_processes(3, {}, [](Rank& rank) {
    rank.init();
    DeviceBytes from(kLarge * 4), to(kLarge * 4);
    from.store(filled(kLarge, rank.rank + 1));
    const int next = (rank.rank + 1) % 3, before = (rank.rank + 2) % 3;
    EXPECT_NCCL(ncclGroupStart());
    EXPECT_NCCL(ncclSend(from.at(), kLarge, kNumber, next, rank.comm, rank.stream));
    EXPECT_NCCL(ncclRecv(to.at(), kLarge, kNumber, before, rank.comm, rank.stream));
    EXPECT_NCCL(ncclGroupEnd());
    rank.synchronize();
    EXPECT_EQ(to.load<std::int32_t>(kLarge), filled(kLarge, before + 1));
  });
}

TEST(FakeNcclGroup, SendsToItselfAndNothing) {
  run_threads(2, {}, [](Rank& rank) {
    rank.init();
    DeviceBytes from(8), to(8);
    from.store<std::int32_t>({7, 8});
    EXPECT_NCCL(ncclGroupStart());
    EXPECT_NCCL(ncclSend(from.at(), 2, kNumber, rank.rank, rank.comm, rank.stream));
    EXPECT_NCCL(ncclRecv(to.at(), 2, kNumber, rank.rank, rank.comm, rank.stream));
    EXPECT_NCCL(ncclSend(nullptr, 0, kNumber, 1 - rank.rank, rank.comm, rank.stream));
    EXPECT_NCCL(ncclRecv(nullptr, 0, kNumber, 1 - rank.rank, rank.comm, rank.stream));
    EXPECT_NCCL(
        ncclAllReduce(nullptr, nullptr, 0, kNumber, NcclReduction::Sum, rank.comm, rank.stream));
    EXPECT_NCCL(ncclGroupEnd());
    rank.synchronize();
    EXPECT_EQ(to.load<std::int32_t>(2), (Numbers{7, 8}));
  });
}

TEST(FakeNcclGroup, IsOneKernelAndMayBeNested) {
  run_processes(2, {}, [](Rank& rank) {
    rank.init();
    DeviceBytes sums(12), pair(8);
    sums.store<std::int32_t>({1, 2, 3});
    pair.store<std::int32_t>({rank.rank + 5, 0});
    EXPECT_NCCL(ncclGroupStart());
    // Collectives and pairs may come in different orders on the ranks.
    if (rank.rank == 0) {
      EXPECT_NCCL(ncclSend(pair.at(), 1, kNumber, 1, rank.comm, rank.stream));
    }
    EXPECT_NCCL(ncclGroupStart());
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NCCL(ncclAllReduce(sums.at(i * 4), sums.at(i * 4), 1, kNumber, NcclReduction::Sum,
                                rank.comm, rank.stream));
    }
    EXPECT_NCCL(ncclGroupEnd());
    EXPECT_TRUE(rank.is_idle());
    if (rank.rank == 1) {
      EXPECT_NCCL(ncclRecv(pair.at(4), 1, kNumber, 0, rank.comm, rank.stream));
    }
    EXPECT_NCCL(ncclGroupEnd());
    rank.synchronize();
    EXPECT_EQ(sums.load<std::int32_t>(3), (Numbers{2, 4, 6}));
    EXPECT_EQ(pair.load<std::int32_t>(2), rank.rank == 0 ? (Numbers{5, 0}) : (Numbers{6, 5}));
    fake_nccl_counts counts{};
    fake_nccl_get_counts(&counts);
    EXPECT_EQ(counts.kernels, 1U);
    EXPECT_EQ(counts.collectives, 4U);
    EXPECT_EQ(counts.pending_kernels, 0U);
  });
}

TEST(FakeNcclGroup, WithAFailedCallQueuesNothing) {
  run_threads(2, {{"FAKE_NCCL_FAIL", "ncclBroadcast:1:2"}}, [](Rank& rank) {
    rank.init();
    DeviceBytes memory(4);
    memory.store<std::int32_t>({rank.rank + 1});
    if (rank.rank == 0) {
      EXPECT_NCCL(ncclGroupStart());
      EXPECT_NCCL(ncclAllReduce(memory.at(), memory.at(), 1, kNumber, NcclReduction::Product,
                                rank.comm, rank.stream));
      EXPECT_EQ(ncclBroadcast(memory.at(), memory.at(), 1, kNumber, 0, rank.comm, rank.stream),
                NcclResult::SystemError);
      EXPECT_EQ(ncclGroupEnd(), NcclResult::SystemError);
      EXPECT_TRUE(rank.is_idle());
    }
    EXPECT_NCCL(ncclAllReduce(memory.at(), memory.at(), 1, kNumber, NcclReduction::Sum, rank.comm,
                              rank.stream));
    rank.synchronize();
    EXPECT_EQ(memory.load<std::int32_t>(1), Numbers{3});
    EXPECT_EQ(ncclGroupEnd(), NcclResult::InvalidUsage);
  });
}

TEST(FakeNcclStream, HoldsNoThreadAndEndsWhenAllRanksHaveCome) {
  run_threads(2, {}, [](Rank& rank) {
    rank.init();
    DeviceBytes memory(kLarge * 4);
    memory.store(filled(kLarge, 0));
    Gate gate;
    if (rank.rank == 0) {
      EXPECT_NCCL(ncclAllReduce(memory.at(), memory.at(), kLarge, kNumber, NcclReduction::Sum,
                                rank.comm, rank.stream));
      EXPECT_FALSE(rank.is_idle());
      rank.common.raise(0);
    } else {
      // Behind a kernel of its own, which makes its input.
      rank.common.wait_for(0);
      gate.hold(rank.stream);
      EXPECT_EQ(
          cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(memory.at()), 1, kLarge * 4, rank.stream),
          CUDA_SUCCESS);
      EXPECT_NCCL(ncclAllReduce(memory.at(), memory.at(), kLarge, kNumber, NcclReduction::Sum,
                                rank.comm, rank.stream));
      gate.open();
    }
    rank.synchronize();
    EXPECT_EQ(memory.load<std::int32_t>(kLarge), filled(kLarge, 0x01010101));
  });
}

// As in two levels: one communicator for each half, on streams of their own.
TEST(FakeNcclStream, TwoCommunicatorsShareOneHardwareQueue) {
  run_processes(2, {{"FAKE_CUDA_QUEUES", "1"}}, [](Rank& rank) {
    NcclComm first = nullptr, second = nullptr;
    EXPECT_NCCL(rank.try_init(first, 0));
    EXPECT_NCCL(rank.try_init(second, 1));
    const CUstream other = rank.make_stream();
    DeviceBytes a(kLarge * 4), b(kLarge * 4);
    a.store(filled(kLarge, 1));
    b.store(filled(kLarge, 2));
    for (int i = 0; i < 3; ++i) {
      EXPECT_NCCL(
          ncclAllReduce(a.at(), a.at(), kLarge, kNumber, NcclReduction::Sum, first, rank.stream));
      EXPECT_NCCL(
          ncclAllReduce(b.at(), b.at(), kLarge, kNumber, NcclReduction::Sum, second, other));
    }
    rank.synchronize();
    EXPECT_EQ(cuStreamSynchronize(other), CUDA_SUCCESS);
    EXPECT_EQ(a.load<std::int32_t>(kLarge), filled(kLarge, 8));
    EXPECT_EQ(b.load<std::int32_t>(kLarge), filled(kLarge, 16));
    EXPECT_NCCL(ncclCommDestroy(first));
    EXPECT_NCCL(ncclCommDestroy(second));
  });
}

// Kernels of one communicator go in the order of their calls, as NCCL orders them.
TEST(FakeNcclStream, OneCommunicatorOnTwoStreamsKeepsItsOrder) {
  run_threads(2, {}, [](Rank& rank) {
    rank.init();
    const CUstream other = rank.make_stream();
    DeviceBytes a(4), b(4);
    a.store<std::int32_t>({1});
    b.store<std::int32_t>({2});
    Gate gate;
    gate.hold(rank.stream);
    EXPECT_NCCL(
        ncclAllReduce(a.at(), a.at(), 1, kNumber, NcclReduction::Sum, rank.comm, rank.stream));
    EXPECT_NCCL(ncclBroadcast(b.at(), b.at(), 1, kNumber, 0, rank.comm, other));
    EXPECT_EQ(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
    gate.open();
    EXPECT_NCCL(ncclCommDestroy(rank.comm));
    EXPECT_EQ(cuStreamQuery(other), CUDA_SUCCESS);
    rank.synchronize();
    EXPECT_EQ(a.load<std::int32_t>(1), Numbers{2});
  });
}

}  // namespace
}  // namespace fake_nccl_testing
