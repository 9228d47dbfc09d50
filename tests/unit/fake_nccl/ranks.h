// SPDX-License-Identifier: Apache-2.0
// What tests of the fake NCCL share: the ranks of a communicator, as threads with a GPU each or as
// processes with a GPU each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <cuda.h>
#include <gtest/gtest.h>

#include "fake_cuda/fake_cuda.h"
#include "fake_nccl/api.h"
#include "fake_nccl/fake_nccl.h"
#include "own_process.h"

namespace fake_nccl_testing {

using fake_nccl::NcclComm;
using fake_nccl::NcclReduction;
using fake_nccl::NcclResult;
using fake_nccl::NcclType;
using fake_nccl::NcclUniqueId;

#define EXPECT_NCCL(call) EXPECT_EQ(call, NcclResult::Success) << ncclGetLastError(nullptr)

using fake_nccl::ncclAllGather;
using fake_nccl::ncclAllReduce;
using fake_nccl::ncclBroadcast;
using fake_nccl::ncclCommAbort;
using fake_nccl::ncclCommDestroy;
using fake_nccl::ncclCommGetAsyncError;
using fake_nccl::ncclCommInitRank;
using fake_nccl::ncclGetErrorString;
using fake_nccl::ncclGetLastError;
using fake_nccl::ncclGetUniqueId;
using fake_nccl::ncclGetVersion;
using fake_nccl::ncclGroupEnd;
using fake_nccl::ncclGroupStart;
using fake_nccl::ncclRecv;
using fake_nccl::ncclReduce;
using fake_nccl::ncclReduceScatter;
using fake_nccl::ncclSend;

/// Device memory of the current context, for the life of the process.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t bytes);

  void* at(std::size_t byte = 0) const { return reinterpret_cast<void*>(address_ + byte); }
  template <typename Value>
  void store(const std::vector<Value>& values, std::size_t byte = 0) {
    std::memcpy(bytes(byte), values.data(), values.size() * sizeof(Value));
  }
  template <typename Value>
  std::vector<Value> load(std::size_t count, std::size_t byte = 0) const {
    std::vector<Value> values(count);
    std::memcpy(values.data(), bytes(byte), count * sizeof(Value));
    return values;
  }
  /// Where a test may touch it while no stream uses it.
  std::byte* bytes(std::size_t byte = 0) const;

 private:
  CUdeviceptr address_ = 0;
};

/// What the ranks of a test have in common, also those of different processes.
class Common {
 public:
  Common();
  NcclUniqueId share_id(int rank, std::size_t number);  // rank 0 makes it
  void raise(std::size_t flag);
  void wait_for(std::size_t flag) const;

 private:
  struct Shared;
  Shared* shared_;
};

/// One rank: its GPU's context is current on its thread.
struct Rank {
  int rank, ranks;
  Common& common;
  CUstream stream = nullptr;
  NcclComm comm = nullptr;

  Rank(int rank_of_them, int number_of_them, Common& their_common)
      : rank(rank_of_them), ranks(number_of_them), common(their_common) {}

  void open_gpu(int device);
  CUstream make_stream() const;
  /// Each number stands for another communicator.
  NcclResult try_init(NcclComm& communicator, std::size_t number = 0);
  void init() { EXPECT_NCCL(try_init(comm)); }
  void synchronize() const { EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS); }
  bool is_idle() const { return cuStreamQuery(stream) == CUDA_SUCCESS; }
};

using RankBody = std::function<void(Rank&)>;
using own_process::Environment;

/// Runs the body for each rank, in a process of its own. Once per test.
void run_threads(int ranks, const Environment& environment, const RankBody& body);
/// The ranks are processes. `prepare` is called in each before its first call of CUDA and NCCL.
/// A rank that is killed is no failure.
void run_processes(int ranks, const Environment& environment, const RankBody& body,
                   const std::function<void(int rank)>& prepare = {});

/// The deadline only keeps a broken test from hanging.
bool wait_until(const std::function<bool()>& condition);

NcclResult async_error(NcclComm comm);

}  // namespace fake_nccl_testing
