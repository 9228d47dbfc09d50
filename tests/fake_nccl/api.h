// SPDX-License-Identifier: Apache-2.0
// The functions that the library exports: those that the product calls, as it declares them, and
// what a test of the library needs besides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "gpu/nccl.h"

namespace fake_nccl {

using braid::NcclComm;
using braid::NcclReduction;
using braid::NcclResult;
using braid::NcclType;
using braid::NcclUniqueId;

#define FAKE_NCCL_FUNCTIONS(X)                                                                 \
  BRAID_NCCL_FUNCTIONS(X)                                                                      \
  X(NcclResult, CommDestroy, NcclComm comm)                                                    \
  X(NcclResult, AllReduce, const void* input, void* result, std::size_t count, NcclType type,  \
    NcclReduction reduction, NcclComm comm, CUstream stream)                                   \
  X(NcclResult, Send, const void* input, std::size_t count, NcclType type, int peer,           \
    NcclComm comm, CUstream stream)                                                            \
  X(NcclResult, Recv, void* result, std::size_t count, NcclType type, int peer, NcclComm comm, \
    CUstream stream)

#define FAKE_NCCL_DECLARE(Returned, name, ...) extern "C" Returned nccl##name(__VA_ARGS__);
FAKE_NCCL_FUNCTIONS(FAKE_NCCL_DECLARE)
#undef FAKE_NCCL_DECLARE
extern "C" const char* ncclGetLastError(NcclComm comm);
static_assert(std::is_same_v<decltype(&ncclGetLastError), decltype(braid::Nccl::GetLastError)>);

/// How many collectives, sends and receives the process has called.
std::uint64_t operations();

}  // namespace fake_nccl
