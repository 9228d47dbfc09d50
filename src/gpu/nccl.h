// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <cuda.h>

#include "base/status.h"

namespace braid {

// NCCL, NVIDIA's library of collectives between GPUs, as its own nccl.h has it, as far as braid
// uses it: declared here so that no build needs nccl.h. tests/unit/gpu/nccl_header_test.cpp holds
// these against it.

// What the ranks of a communicator must have in common to meet.
struct NcclUniqueId {
  char bytes[128];
};

// One rank's end of a communicator.
using NcclComm = struct NcclCommState*;

enum class NcclResult : int {
  Success = 0,
  UnhandledCudaError = 1,
  SystemError = 2,
  InternalError = 3,
  InvalidArgument = 4,
  InvalidUsage = 5,
  RemoteError = 6,
  InProgress = 7,
};

enum class NcclType : int {
  Int8 = 0,
  Uint8 = 1,
  Int32 = 2,
  Uint32 = 3,
  Int64 = 4,
  Uint64 = 5,
  Float16 = 6,
  Float32 = 7,
  Float64 = 8,
  Bfloat16 = 9,
};

enum class NcclReduction : int { Sum = 0, Product = 1, Max = 2, Min = 3, Average = 4 };

// Every function of NCCL that braid calls: X(result, name without "nccl", arguments). Counts are of
// elements; that of a reduce-scatter is of one rank's result, that of an all-gather of one rank's
// input. Memory is the communicator's GPU's. All but the first ones are queued on the stream.
#define BRAID_NCCL_FUNCTIONS(X)                                                                   \
  X(NcclResult, GetVersion, int* version)                                                         \
  X(NcclResult, GetUniqueId, NcclUniqueId* id)                                                    \
  X(NcclResult, CommInitRank, NcclComm* comm, int ranks, NcclUniqueId id, int rank)               \
  X(NcclResult, CommAbort, NcclComm comm)                                                         \
  X(NcclResult, CommGetAsyncError, NcclComm comm, NcclResult* error)                              \
  X(const char*, GetErrorString, NcclResult result)                                               \
  X(NcclResult, GroupStart)                                                                       \
  X(NcclResult, GroupEnd)                                                                         \
  X(NcclResult, ReduceScatter, const void* input, void* result, std::size_t count, NcclType type, \
    NcclReduction reduction, NcclComm comm, CUstream stream)                                      \
  X(NcclResult, AllGather, const void* input, void* result, std::size_t count, NcclType type,     \
    NcclComm comm, CUstream stream)                                                               \
  X(NcclResult, Reduce, const void* input, void* result, std::size_t count, NcclType type,        \
    NcclReduction reduction, int root, NcclComm comm, CUstream stream)                            \
  X(NcclResult, Broadcast, const void* input, void* result, std::size_t count, NcclType type,     \
    int root, NcclComm comm, CUstream stream)

inline constexpr const char* kNcclLibrary = "libnccl.so.2";
// 2.10, the first version that averages, as ncclGetVersion says it.
inline constexpr int kNcclLeastVersion = 21000;

// NCCL's functions: found at run time, so that one build runs with and without it. The manual of
// each function is NVIDIA's "NCCL API". Any thread; the library is never unloaded.
struct Nccl {
#define BRAID_NCCL_MEMBER(Returned, name, ...) Returned (*name)(__VA_ARGS__) = nullptr;
  BRAID_NCCL_FUNCTIONS(BRAID_NCCL_MEMBER)
#undef BRAID_NCCL_MEMBER
  // What the library last said to people, for the process; nullptr: it is older than 2.13.
  const char* (*GetLastError)(NcclComm comm) = nullptr;
  int version = 0;  // 22809: 2.28.9

  // The process' NCCL: the file that $BRAID_NCCL_LIBRARY names, else the library that is loaded
  // already (torch's), else what the system's loader finds. "There is one" is the answer for ever;
  // after "there is none" the next call looks again, as the process may have loaded one since.
  // Errors: as for load.
  static Result<const Nccl*> get();

  // NotFound: there is no such library. Unavailable: braid cannot use it, because it is too old or
  // lacks a function.
  static Result<Nccl> load(const std::string& library);

  // "2.28.9"
  std::string version_text() const;

  // Ok for Success; else Unavailable, with what NCCL says of `function`, and with the result as
  // the cause.
  Status check(NcclResult result, std::string_view function) const;
};

}  // namespace braid
